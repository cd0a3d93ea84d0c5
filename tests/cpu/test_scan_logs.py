"""`jitaudit scan` over logs in the forms of vLLM 0.33's JIT monitor and SGLang 0.5's load watcher, made up here."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from jitaudit.errors import RequestError
from jitaudit.report.scan import text
from jitaudit.scanning import Scan, compare, scan

LAST_WRITE = 1_767_268_800
"""2026-01-01T12:00:00Z: when every log here was written last."""


def vllm(message: str, *, time: str = "01-01 10:00:00", process: str = "EngineCore_0 pid=7") -> str:
    return f"({process}) WARNING {time} [jit_monitor.py:153] {message}"


def late(kernel: str, details: str | None = None, backend: str = "Triton kernel") -> str:
    inside = f" ({details})" if details else ""
    return f"{backend} JIT compilation during inference: {kernel}{inside}. This causes a latency spike; warm it up."


def cut(value: object) -> str:
    """A value's repr as vLLM writes it: 120 letters at most."""
    written = repr(value)
    return written if len(written) <= 120 else f"{written[:117]}..."


def details(specialization: dict[str, tuple[object, object]], **extra: object) -> str:
    """The verbose part for arguments given in the order of the parameters, as Triton's binder classes them."""
    constants = {name: letter for name, (kind, letter) in specialization.items() if kind == "constexpr"}
    signature = {name: kind for name, (kind, _) in specialization.items()}
    key = str(list(specialization.values())) + str({"debug": False})
    options = {"extern_libs": (("libdevice", "/x"),), "num_ctas": 1, "num_stages": 3, "num_warps": 4, **extra}

    def fields(values: dict[str, object]) -> str:
        return "{" + ", ".join(f"{name}={cut(value)}" for name, value in sorted(values.items())) + "}"

    return (
        f"constexprs={fields(constants)}; signature={fields(signature)}; extra_compile_info={fields(options)}; "
        f"key={cut(key)}"
    )


def sglang(message: str, *, time: str = "2026-01-01 10:00:00", rank: str = " TP0") -> str:
    return f"[{time}{rank}] {message}"


def compiled(kernel: str, seconds: float) -> str:
    return f"Triton kernel '{kernel}' took {seconds:.2f} s to compile after serving started. It stalls the engine."


def loaded(kernel: str) -> str:
    return f"Triton kernel '{kernel}' device-loaded after serving started (free device mem: 0.50 GiB). Load it early."


HEADER = "INFO 01-01 09:00:00 [api_server.py:9] vLLM API server version 0.33.0"
ACTIVE = "(Worker_TP0 pid=7) INFO 01-01 09:59:00 [jit_monitor.py:84] Kernel JIT monitor activated; mode=warn."
POINTER = ("*fp16", "D")


@pytest.fixture
def log(tmp_path: Path):
    def write(*lines: str, name: str = "server.log") -> Path:
        path = tmp_path / name
        data = "".join(f"{line}\n" for line in lines).encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        os.utime(path, (LAST_WRITE, LAST_WRITE))
        return path

    return write


def told(result: Scan) -> dict[str, tuple[int, int, dict[str, int]]]:
    return {row.kernel: (row.entries, row.variants, row.places) for row in result.rows}


def test_plain_vllm_lines_tell_kernels_counts_and_times(log):
    result = scan(
        [
            log(
                ACTIVE,
                vllm(late("_rope_kernel")),
                vllm(late("outer.<locals>.inner"), time="01-01 11:30:00"),
                vllm(late("_rope_kernel"), process="Worker_TP1 pid=9"),
            )
        ]
    )
    assert told(result) == {
        "_rope_kernel": (2, 1, {"EngineCore_0 pid=7": 1, "Worker_TP1 pid=9": 1}),
        "outer.<locals>.inner": (1, 1, {"EngineCore_0 pid=7": 1}),
    }
    inner = result.rows[1]
    assert (inner.first, inner.last) == ("2026-01-01T11:30:00Z",) * 2
    variant = result.manifest.kernels[0].variants[0]
    assert (variant.origin, variant.launches, variant.key.arguments) == ("log", 2, {"<arguments>": "opaque #1"})
    assert any("does not tell a compile from a hit" in note for note in result.notes)
    assert any("--jit-monitor-verbose" in note for note in result.notes)


def test_verbose_vllm_lines_tell_the_key_and_the_argument_behind_each(log):
    base = {"x_ptr": POINTER, "n": ("i32", ""), "stride": ("constexpr", 1), "BLOCK": ("constexpr", 64)}
    changed = [
        base,
        {**base, "n": ("i32", "D")},
        {**base, "BLOCK": ("constexpr", 128)},
        {**base, "x_ptr": ("*fp16", "")},
        {**base, "n": ("constexpr", 1)},
        {**base, "stride": ("i64", "D")},
    ]
    lines = [vllm(late("_k", details(key)), time=f"01-01 10:00:{at:02}") for at, key in enumerate(changed)]
    lines.append(vllm(late("_k", details(base, num_warps=8)), time="01-01 10:01:00"))
    path = log(ACTIVE, *lines)
    result = scan([path])
    (kernel,) = result.manifest.kernels
    arguments = {variant.key.text for variant in kernel.variants}
    assert "BLOCK: constexpr int 64, n: i32 any, stride: i32 =1, x_ptr: *fp16 aligned" in arguments
    assert "BLOCK: constexpr int 64, n: i32 =1, stride: i32 =1, x_ptr: *fp16 aligned" in arguments
    assert "BLOCK: constexpr int 64, n: i32 any, stride: i32 =1, x_ptr: *fp16 aligned, num_warps=8" in arguments
    assert (len(arguments), kernel.launches) == (7, 7)
    after = scan([path], since="2026-01-01T10:00:00")
    assert {(d.argument, d.now, d.before) for d in after.rows[0].differences} == {
        ("n", "%16", "any"),
        ("n", "=1", "any"),
        ("BLOCK", "int 128", "int 64"),
        ("x_ptr", "unaligned", "aligned"),
        ("stride", "i64 %16", "i32 =1"),
        ("num_warps", "8", "default"),
    }


def test_classes_that_only_positions_tell_stand_together(log):
    first = {"a_ptr": POINTER, "z": ("i32", "D"), "m": ("i32", ""), "b": ("i32", "")}
    second = {**first, "z": ("i32", "")}
    result = scan([log(vllm(late("_k", details(first))), vllm(late("_k", details(second)), time="01-01 10:00:01"))])
    keys = [variant.key.arguments for variant in result.manifest.kernels[0].variants]
    assert {key["b|m|z"] for key in keys} == {"(i32 %16, i32 any, i32 any)", "(i32 any, i32 any, i32 any)"}
    assert [(s.argument, s.kind) for s in result.rows[0].splits] == [("b|m|z", "int_class")]


def test_what_vllm_cut_off_is_opaque_never_guessed(log):
    many = {f"pointer_{at}": POINTER for at in range(9)} | {"n": ("i32", ""), "NAME": ("constexpr", "x" * 200)}
    (kernel,) = scan([log(vllm(late("_k", details(many))))]).manifest.kernels
    arguments = kernel.variants[0].key.arguments
    assert arguments["pointer_0"] == "*fp16 opaque"
    assert arguments["n"] == "i32 opaque"
    assert arguments["NAME"] == "constexpr opaque"
    assert len(arguments) == 11


def test_constexprs_keep_their_types(log):
    values = {"A": True, "B": 1.0, "C": "fp32", "D": None, "E": (1, 2)}
    specialization = {name: ("constexpr", value) for name, value in values.items()}
    (kernel,) = scan([log(vllm(late("_k", details(specialization))))]).manifest.kernels
    assert kernel.variants[0].key.arguments == {
        "A": "constexpr bool True",
        "B": "constexpr float 1.0",
        "C": 'constexpr str "fp32"',
        "D": "none",
        "E": "constexpr opaque (1, 2)",
    }


def test_colours_wrappers_and_json_lines_are_seen_through(log):
    coloured = (
        "\x1b[0;36m(EngineCore pid=7)\x1b[0;0m \x1b[33mWARNING\x1b[0m \x1b[90m01-01 10:00:00\x1b[0m "
        f"\x1b[90m[jit_monitor.py:153]\x1b[0m {late('_a')}"
    )
    wrapped = json.dumps({"log": vllm(late("_b", details({"n": ("i32", "D")}))), "stream": "stderr"})
    fields = {"asctime": "2026-01-01 10:00:00,123", "levelname": "WARNING", "name": "vllm.utils", "processName": "Core"}
    structured = json.dumps({**fields, "process": 7, "message": late("_c")})
    result = scan([log(coloured, wrapped, structured, f"2026-01-01T10:00:00Z stderr F {vllm(late('_d'))}")])
    assert sorted(told(result)) == ["_a", "_b", "_c", "_d"]
    assert {row.first for row in result.rows} == {"2026-01-01T10:00:00Z"}
    assert result.manifest.kernels[1].variants[0].key.arguments == {"n": "i32 %16"}


def test_a_raised_compile_counts_once_however_many_processes_log_it(log):
    raised = f"RuntimeError: {late('_k')}"
    lines = [vllm(raised, process=process) for process in ("Worker_TP0 pid=1", "EngineCore_0 pid=2")]
    assert told(scan([log(*lines, raised)])) == {"_k": (1, 1, {"Worker_TP0 pid=1": 1})}


def test_other_compilers_and_autotuning_are_named_apart(log):
    tuned = "Triton autotuning for function _matmul,"
    result = scan([log(ACTIVE, vllm(late("gemm", backend="CuTeDSL")), tuned, "with key as (128,),", tuned)])
    assert result.rows == ()
    assert "1 line is CuTeDSL's, not Triton's: left out" in result.notes
    assert "_matmul: autotuned 2 times while serving" in result.notes


def test_a_vllm_log_without_the_monitor_proves_nothing(log):
    assert any("proves nothing" in note for note in scan([log(HEADER)]).notes)
    quiet = scan([log(ACTIVE)])
    assert not any("proves nothing" in note for note in quiet.notes)
    console = Console(width=160, color_system=None)
    with console.capture() as capture:
        console.print(text(quiet))
    assert "the log tells of no late compile" in capture.get()


def test_vllm_writes_no_year_so_the_files_own_time_gives_it(log):
    path = log(vllm(late("_old"), time="12-31 23:00:00"), vllm(late("_new"), time="01-01 11:00:00"))
    times = {row.kernel: row.first for row in scan([path]).rows}
    assert times == {"_old": "2025-12-31T23:00:00Z", "_new": "2026-01-01T11:00:00Z"}


def test_sglang_lines_tell_kernels_seconds_and_ranks(log):
    result = scan(
        [
            log(
                sglang("server_args=ServerArgs(model_path='m')", rank=""),
                sglang(compiled("_k", 1.5)),
                sglang(compiled("_k", 2.25), time="2026-01-01 10:05:00.123"),
                sglang(compiled("_k", 3.0), rank=" DP0 TP3"),
                sglang(loaded("_small")),
            )
        ]
    )
    assert told(result) == {"_k": (3, 2, {"TP0": 2, "DP0 TP3": 1})}
    row = result.rows[0]
    assert (row.seconds, row.first, row.last) == (6.75, "2026-01-01T10:00:00Z", "2026-01-01T10:05:00Z")
    assert "_small: 1 late module load, no compile" in result.notes
    assert {kernel.id for kernel in result.manifest.kernels} == {"_k"}, "a load is no variant"


def test_rows_of_a_log_are_ranked_by_seconds(log):
    lines = [sglang(compiled("_quick", 1.0)), sglang(compiled("_quick", 1.0)), sglang(compiled("_slow", 9.0))]
    assert [row.kernel for row in scan([log(*lines)]).rows] == ["_slow", "_quick"]


def test_two_logs_are_compared_by_kernel_and_key(log):
    base, other = details({"n": ("i32", "")}), details({"n": ("i32", "D")})
    rank0 = log(vllm(late("_k", base)), name="rank0.log")
    rank3 = log(vllm(late("_k", base)), vllm(late("_k", other)), name="rank3.log")
    (difference,) = compare([rank3], rank0).differences
    assert (difference.here, difference.there, difference.shared) == (2, 1, 1)
    assert difference.only_here is not None
    assert [(d.argument, d.now, d.before) for d in difference.only_here.differences] == [("n", "%16", "any")]


def test_a_packed_log_is_the_same_log(log):
    lines = [ACTIVE, vllm(late("_k"))]
    plain, packed = scan([log(*lines)]), scan([log(*lines, name="server.log.gz")])
    assert plain.rows == packed.rows


def test_a_torn_packed_log_counts_up_to_where_it_is_torn(log):
    path = log(ACTIVE, vllm(late("_k")), *(f"noise {at}" for at in range(20_000)), name="server.log.gz")
    path.write_bytes(path.read_bytes()[:-2000])
    result = scan([path])
    assert told(result)["_k"][0] == 1
    assert "torn here" in result.skipped[0].reason


@pytest.mark.parametrize("line", [late("_k")[:-30], "Triton kernel '_k' took 1.50 s to com"])
def test_a_line_that_was_cut_short_is_skipped_and_named(log, line: str):
    path = log(ACTIVE if "JIT" in line else sglang(compiled("_j", 1.0)), line)
    (skipped,) = scan([path]).skipped
    assert skipped.path == f"{path.as_posix()}:2"
    assert "cut short" in skipped.reason


@pytest.mark.parametrize(
    "content",
    [b"", b"hello\nworld\n", bytes(range(256)) * 50, b"\x1f\x8bnonsense", b"[2026-01-01 10:00:00] started\n", b"{}\n"],
    ids=["empty", "another log", "binary", "broken gzip", "another server's log", "JSON"],
)
def test_a_log_of_neither_engine_is_refused(tmp_path: Path, content: bytes):
    path = tmp_path / "some.log"
    path.write_bytes(content)
    with pytest.raises(RequestError, match=r"some\.log: (a log of neither|can't be unpacked)"):
        scan([path])


def test_hostile_lines_cost_no_time_and_move_no_cursor(log):
    lines = [
        ACTIVE,
        "a" * 60_000 + " JIT compilation during inference: x",
        vllm("Triton kernel JIT compilation during inference: evil\x1b[2J. This causes a latency spike"),
        vllm(late("_k", "constexprs={" + "(" * 30_000)),
        vllm(late("_k", "constexprs={a='" + "\\'" * 20_000 + "}; signature={}; extra_compile_info={}; key=x")),
        "{" * 50_000,
    ]
    result = scan([log(*lines)])
    assert all(row.kernel.isprintable() for row in result.rows)


PUBLISHED = """
import json, sys
import torch, triton, triton.language as tl
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

class Driver:
    def get_current_target(self): return GPUTarget("cuda", 90, 32)
    def get_current_device(self): return 0
    def get_current_stream(self, device=0): return 0

driver.set_active(Driver())

@triton.jit
def scale(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)

def note(**event):
    names = [parameter.name for parameter in event["fn"].jit_function.params]
    told = event["compile"]
    constants = {names[path[0]]: value for path, value in told["constants"].items()}
    sys.stdout.write(json.dumps({"signature": told["signature"], "constants": constants, "key": told["key"],
                                 "num_warps": told["num_warps"]}) + "\\n")

knobs.runtime.jit_post_compile_hook = note
for n, warps in ((5, 4), (32, 4), (1, 4), (5, 8)):
    scale.warmup(torch.float16, torch.float32, n, 0.5, BLOCK=64, num_warps=warps, grid=(1,))
"""


@pytest.mark.matrix
def test_keys_of_real_compiles_are_read_from_their_lines(log, tmp_path: Path):
    script = tmp_path / "server.py"
    script.write_text(PUBLISHED)
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    run = subprocess.run([sys.executable, str(script)], env=environment, check=True, capture_output=True, text=True)

    def fields(values: dict[str, object]) -> str:
        return "{" + ", ".join(f"{name}={cut(value)}" for name, value in sorted(values.items())) + "}"

    lines = []
    for event in map(json.loads, run.stdout.splitlines()):
        extra = fields({"extern_libs": (("libdevice", "/x"),), "num_warps": event["num_warps"]})
        told = f"constexprs={fields(event['constants'])}; signature={fields(event['signature'])}"
        lines.append(vllm(late("scale", f"{told}; extra_compile_info={extra}; key={cut(event['key'])}")))
    (kernel,) = scan([log(*lines)]).manifest.kernels
    pointers = {"x_ptr": "*fp16 aligned", "out_ptr": "*fp32 aligned", "factor": "fp32", "BLOCK": "constexpr int 64"}
    assert sorted((v.key.arguments["n"], str(v.key.options)) for v in kernel.variants) == [
        ("i32 %16", "{}"),
        ("i32 =1", "{}"),
        ("i32 any", "{'num_warps': 8}"),
        ("i32 any", "{}"),
    ]
    assert all(pointers.items() <= variant.key.arguments.items() for variant in kernel.variants)
