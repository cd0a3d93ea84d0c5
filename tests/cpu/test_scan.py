"""`jitaudit scan` over hand-made caches: what is there, what came late, what one side has alone, how it grows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from made_entries import BOOT, HOUR, Made, write_entry
from rich.console import Console

from jitaudit.errors import RequestError
from jitaudit.manifest import encode
from jitaudit.report.scan import document, markdown, text
from jitaudit.scanning import Comparison, Scan, compare, scan
from jitaudit.scanning.scans import read_time
from jitaudit.scanning.tallying import grows

REPOSITORY = Path(__file__).parents[2]


def printed(result: Scan | Comparison, *, verbose: bool = False, width: int = 160) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(text(result, verbose=verbose))
    return capture.get()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Two kernels, compiled before boot, and five entries of the first after it."""
    root = tmp_path / "cache"
    for salt in ("BLOCK=64", "BLOCK=128"):
        write_entry(root, Made(salt=salt, code=salt.encode()))
    write_entry(root, Made(kernel="copy_kernel", arguments=("x_ptr: *fp16 aligned",)))
    late = Made(written=BOOT + 100, code=b"late")
    write_entry(root, replace(late, arguments=("x_ptr: *fp32 aligned", "n: i32 %16")))
    write_entry(root, replace(late, arguments=("x_ptr: *fp32 unaligned", "n: i32 any")))
    write_entry(root, replace(late, arguments=("x_ptr: *fp32 aligned",)))
    write_entry(root, replace(late, salt="BLOCK=256"))
    write_entry(root, replace(late, options={"num_warps": 8}))
    return root


def row(result: Scan, kernel: str):
    return next(row for row in result.rows if row.kernel.endswith(f":{kernel}"))


def test_rows_are_ranked_by_entries_and_say_what_splits_them(cache: Path):
    result = scan([cache])
    assert [(row.kernel, row.entries) for row in result.rows] == [
        ("server.kernels:scale_kernel", 7),
        ("server.kernels:copy_kernel", 1),
    ]
    scale = result.rows[0]
    assert {(split.argument, split.kind, split.classes) for split in scale.splits} == {
        ("n", "int_class", ("%16", "any")),
        ("n", "none", ("folded", "given")),
        ("x_ptr", "alignment", ("aligned", "unaligned")),
        ("num_warps", "option", ("8", "default")),
    }
    assert (scale.variants, scale.keys, scale.binaries) == (7, 5, 3)
    assert (scale.first, scale.last) == ("2026-01-01T00:00:00Z", "2026-01-01T00:01:40Z")
    assert scale.hours == {"2026-01-01T00Z": 7}
    assert ("JA011", "server.kernels:scale_kernel") in {(f.code, f.kernel) for f in result.findings}


def test_where_the_source_is_here_its_parameters_say_what_was_folded(tmp_path: Path):
    source = tmp_path / "kernels.py"
    source.write_text("@jit\ndef scale_kernel(x_ptr, n, stride, BLOCK: tl.constexpr):\n    pass\n")
    write_entry(tmp_path / "cache", Made(file=str(source), line=2))
    write_entry(tmp_path / "cache", Made(file=str(source), line=2, salt="BLOCK=128"))
    result = scan([tmp_path / "cache"])
    assert result.rows[0].folded == ("stride", "BLOCK")
    assert "stride, BLOCK (folded): 1 more" in printed(result)
    kernel = result.manifest.kernels[0]
    assert [(p.name, p.policy) for p in kernel.parameters][2:] == [("stride", "specialized"), ("BLOCK", "constexpr")]
    opaque = {variant.key.arguments["<folded>"] for variant in kernel.variants}
    assert len(opaque) == 2
    assert kernel.line == 1


@pytest.mark.parametrize(
    "source",
    [
        "def scale_kernel(x_ptr): pass",
        "def other_kernel(x_ptr, n): pass",
        "def scale_kernel(n, x_ptr): pass",
        "def scale_kernel(x_ptr, n",
        "(" * 10_000,
        "\0",
    ],
    ids=["fewer parameters", "no such function", "another order", "no Python", "deep", "NUL"],
)
def test_a_source_that_is_another_one_by_now_says_nothing(tmp_path: Path, source: str):
    file = tmp_path / "kernels.py"
    file.write_text(source)
    write_entry(tmp_path / "cache", Made(file=str(file)))
    result = scan([tmp_path / "cache"])
    assert result.rows[0].folded == ()
    assert result.manifest.kernels[0].variants[0].key.arguments["<folded>"].startswith("opaque ")


@pytest.mark.parametrize(
    ("layout", "file", "module"),
    [
        ({}, "venv/lib/site-packages/server/ops/a.py", "server.ops.a"),
        ({"server/__init__.py": "", "server/ops/__init__.py": ""}, "server/ops/a.py", "server.ops.a"),
        ({"pyproject.toml": ""}, "tools/a.py", "tools/a.py"),
        ({"pyproject.toml": '[tool.setuptools.package-dir]\n"my.pkg" = "src"\n', "src/__init__.py": ""}, "src/a.py",
         "my.pkg.a"),
        ({"pyproject.toml": "[tool.setuptools\n", "server/__init__.py": ""}, "server/a.py", "server.a"),
    ],
    ids=["site-packages", "package", "project", "package-dir", "broken pyproject"],
)  # fmt: skip
def test_a_kernels_module_is_told_by_where_its_file_lies(tmp_path: Path, layout, file: str, module: str):
    for name, content in {**layout, file: "def scale_kernel(x_ptr, n): pass\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    write_entry(tmp_path / "cache", Made(file=str(tmp_path / file), line=1))
    assert scan([tmp_path / "cache"]).rows[0].kernel == f"{module}:scale_kernel"


def test_an_edited_source_is_named_and_no_argument_is_blamed(tmp_path: Path):
    for line in (7, 9):
        write_entry(tmp_path, Made(line=line))
    result = scan([tmp_path])
    assert [(split.argument, split.kind) for split in result.rows[0].splits] == [("<line>", "line")]
    assert "source lines 7/9 (edited)" in printed(result)
    assert len(result.manifest.kernels[0].variants) == 2, "without the source, only the hash keeps them apart"


def test_since_shows_the_late_compiles_and_what_sets_each_apart(cache: Path):
    result = scan([cache], since="2026-01-01T00:00:50")
    scale = row(result, "scale_kernel")
    assert len(result.rows) == 1
    assert (scale.entries, scale.earlier) == (5, 2)
    assert {(d.kind, d.argument, d.now, d.before, d.entries) for d in scale.differences} == {
        ("part", "n", "%16", "any", 1),
        ("part", "n", "folded", "int i32 any", 1),
        ("part", "x_ptr", "unaligned", "aligned", 1),
        ("part", "num_warps", "8", "default", 1),
        ("hidden", "", "", "", 1),
    }
    assert {variant.key.text for variant in result.manifest.kernels[0].variants}
    assert "nothing was compiled after" in printed(scan([cache], since="2026-01-02"))


def test_a_file_may_stand_for_the_time_that_it_was_written(cache: Path, tmp_path: Path):
    marker = tmp_path / "ready"
    marker.touch()
    os.utime(marker, (BOOT + 50, BOOT + 50))
    assert scan([cache], since=str(marker)).rows == scan([cache], since="2026-01-01T00:00:50Z").rows
    assert scan([cache], since="2026-01-01T01:00:50+01:00").rows == scan([cache], since=str(marker)).rows


@pytest.mark.parametrize("wrong", ["yesterday", "25:00", "2026-13-01", "/run/no-such-marker", "", "\0"])
def test_a_time_that_cannot_be_read_is_refused(wrong: str):
    with pytest.raises(RequestError, match="no such file, and no time"):
        read_time(wrong)


def test_two_ranks_are_compared_by_identity_not_by_count(tmp_path: Path):
    shared, extra = Made(), Made(arguments=("x_ptr: *fp32 aligned", "n: i32 %16"))
    for rank, entries in {"0": [shared, Made(kernel="a_kernel")], "3": [shared, extra]}.items():
        for made in entries:
            write_entry(tmp_path / rank, made)
    result = compare([tmp_path / "3"], tmp_path / "0")
    by_name = {difference.kernel.rpartition(":")[2]: difference for difference in result.differences}
    scale, other = by_name["scale_kernel"], by_name["a_kernel"]
    assert (scale.here, scale.there, scale.shared) == (2, 1, 1)
    assert scale.only_here is not None
    assert [(d.argument, d.now, d.before) for d in scale.only_here.differences] == [("n", "%16", "any")]
    assert (other.only_here, other.only_there and other.only_there.entries) == (None, 1)
    assert "n %16, was any" in printed(result)
    assert compare([tmp_path / "3"], tmp_path / "3").differences == ()
    reversed_sides = compare([tmp_path / "0"], tmp_path / "3")
    assert {(d.kernel, d.here, d.there, d.shared) for d in reversed_sides.differences} == {
        (d.kernel, d.there, d.here, d.shared) for d in result.differences
    }


def test_a_kernel_that_only_one_side_has_may_be_asked_for(tmp_path: Path):
    write_entry(tmp_path / "a", Made(kernel="a_kernel"))
    write_entry(tmp_path / "b", Made())
    (difference,) = compare([tmp_path / "a"], tmp_path / "b", kernels=["a_*"]).differences
    assert (difference.here, difference.there) == (1, 0)
    with pytest.raises(RequestError, match="no kernel matches"):
        compare([tmp_path / "a"], tmp_path / "b", kernels=["c_*"])


def test_sides_of_other_tritons_are_said_to_share_nothing(tmp_path: Path):
    write_entry(tmp_path / "a", Made())
    write_entry(tmp_path / "b", Made(triton="3.6.0"))
    assert "share no target and Triton build" in compare([tmp_path / "a"], tmp_path / "b").notes[0]


def test_inductors_nested_cache_shows_entries_by_device(tmp_path: Path):
    for device, salts in {"0": "ab", "1": "a"}.items():
        for salt in salts:
            write_entry(tmp_path / "triton" / device, Made(salt=salt))
    (tmp_path / "fxgraph").mkdir()
    (tmp_path / "fxgraph" / "abc.py").write_text("x = 1")
    result = scan([tmp_path])
    assert result.rows[0].places == {"triton/0": 2, "triton/1": 1}
    assert (result.rows[0].entries, result.rows[0].variants) == (3, 2)
    assert result.skipped == ()
    assert scan([tmp_path / "triton" / "0", tmp_path / "triton" / "1"]).rows[0].entries == 3


def test_entries_of_another_build_or_target_stand_apart(tmp_path: Path):
    write_entry(tmp_path, Made())
    write_entry(tmp_path, Made(salt="2"))
    write_entry(tmp_path, Made(triton="3.6.0"))
    write_entry(tmp_path, Made(target=("hip", "gfx942")))
    result = scan([tmp_path])
    assert [(b.target, b.triton, b.entries) for b in result.builds] == [
        ("cuda:90", "3.7.1", 2),
        ("cuda:90", "3.6.0", 1),
        ("hip:gfx942", "3.7.1", 1),
    ]
    assert len(result.rows) == 3
    assert printed(result).count("OTHER BUILD: ") == 2
    assert result.manifest.target == "cuda:90"
    assert scan([tmp_path], target="hip:gfx942").manifest.target == "hip:gfx942"
    with pytest.raises(RequestError, match="no entry is for it; there are cuda:90, hip:gfx942"):
        scan([tmp_path], target="cuda:100")


def test_kernels_are_narrowed_by_id_or_name(cache: Path):
    assert [row.entries for row in scan([cache], kernels=["copy_*"]).rows] == [1]
    assert [row.entries for row in scan([cache], kernels=["server.kernels:s*"]).rows] == [7]
    with pytest.raises(RequestError, match="no kernel matches"):
        scan([cache], kernels=["no_such"])


def test_what_lies_beside_kernels_is_counted_apart(cache: Path):
    host, tuned = (cache / (letter * 52) for letter in "AB")
    host.mkdir()
    (host / "cuda_utils.cpython-311-x86_64-linux-gnu.so").write_bytes(b"\x7fELF")
    tuned.mkdir()
    (tuned / "matmul.autotune.json").write_text("{}")
    result = scan([cache])
    assert result.skipped == ()
    assert result.notes == (
        "1 more directory holds a autotune results, no kernel",
        "1 more directory holds a host build, no kernel",
    )


@pytest.mark.parametrize(
    ("counts", "growing"),
    [
        ([50, 4, 4, 4, 4, 4, 4, 4], True),
        ([50, 3, 2, 1, 1, 0, 0, 1], False),
        ([50, 0, 0, 0, 0, 0, 0, 0], False),
        ([1, 1, 2, 2, 4, 4, 8, 8], True),
        ([0, 0, 0, 0, 0, 0, 30, 30], False),
        ([8, 8, 8, 8, 8, 8, 0, 0], False),
        ([1, 1, 1, 1, 1, 1, 1, 1], False),
    ],
    ids=["a step a request", "flattens", "warm-up only", "speeds up", "one burst", "stopped", "too few to tell"],
)
def test_growth_that_does_not_flatten_is_found(counts: list[int], growing: bool):
    hour = HOUR * 10**9
    span = (0, len(counts) * hour - 1)
    times = [at * hour + step * hour // (count + 1) for at, count in enumerate(counts) for step in range(count)]
    assert grows(times, span) is growing


def test_a_young_cache_is_not_judged():
    assert not grows(list(range(1000)), (0, HOUR * 10**9))
    assert not grows([], None)


def test_growth_is_a_finding_that_names_what_splits(tmp_path: Path):
    for step in range(40):
        write_entry(tmp_path, Made(salt=str(step), written=BOOT + step * HOUR // 4))
    write_entry(tmp_path, Made(arguments=("x_ptr: *fp32 aligned", "n: i32 %16"), written=BOOT))
    write_entry(tmp_path, Made(triton="3.6.0", written=BOOT - 1000 * HOUR))
    result = scan([tmp_path])
    growth = [finding for finding in result.findings if finding.code == "JA008"]
    assert [finding.kernel for finding in growth] == ["server.kernels:scale_kernel"]
    assert "split by n, what does not show" in growth[0].message
    assert "GROWING" in printed(result)


def test_twenty_rows_fit_the_screen_and_the_rest_is_counted(tmp_path: Path):
    for number in range(30):
        write_entry(tmp_path, Made(kernel=f"kernel_{number:02}"))
    short, long = printed(scan([tmp_path])), printed(scan([tmp_path]), verbose=True)
    assert sum("kernel_" in line for line in short.splitlines()) == 20
    assert short.rstrip().endswith("10 more, use -v")
    assert long.count(":kernel_") >= 30
    assert "more, use -v" not in long
    assert max(map(len, short.splitlines())) <= 160


def test_markdown_and_json_say_the_same_as_the_screen(cache: Path):
    result = scan([cache])
    page, data = markdown(result), document(result)
    assert "| server.kernels:scale_kernel |       7 |" in page
    assert data.kernels == result.rows
    assert "| server.kernels:copy_kernel " in markdown(compare([cache], _one(cache)))


def _one(cache: Path) -> Path:
    other = cache.parent / "other"
    write_entry(other, Made(salt="elsewhere"))
    return other


SCANNED = """
import sys
from pathlib import Path
from rich.console import Console
from jitaudit.manifest import encode
from jitaudit.report.scan import markdown, text
from jitaudit.scanning import scan
result = scan([Path(sys.argv[1])])
Console(width=160, color_system=None).print(text(result))
print(markdown(result), encode(result.manifest).decode())
"""


def test_order_locale_zone_and_hash_seed_change_no_byte(cache: Path, tmp_path: Path):
    backwards = tmp_path / "other"  # a name as long as the cache's: group files hold their own path
    for folder in sorted(cache.iterdir(), reverse=True):
        (backwards / folder.name).mkdir(parents=True)
        for file in sorted(folder.iterdir(), reverse=True):
            data = file.read_bytes().replace(os.fsencode(cache), os.fsencode(backwards))
            (backwards / folder.name / file.name).write_bytes(data)
            os.utime(backwards / folder.name / file.name, ns=(0, file.stat().st_mtime_ns))
    outputs = set()
    for seed, root, surroundings in (
        ("0", cache, {"LC_ALL": "C.UTF-8", "TZ": "UTC"}),
        ("1", cache, {"LC_ALL": "C", "TZ": "Asia/Tokyo", "PYTHONUTF8": "1"}),
        ("2", backwards, {"LC_ALL": "tr_TR.UTF-8", "TZ": "America/New_York", "PYTHONUTF8": "1"}),
    ):
        environment = {**os.environ, **surroundings, "PYTHONHASHSEED": seed, "PYTHONPATH": str(REPOSITORY)}
        command = [sys.executable, "-c", SCANNED, str(root)]
        outputs.add(subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout)
    assert len(outputs) == 1


def test_a_scan_writes_nothing(cache: Path):
    def state() -> dict[str, tuple[int, int]]:
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(cache.rglob("*"))}

    before = state()
    scan([cache])
    compare([cache], cache)
    assert state() == before


def test_encoding_a_scans_manifest_is_plain_json(cache: Path):
    written = json.loads(encode(scan([cache]).manifest))
    assert {variant["origin"] for kernel in written["kernels"] for variant in kernel["variants"]} == {"cache"}
    assert written["environment"] == {"python": "unknown", "torch": "unknown", "triton": "3.7.1", "variables": {}}
