"""The nouns: frozen data that every command reads or returns. No I/O, no Triton.

A key is written in design words. The text of one argument is ``<type> <class>``:

======================  =====================================================
``i32 =1``              an int equal to 1 (widths i32, i64, u64)
``i32 %16``             an int divisible by 16
``i32 any``             any other int, or one listed in ``do_not_specialize``
``fp32``, ``u1``        a runtime float or bool: only its type is in the key
``*i64 aligned``        a pointer on a 16-byte boundary; else ``unaligned``;
                        AMD adds ``<2GB``
``none``                an argument passed None
``constexpr int 64``    a constexpr with its exact type: ``bool True``,
                        ``float 0.5``, ``str "fp32"``, ``dtype fp32``, …
``(i32 any, i32 =1)``   a tuple, element by element
======================  =====================================================

What a scan can't tell, it says so: ``folded`` is an argument that the compiled
code does not have (a constexpr, =1 or None); ``i64 =1|any`` is an annotated int,
which it has either way; ``opaque …`` is any other unknown.
"""

from __future__ import annotations

from typing import Literal

import msgspec

SCHEMA_VERSION = 1

Scalar = bool | int | float | str | None
"""An option's value as JSON has it."""

AxisValue = bool | float | str | None
"""An axis value as JSON has it. Ints are ranges in strings with both ends: ``"7"``, ``"1..64"``, ``"16..512:16"``."""

Box = dict[str, str | tuple[AxisValue, ...]]
"""Cases of one sweep: ``{"sweep": name, axis: (values, …)}``, the product of its axes' values."""

ParameterPolicy = Literal["specialized", "do_not_specialize", "do_not_specialize_on_alignment", "constexpr"]

ParameterUse = Literal["unread", "block", "static", "vector", "scalar"]
"""What a kernel's body does with a parameter: nothing; takes it as the length of a ``tl.arange``; needs it at compile
time for something else; puts it into the address or the mask of a vector access; or only reads it, as a scalar."""

Via = Literal["jit", "autotune"]
"""Who compiles a variant."""

Origin = Literal["probe", "cache", "log"]
"""Where a variant was seen: in a sweep, or by scan in a cache directory or a server's log."""

CauseKind = Literal[
    "constexpr", "int_class", "alignment", "dtype", "width", "none", "option", "autotune", "address_range"
]

Growth = Literal["constant", "class", "bucketed", "linear"]
"""How a kernel's variants grow along its sorted int axes, from the mildest to the worst."""

CaseVerdict = Literal["counted", "host-read", "unsupported", "raised"]

SweepVerdict = Literal["pass", "partial", "launched nothing", "import failed"]


class Noun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of everything that a manifest holds: immutable and strictly read."""


class VariantKey(Noun, frozen=True):
    """What decides the binary: each argument's class, and the options that differ from the target's defaults."""

    arguments: dict[str, str]
    options: dict[str, Scalar]

    @property
    def text(self) -> str:
        """One line that is equal for equal keys, and sorts."""
        parts = [f"{name}: {text}" for name, text in sorted(self.arguments.items())]
        parts += [f"{name}={value!r}" for name, value in sorted(self.options.items())]
        return ", ".join(parts)


class Code(Noun, frozen=True):
    """What a binary is made of, read from the binary itself. Accesses count once each, loops or not."""

    digest: str
    """``sha256:…`` of its code and constants, names left out: equal for keys that are one binary."""
    instructions: int
    registers: int
    """Registers a thread."""
    spills: int
    """Bytes of local memory a thread."""
    shared: int
    """Bytes of shared memory a program."""
    loads: dict[int, int]
    """Accesses of global memory by width: bits a thread → how many."""
    stores: dict[int, int]


class Timing(msgspec.Struct, frozen=True):
    """Medians of launching one variant, in microseconds."""

    gpu: float
    host: float
    """Until the call returns."""


class Compile(Noun, frozen=True):
    """What a real compile of a variant gave."""

    binary: str
    """``sha256:…`` of the cubin or hsaco."""
    seconds: dict[str, float]
    """Seconds by compiler stage."""
    code: Code | None = None


class Variant(Noun, frozen=True):
    """One key of one kernel on one target: one compile, one binary."""

    key: VariantKey
    via: Via
    origin: Origin
    launches: int
    cases: tuple[Box, ...]
    """Disjoint boxes; their union is exactly the cases that launched the variant."""
    compile: Compile | None = None


class Parameter(Noun, frozen=True):
    """A kernel's parameter and what the JIT does with it."""

    name: str
    policy: ParameterPolicy
    use: ParameterUse | None = None
    """None: not known, as in a manifest that was made with no source at hand."""


class TuningKey(Noun, frozen=True):
    """One key of an autotuner's own cache: its values, and the configs (by index) that survived pruning."""

    key: tuple[str, ...]
    configs: tuple[int, ...]


class Autotuner(Noun, frozen=True):
    """What an autotuner did: at each new tuning key every surviving config is compiled and benchmarked."""

    arguments: tuple[str, ...]
    """The names in its ``key``."""
    configs: tuple[str, ...]
    """Each config's arguments and options, without those that are unset."""
    tuning_keys: tuple[TuningKey, ...]
    benchmark_runs: int


class Kernel(Noun, frozen=True):
    """A ``JITFunction`` under one value of the compared axis, and the variants that were reached."""

    id: str
    """``module:qualname`` of the source function, ``sweeps.py:qualname`` for a kernel that lives in a file."""
    group: str | None
    object: str | None
    """The attribute path at which its module holds it; None when it can't be found again (a closure)."""
    file: str
    line: int
    source: str
    """``sha256:…`` of the function's source; never compared by lock or diff."""
    parameters: tuple[Parameter, ...]
    autotuner: Autotuner | None
    launches: int
    variants: tuple[Variant, ...]


class SweepRun(Noun, frozen=True):
    """A sweep as it was run."""

    name: str
    axes: dict[str, tuple[AxisValue, ...]]
    compare: str | None
    cases: int
    counted: int
    verdict: SweepVerdict


class Finding(Noun, frozen=True, kw_only=True):
    """Something that a reader should know, with a stable code (JA001…)."""

    code: str
    name: str
    message: str
    kernel: str | None = None
    argument: str | None = None
    sweep: str | None = None
    case: str | None = None


class Environment(Noun, frozen=True):
    """Where a manifest was made. Never compared by lock or diff."""

    triton: str
    torch: str
    python: str
    variables: dict[str, str | None]
    """The environment variables that enter Triton's disk hash; None where unset."""


class Profile(Noun, frozen=True):
    """The device questions that launchers asked; the keys hold only for these answers."""

    asked: tuple[str, ...]
    stubs: tuple[str, ...] = ()
    """The modules that were stood in for, since they can't be imported where the manifest was made."""


class Manifest(Noun, frozen=True):
    """The file of variants, for one target."""

    schema_version: int
    target: str
    configuration: str
    environment: Environment
    profile: Profile
    sweeps: tuple[SweepRun, ...]
    kernels: tuple[Kernel, ...]
    findings: tuple[Finding, ...]


class Cause(msgspec.Struct, frozen=True):
    """An argument that splits a kernel's variants."""

    argument: str
    kind: CauseKind
    axis: tuple[str, ...]
    """The axes that move it; empty where it differs within a case."""
    classes: tuple[str, ...]
    growth: Growth
    """How its classes grow along the axes."""
    without: int
    """The count if this argument alone no longer split."""


RemedyKind = Literal[
    "drop",
    "retype",
    "cast",
    "align",
    "floor",
    "option",
    "bucket",
    "runtime",
    "annotate",
    "do_not_specialize_on_alignment",
    "do_not_specialize",
]
"""In the order in which the remedies of one launch act: first the call site, then the kernel."""


class Remedy(msgspec.Struct, frozen=True):
    """A change to one argument that merges variants. `setting` is what the kind needs to know:

    ==================================  ====================================================================
    ``drop``                            take it out: the body never reads it
    ``retype``                          at the call site: always pass a ``bool``, ``int`` or ``float``
    ``cast``                            at the call site: pass a tensor of this element type (``i64``)
    ``align``                           at the call site: allocate on a 16-byte boundary, or copy
    ``floor``                           at the call site: pass no less than this
    ``option``                          at the call site: launch with this value of the option, always
    ``bucket``                          of an autotune key: round it up to a power of two
    ``runtime``                         no longer constexpr; with ``do_not_specialize``: and listed there
    ``annotate``                        give the parameter this type (``i64``)
    ``do_not_specialize_on_alignment``  list it there
    ``do_not_specialize``               list it there
    ==================================  ====================================================================
    """

    kind: RemedyKind
    argument: str
    setting: Scalar = None

    @property
    def at_call_site(self) -> bool:
        """Whether the launcher changes, rather than the kernel."""
        return self.kind in ("drop", "retype", "cast", "align", "floor", "option", "bucket")


class Count(msgspec.Struct, frozen=True):
    """One row of the probe table: how many variants a kernel has, and why."""

    kernel: str
    sweep: str
    group: str | None
    cases: int
    launches: int
    variants: int
    autotune_variants: int
    growth: Growth
    causes: tuple[Cause, ...]
