"""The options that a launch can set, and the defaults that Triton 3.6 to 3.9 give them, known with no Triton."""

from __future__ import annotations

from collections.abc import Iterator

from jitaudit.model import Scalar


def changed_options(backend: str, fields: dict[str, object]) -> Iterator[tuple[str, Scalar]]:
    """The options in an entry's metadata that a launch can set and that are not the backend's defaults."""
    for name, default in sorted((_DEFAULTS | _BACKEND_DEFAULTS[backend]).items()):
        value = fields.get(name, default)
        if value in ([], "none") and not default:  # how a version writes that there is nothing
            continue
        if type(value) is not type(default) or value != default:
            yield name, value if value is None or isinstance(value, bool | int | float | str) else str(value)


def default_option(backend: str, name: str) -> Scalar:
    """What a launch has that does not set the option; None where that is unknown or nothing."""
    return (_DEFAULTS | _BACKEND_DEFAULTS.get(backend, {})).get(name)


_DEFAULTS: dict[str, Scalar] = {
    "num_warps": 4,
    "num_ctas": 1,
    "debug": False,
    "sanitize_overflow": True,
    "enable_fp_fusion": True,
    "launch_cooperative_grid": False,
    "instrumentation_mode": "",
    "fpsan_homomorphic_casts": False,
}
_BACKEND_DEFAULTS: dict[str, dict[str, Scalar]] = {
    "cuda": {
        "num_stages": 3,
        "maxnreg": None,
        "ptx_version": None,
        "ptx_options": None,
        "ir_override": None,
        "enable_reflect_ftz": True,
        "launch_pdl": False,
        "sched4reg": False,
        "clc": False,
        "min_shared_mem": None,
    },
    "hip": {
        "num_stages": 2,
        "waves_per_eu": 0,
        "matrix_instr_nonkdim": 0,
        "kpack": 1,
        "allow_flush_denorm": False,
        "schedule_hint": "",
        "llvm_fn_attrs": "",
        "wgp_cu_mode": "wgp",
    },
}
