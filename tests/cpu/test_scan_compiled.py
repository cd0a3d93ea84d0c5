"""A cache that real compiles made scans back to the kernels, keys and binaries of the manifest that it came from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from jitaudit.jit.entries import Broken, Entry, read_cache, read_entry
from jitaudit.model import Kernel, Manifest
from jitaudit.scanning import Scan, compare, scan
from jitaudit.scanning.tallying import Row
from jitaudit.sweeping.process import ask
from jitaudit.sweeping.running import Answer, Narrowing, Request
from jitaudit.sweeping.targets import read_target

pytestmark = pytest.mark.matrix

REPOSITORY = Path(__file__).parents[2]

LIGER = "tests/launchers/liger.py"

SWEEPS = (
    ("jitaudit_kernels.dsa_metadata", {"bs": "1,2"}),
    ("jitaudit_kernels.mamba_replay", {"valid": "0,2", "total": "3,16", "offset": "0..2", "n1": "1,3", "n2": "16"}),
    (f"{LIGER}::rms_norm_backward", {"tokens": "1,16"}),
    (f"{LIGER}::layer_norm", {"tokens": "1,16"}),
)

Key = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, object], ...]]
"""Arguments as a compiled kernel shows them, and options."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory):
    """``compiled(target, architecture, axes)``: the manifest of real compiles, and the cache directory they filled."""

    @cache
    def run(target: str, architecture: str, axes: tuple[tuple[str, str], ...]) -> tuple[Manifest, Path]:
        directory = tmp_path_factory.mktemp("cache")
        before = Path.cwd()
        os.chdir(REPOSITORY)
        try:
            request = Request(read_target(target), architecture, Narrowing(axes=dict(axes), compile=True))
            variables = {"TRITON_CACHE_DIR": str(directory)}
            answer = ask("jitaudit.sweeping.child", request, Answer, target, lambda *_: None, variables)
        finally:
            os.chdir(before)
        return answer.manifest, directory

    return run


@pytest.mark.parametrize("architecture", ["cuda:90", "hip:gfx942"])
@pytest.mark.parametrize(("target", "axes"), SWEEPS, ids=[target for target, _ in SWEEPS])
def test_a_cache_scans_back_to_its_manifest(compiled, target: str, axes: dict[str, str], architecture: str):
    manifest, directory = compiled(target, architecture, tuple(axes.items()))
    scanned = scan([directory])
    assert scanned.skipped == ()
    _require_same(manifest, scanned)


@pytest.mark.nightly
@pytest.mark.parametrize("architecture", ["cuda:90", "hip:gfx942"])
@pytest.mark.parametrize("launchers", [LIGER, "tests/launchers/liger_losses.py"])
def test_all_of_ligers_launchers_scan_back(compiled, launchers: str, architecture: str):
    sizes = {"tokens": "1,16", "batch": "1", "hidden": "16"}
    text = (REPOSITORY / launchers).read_text()
    axes = tuple((name, values) for name, values in sizes.items() if f"sweep({name}=" in text)
    manifest, directory = compiled(launchers, architecture, axes)
    scanned = scan([directory])
    assert len(scanned.rows) > 10
    _require_same(manifest, scanned)


def test_the_manifest_of_a_scan_survives_its_file_and_keeps_every_variant(compiled, tmp_path: Path):
    from jitaudit.manifest import read, write

    target, axes = SWEEPS[1]
    _, directory = compiled(target, "cuda:90", tuple(axes.items()))
    scanned = scan([directory])
    write(scanned.manifest, tmp_path / "scan.json")
    assert read([tmp_path / "scan.json"]) == scanned.manifest
    variants = [variant for kernel in scanned.manifest.kernels for variant in kernel.variants]
    assert len(variants) == sum(row.entries for row in scanned.rows)
    assert {variant.origin for variant in variants} == {"cache"}
    assert all("opaque " in v.key.arguments["<folded>"] for v in variants if "folded" in v.key.arguments.values())


def test_a_copied_cache_is_the_same_cache_and_says_that_it_moved(compiled, tmp_path: Path):
    target, axes = SWEEPS[0]
    _, directory = compiled(target, "cuda:90", tuple(axes.items()))
    copy = tmp_path / "elsewhere"
    subprocess.run(["cp", "-a", str(directory), str(copy)], check=True)
    scanned = scan([copy])
    assert scanned.rows == scan([directory]).rows
    assert scanned.notes[0].startswith(f"{sum(row.entries for row in scanned.rows)} of ")
    assert compare([directory], copy).differences == ()


ODD = """
import sys
import torch, triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

class Driver:
    def get_current_target(self): return GPUTarget("cuda", 90, 32)
    def get_current_device(self): return 0
    def get_current_stream(self, device=0): return 0

class Pointer:
    def __init__(self, dtype, address=256): self.dtype, self.address = dtype, address
    def data_ptr(self): return self.address
    def numel(self): return 4096

driver.set_active(Driver())

@triton.jit(noinline=True)
def helper(pointer, n):
    return tl.load(pointer + n)

@triton.jit(do_not_specialize=["last"])
def types(a_ptr, wide: tl.int64, scale, flag, table, ünï, last, *, BLOCK: tl.constexpr):
    value = helper(a_ptr, wide)
    if table is not None:
        tl.store(table, value.to(tl.float32) * scale)
    tl.store(a_ptr + ünï + last, value, mask=flag)

@triton.jit
def pair(t, out_ptr):
    tl.store(out_ptr + t[1], tl.load(t[0]))

@triton.jit(repr=lambda specialization: f"pretty_{specialization.constants['BLOCK']}")
def renamed(out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, BLOCK)

def closure():
    @triton.jit
    def renamed(out_ptr, BLOCK: tl.constexpr):
        tl.store(out_ptr, BLOCK + 1)
    return renamed

def launch(kernel, *args, **kwargs):
    kernel.run(*args, grid=(1,), warmup=True, **kwargs)

for dtype in (torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.int8, torch.float64):
    launch(types, Pointer(dtype), 5, 0.5, True, None, 7, 16, BLOCK=64)
launch(types, Pointer(torch.float16, 264), 32, 0.5, True, Pointer(torch.float32), 1, 16, BLOCK=64, num_warps=8)
launch(types, Pointer(torch.float16), 1, 0.5, True, None, 7, 16, BLOCK=64)
launch(pair, (Pointer(torch.float32), 17), Pointer(torch.float32))
launch(pair, (Pointer(torch.float32), 1), Pointer(torch.float32))
launch(renamed, Pointer(torch.float32), BLOCK=4)
launch(closure(), Pointer(torch.float32), BLOCK=4)
"""


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory):
    """``odd(**variables)``: the cache that the kernels of ``odd.py`` fill under these environment variables."""
    folder = tmp_path_factory.mktemp("odd")
    (folder / "odd.py").write_text(ODD, encoding="utf-8")

    def run(**variables: str) -> Path:
        directory = folder / "-".join(["cache", *variables])
        environment = {**os.environ, "TRITON_CACHE_DIR": str(directory), **variables}
        subprocess.run([sys.executable, str(folder / "odd.py")], env=environment, check=True, capture_output=True)
        return directory

    return run


def test_types_tuples_closures_and_renamed_kernels_are_told(odd):
    scanned = scan([odd()])
    rows = {row.kernel.rpartition(":")[2]: row for row in scanned.rows}
    assert {name: row.entries for name, row in rows.items()} == {
        "types": 8,
        "pair": 2,
        "renamed": 1,
        "closure.<locals>.renamed": 1,
    }
    splits = {(split.argument, split.kind): split.classes for split in rows["types"].splits}
    dtypes = ("*bf16", "*fp16", "*fp64", "*fp8e4nv", "*fp8e5", "*i8")
    assert splits == {
        ("a_ptr", "dtype"): dtypes,
        ("a_ptr", "alignment"): ("aligned", "unaligned"),
        ("wide", "int_class"): ("%16", "=1|any"),
        ("table", "none"): ("folded", "given"),
        ("ünï", "none"): ("folded", "given"),
        ("num_warps", "option"): ("8", "default"),
    }
    assert rows["types"].folded == ("table", "ünï", "BLOCK")
    kernel = next(kernel for kernel in scanned.manifest.kernels if kernel.id.endswith(":types"))
    assert {parameter.name: parameter.policy for parameter in kernel.parameters} == {
        "a_ptr": "specialized",
        "wide": "specialized",
        "scale": "specialized",
        "flag": "specialized",
        "table": "specialized",
        "ünï": "specialized",
        "last": "do_not_specialize",
        "BLOCK": "constexpr",
    }
    assert kernel.line == ODD[: ODD.index("def types(")].count("\n")  # its decorator's
    pairs = next(kernel for kernel in scanned.manifest.kernels if kernel.id.endswith(":pair"))
    assert {variant.key.arguments["t"] for variant in pairs.variants} == {"(*fp32 aligned, i32 any)", "*fp32 aligned"}


def test_without_line_information_arguments_stay_and_the_file_is_unknown(odd):
    scanned = scan([odd(TRITON_DISABLE_LINE_INFO="1")])
    assert {row.kernel for row in scanned.rows} == {"types", "pair", "renamed"}
    types = next(kernel for kernel in scanned.manifest.kernels if kernel.id == "types")
    assert (types.file, types.line) == ("", 0)
    assert {"a_ptr", "wide", "scale", "flag"} <= types.variants[0].key.arguments.keys()
    assert scanned.manifest.environment.variables.keys() == {"TRITON_DISABLE_LINE_INFO"}


def test_where_only_the_binary_is_stored_the_front_ends_ir_tells_the_arguments(odd):
    directory = odd(TRITON_STORE_BINARY_ONLY="1")
    assert not list(directory.rglob("*.ttir"))
    assert sum(row.entries for row in scan([directory]).rows) == 12


def test_where_nothing_but_the_binary_is_left_the_key_is_opaque(odd, tmp_path: Path):
    directory = tmp_path / "cache"
    subprocess.run(["cp", "-a", str(odd(TRITON_STORE_BINARY_ONLY="1")), str(directory)], check=True)
    for source in directory.rglob("*.source"):
        source.unlink()
        group = next(source.parent.glob("__grp__*"))
        paths = json.loads(group.read_text())["child_paths"]
        group.write_text(json.dumps({"child_paths": {name: paths[name] for name in paths if name != source.name}}))
    scanned = scan([directory])
    assert scanned.skipped == ()
    keys = [variant.key.arguments for kernel in scanned.manifest.kernels for variant in kernel.variants]
    assert len(keys) == 12
    assert all(list(key) == ["<arguments>"] and key["<arguments>"].startswith("opaque ") for key in keys)
    assert {finding.code for finding in scanned.findings if finding.kernel == "types"} >= {"JA012"}


def test_the_defaults_of_options_are_tritons_own():
    """What `entries` leaves out of a key is what each backend's `parse_options` gives unasked."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend

    from jitaudit.jit.launch_options import changed_options

    for target in (GPUTarget("cuda", 90, 32), GPUTarget("hip", "gfx942", 64)):
        options = make_backend(target).parse_options({})
        written = json.loads(json.dumps(vars(options), default=str))
        assert dict(changed_options(target.backend, written)) == {}


def _require_same(manifest: Manifest, scanned: Scan) -> None:
    """The same kernels with the same binaries, the same keys as far as code shows them, and the same splits."""
    expected = _by_id(manifest.kernels)
    found = _by_id(scanned.manifest.kernels)
    assert found.keys() == expected.keys()
    rows = {row.kernel: row for row in scanned.rows}
    for name, kernels in expected.items():
        assert _binaries(found[name]) == _binaries(kernels), name
        assert rows[name].binaries == len(_binaries(kernels)), name
        unclear = _unclear(found[name])
        assert _keys(found[name]) == _keys(kernels, unclear), name
        assert _split(rows[name]) == _varying(kernels, unclear), name
        assert {kernel.line for kernel in found[name]} == {kernel.line for kernel in kernels}, name


def _by_id(kernels: Iterable[Kernel]) -> dict[str, list[Kernel]]:
    """Kernels by id, whatever their group: a cache knows no groups."""
    groups = defaultdict(list)
    for kernel in kernels:
        if any(variant.compile for variant in kernel.variants):
            groups[kernel.id].append(kernel)
    return groups


def _binaries(kernels: Iterable[Kernel]) -> set[str]:
    return {variant.compile.binary for kernel in kernels for variant in kernel.variants if variant.compile}


def _keys(kernels: Iterable[Kernel], unclear: Collection[str] = ()) -> set[Key]:
    variants = [variant for kernel in kernels for variant in kernel.variants if variant.compile]
    return {(tuple(sorted(_shown(v.key.arguments, unclear))), tuple(sorted(v.key.options.items()))) for v in variants}


def _shown(arguments: dict[str, str], unclear: Collection[str]) -> Iterator[tuple[str, str]]:
    """Arguments as the code has them: constants are folded, ints have no sign, and some may or may not be 1."""
    for name, text in arguments.items():
        if name in unclear and text.endswith((" =1", " any")):
            yield name, f"{text.partition(' ')[0]} =1|any"
        elif name != "<folded>":
            constant = text.startswith(("constexpr ", "none")) or text.endswith(" =1")
            yield name, "folded" if constant else text.replace("*u", "*i").replace("u64 ", "i64 ")


def _unclear(kernels: Iterable[Kernel]) -> set[str]:
    """The annotated ints, of which code does not show whether they are 1."""
    arguments = (item for kernel in kernels for variant in kernel.variants for item in variant.key.arguments.items())
    return {name for name, text in arguments if text.endswith(" =1|any")}


def _varying(kernels: Iterable[Kernel], unclear: Collection[str]) -> set[str]:
    """The arguments and options that differ in what shows of the keys."""
    keys = [dict(arguments) | dict(options) for arguments, options in _keys(kernels, unclear)]
    return {name for name in {name for key in keys for name in key} if len({str(key.get(name)) for key in keys}) > 1}


def _split(row: Row) -> set[str]:
    return {split.argument for split in row.splits}


@pytest.mark.parametrize("architecture", ["cuda:90", "hip:gfx942"])
def test_a_real_binary_cut_anywhere_is_never_an_entry(compiled, tmp_path: Path, architecture: str):
    target, axes = SWEEPS[0]
    _, directory = compiled(target, architecture, tuple(axes.items()))
    binary = next(path for path in sorted(directory.rglob("*")) if path.suffix in (".cubin", ".hsaco"))
    subprocess.run(["cp", "-a", str(binary.parent), str(tmp_path)], check=True)
    folder = tmp_path / binary.parent.name
    data = binary.read_bytes()
    for length in sorted({*range(0, len(data), 97), *range(len(data) - 200, len(data))}):
        (folder / binary.name).write_bytes(data[:length])
        assert isinstance(read_entry(str(folder), folder.name).content, Broken), length
    (folder / binary.name).write_bytes(data)
    assert isinstance(read_entry(str(folder), folder.name).content, Entry)


def test_every_entry_of_a_real_cache_is_read_whole(odd):
    found = list(read_cache(str(odd())))
    assert all(isinstance(item.content, Entry) for item in found)
    assert all(item.bytes == sum(f.stat().st_size for f in (odd() / item.path).iterdir()) for item in found)
