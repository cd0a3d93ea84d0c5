"""Sweeps in processes of their own: what one leaves behind, in memory or on disk, reaches no other, nor the user."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from jitaudit.errors import Interrupted, RequestError
from jitaudit.judging import judge
from jitaudit.model import Finding, Manifest
from jitaudit.sweeping import Narrowing, run

HEAD = """
from pathlib import Path
import torch, triton, triton.language as tl
import jitaudit

@triton.jit
def fill_kernel(x_ptr, n, LENGTH: tl.constexpr):
    tl.store(x_ptr + n, LENGTH)

def launch(length=1, n=3):
    fill_kernel[(1,)](torch.empty(64, device="cuda"), n, length)
"""


@pytest.fixture
def sweeps(tmp_path: Path) -> Callable[..., Manifest]:
    """Run a file of sweeps that begins with `HEAD`."""
    (tmp_path / "pyproject.toml").touch()

    def run_text(body: str, **narrowing: object) -> Manifest:
        file = tmp_path / "sweeps.py"
        file.write_text(HEAD + textwrap.dedent(body))
        return run([str(file)], "cuda:90", Narrowing(**narrowing))

    return run_text


def findings(manifest: Manifest, code: str) -> list[Finding]:
    return [finding for finding in manifest.findings if finding.code == code]


def counts(manifest: Manifest) -> dict[str, int]:
    return {kernel.id.rpartition(":")[2]: len(kernel.variants) for kernel in manifest.kernels}


def test_nothing_is_written_outside_and_nothing_is_left_for_the_next_sweep(sweeps, tmp_path, monkeypatch):
    """A library that keeps tuned results at home neither writes there nor finds what another sweep made up."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    manifest = sweeps(
        """
        def tuned(length):
            database = Path.home() / ".library" / "tuned.txt"
            known = database.read_text() if database.is_file() else ""
            if str(length) not in known:
                launch(100 + length)  # a benchmark run
            database.parent.mkdir(exist_ok=True)
            database.write_text(known + str(length))
            launch(length)

        @jitaudit.sweep(length=jitaudit.ints(1, 3))
        def first(length):
            tuned(length)

        @jitaudit.sweep(length=jitaudit.ints(1, 3))
        def second(length):
            tuned(length)
        """
    )
    assert list((tmp_path / "home").iterdir()) == []
    assert [kernel.launches for kernel in manifest.kernels] == [12]


def test_what_the_import_wrote_at_home_is_put_back_in_place(sweeps):
    manifest = sweeps(
        """
        DATABASE = Path.home() / "made.txt"
        DATABASE.write_text("1")
        OPEN = DATABASE.open("r+")

        def grow():
            length = int(OPEN.read())
            launch(length)
            OPEN.seek(0); OPEN.write(str(length + 1)); OPEN.flush(); OPEN.seek(0)

        @jitaudit.sweep(case=jitaudit.ints(1, 2))
        def first(case):
            grow()

        @jitaudit.sweep(case=jitaudit.ints(1, 3))
        def second(case):
            OPEN.seek(0)
            grow()
        """
    )
    assert counts(manifest) == {"fill_kernel": 3}


def test_groups_do_not_see_each_others_caches(sweeps):
    manifest = sweeps(
        """
        seen = set()

        @jitaudit.sweep(length=jitaudit.ints(1, 4), policy=["old", "new"], compare="policy")
        def compared(length, policy):
            if length not in seen:
                seen.add(length)
                launch(length)
        """
    )
    assert [(kernel.group, len(kernel.variants)) for kernel in manifest.kernels] == [("new", 4), ("old", 4)]


KILLS = """
import os, signal

@jitaudit.sweep(n=jitaudit.ints(1, 8))
def fatal(n):
    launch(n)
    if n == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    if n >= {last}:
        os._exit(3)
"""


def test_a_case_that_kills_its_process_stops_that_case(sweeps, capfd):
    manifest = sweeps(KILLS.format(last=8))
    assert [(finding.case, finding.message) for finding in findings(manifest, "JA013")] == [
        ("n=3", "its process died of SIGSEGV"),
        ("n=8", "its process ended with code 3"),
    ]
    assert (manifest.sweeps[0].verdict, manifest.sweeps[0].counted) == ("partial", 6)
    assert counts(manifest) == {"fill_kernel": 6}
    assert re.search(r'sweeps.py", line \d+ in fatal', capfd.readouterr().err)


def test_a_sweep_whose_cases_go_on_killing_its_process_is_named(sweeps):
    with pytest.raises(RequestError, match=r"sweeps\.py:fatal at n=7: its process ended with code 3, and 3 cases"):
        sweeps(KILLS.format(last=5))


def test_a_thread_pool_that_the_import_started_works_in_every_sweep(sweeps):
    manifest = sweeps(
        """
        from concurrent.futures import ThreadPoolExecutor
        POOL = ThreadPoolExecutor(1)
        POOL.submit(lambda: 1).result()

        @jitaudit.sweep(n=[1, 2])
        def first(n):
            POOL.submit(launch, n).result()

        @jitaudit.sweep(n=[3])
        def second(n):
            POOL.submit(launch, n).result()
        """
    )
    assert counts(manifest) == {"fill_kernel": 3}


def test_every_generator_starts_alike(sweeps):
    body = """
        import numpy as np, random

        @jitaudit.sweep(n=jitaudit.ints(1, 4))
        def drawn(n):
            launch(int(np.random.randint(0, 2**20)), random.randrange(2**20) + int(torch.randint(0, 2**20, (1,))))
        """
    assert sweeps(body).kernels == sweeps(body).kernels


RAISES = [
    # what the case raises, what is said of it
    ("raise Odd('no such card')", "# HERE: Odd: no such card"),
    ("torch.empty(2).view(3)", "# HERE: RuntimeError: shape"),
    ("fill_kernel[(1,)](1)", "# HERE: TypeError: "),
    ("fill_kernel[(1,)](torch.empty(64, device='cuda'), n, 1, num_warp=4)", "# HERE: KeyError: "),
]


@pytest.mark.parametrize(("raises", "said"), RAISES, ids=[raises for raises, _ in RAISES])
def test_whatever_a_case_raises_stops_that_case_at_the_launchers_own_line(sweeps, tmp_path, raises, said):
    manifest = sweeps(
        f"""
        class Odd(BaseException): pass

        @jitaudit.sweep(n=jitaudit.ints(1, 2))
        def odd(n):
            if n == 2:
                {raises}  # HERE
            launch(n)
        """
    )
    lines = (tmp_path / "sweeps.py").read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if text.endswith("# HERE"))
    (finding,) = findings(manifest, "JA013")
    assert said.replace("# HERE", f"{tmp_path}/sweeps.py:{line}") in finding.message
    assert (finding.case, manifest.sweeps[0].counted, counts(manifest)) == ("n=2", 1, {"fill_kernel": 1})


def test_an_interrupt_is_no_finding(sweeps):
    with pytest.raises(Interrupted):
        sweeps(
            """
            @jitaudit.sweep(n=[1, 2])
            def interrupted(n):
                raise KeyboardInterrupt
            """
        )


SWALLOWED = [
    # how, what was asked, code
    ("except: n = 16", "int(torch.empty(1, device='cuda'))", "JA009"),
    ("finally: n = 16; launch(n); return", "int(torch.empty(1, device='cuda'))", "JA009"),
    ("except: n = 16", "torch.cuda.utilization()", "JA014"),
    ("except BaseException as error: raise ValueError('no n') from error", "torch.cuda.utilization()", "JA014"),
]


@pytest.mark.parametrize(("how", "asked", "code"), SWALLOWED, ids=[f"{how} {code}" for how, _, code in SWALLOWED])
def test_a_stop_that_the_launcher_swallows_still_stops_the_case(sweeps, how, asked, code):
    manifest = sweeps(
        f"""
        @jitaudit.sweep(case=[1])
        def swallows(case):
            try: n = {asked}
            {how}
            launch(n)
        """
    )
    (finding,) = [finding for finding in manifest.findings if finding.code in ("JA009", "JA013", "JA014")]
    assert (finding.code, manifest.sweeps[0].counted, counts(manifest)) == (code, 0, {})


def test_compiled_helpers_run_eagerly(sweeps):
    manifest = sweeps(
        """
        @torch.compile
        def padded(n):
            launch(n)
            return torch.empty(n, device="cuda") + 1

        @jitaudit.sweep(n=jitaudit.ints(1, 3))
        def compiled(n):
            padded(n)
        """
    )
    assert counts(manifest) == {"fill_kernel": 3}


# Orders

GROWING = """
longest = 0

@jitaudit.sweep(length=jitaudit.ints(1, 16))
def growing(length):
    global longest
    longest = max(longest, length)
    launch(longest)

@jitaudit.sweep(length=jitaudit.ints(1, 16))
def steady(length):
    launch(100 + length)
"""


def test_counts_that_depend_on_the_order_are_reported(sweeps):
    manifest = sweeps(GROWING, orders=True)
    (finding,) = findings(manifest, "JA010")
    assert finding.name == "order-dependent"
    assert finding.sweep.endswith(":growing")
    assert "ascending 16 (first at length=1; length=2; length=3; … 13 more)" in finding.message
    assert "descending 1 (first at length=16)" in finding.message
    assert "shuffled " in finding.message
    assert counts(manifest) == {"fill_kernel": 32}  # what the ascending order reaches


def test_orders_are_not_tried_unless_asked(sweeps):
    assert findings(sweeps(GROWING), "JA010") == []


# Host reads

READING = """
@jitaudit.sweep(n=jitaudit.ints(2, 3))
def reading(n):
    lens = torch.empty(n, dtype=torch.int64, device="cuda")
    longest = int(lens.max())  # READ
    if bool(lens.any()):  # ASK
        launch(longest)
"""


@pytest.fixture
def lines(tmp_path: Path) -> Callable[[], dict[str, str]]:
    def numbered() -> dict[str, str]:
        text = (HEAD + textwrap.dedent(READING)).splitlines()
        return {
            mark: f"sweeps.py:{number}"
            for number, line in enumerate(text, 1)
            for mark in ("READ", "ASK")
            if mark in line
        }

    return numbered


def test_a_host_read_is_a_finding(sweeps, lines):
    manifest = sweeps(READING)
    (finding,) = findings(manifest, "JA009")
    assert (
        f"{lines()['READ']}: .item() reads an unknown int64 tensor of shape () on the host (2 cases)" in finding.message
    )
    assert [(run.verdict, run.counted) for run in manifest.sweeps] == [("launched nothing", 0)]


def test_a_host_value_answers_one_line(sweeps, lines):
    manifest = sweeps(READING, host_values=(f"{lines()['READ']}=7",))
    (answered, stopped) = sorted(findings(manifest, "JA009"), key=lambda finding: "--host-value" not in finding.message)
    assert "counted for 7" in answered.message
    assert lines()["ASK"] in stopped.message


def test_each_value_of_a_range_is_a_case(sweeps, lines):
    manifest = sweeps(READING, host_values=(f"{lines()['READ']}=1..4", f"{lines()['ASK']}=true"))
    (swept,) = manifest.sweeps
    assert (swept.cases, swept.counted, swept.verdict) == (8, 8, "pass")
    assert swept.axes == {"n": ("2..3",), lines()["READ"]: ("1..4",)}
    assert counts(manifest) == {"fill_kernel": 4}


def test_a_branch_that_is_not_taken_launches_nothing_and_never_passes(sweeps, lines):
    manifest = sweeps(READING, host_values=(f"{lines()['READ']}=7", f"{lines()['ASK']}=false"))
    assert [(run.verdict, run.counted) for run in manifest.sweeps] == [("launched nothing", 2)]
    assert len(findings(manifest, "JA007")) == 1


@pytest.mark.parametrize("text", ["sweeps.py=7", "sweeps.py:12", "sweeps.py:12=", "sweeps.py:12=many"])
def test_a_host_value_that_cannot_be_read_is_refused(sweeps, text):
    with pytest.raises(RequestError, match="--host-value"):
        sweeps(READING, host_values=(text,))


def test_a_host_value_for_a_line_that_reads_nothing_is_refused(sweeps):
    with pytest.raises(RequestError, match="no case read an unknown value there"):
        sweeps(READING, host_values=("sweeps.py:1=7",))


def test_the_lines_that_read_or_stopped_a_case_are_named_where_another_is_given(sweeps, lines, tmp_path):
    read, asked = lines()["READ"], lines()["ASK"]
    with pytest.raises(RequestError, match=f"there are {tmp_path}/{asked}, {read}$"):
        sweeps(READING, host_values=("sweeps.py:1=7", f"{read}=7"))


@pytest.mark.parametrize("value", ["1,2.5", "inf", "nan"])
def test_a_host_value_that_the_line_cannot_read_is_refused(sweeps, lines, value):
    with pytest.raises(RequestError, match=f"--host-value {lines()['READ']}=.*: the line reads int64"):
        sweeps(READING, host_values=(f"{lines()['READ']}={value}",))


def test_two_host_values_for_one_line_are_refused(sweeps):
    with pytest.raises(RequestError, match=r"sweeps\.py:12 is given twice"):
        sweeps(READING, host_values=("sweeps.py:12=1", "sweeps.py:12=2"))


def test_a_kernel_whose_cases_all_stopped_after_it_is_not_called_unlaunched(sweeps):
    manifest = sweeps(
        """
        @triton.jit
        def forgotten_kernel(x_ptr): ...

        @jitaudit.sweep(n=[1])
        def stops(n):
            launch(n)
            torch.empty(1, device="cuda").item()
        """
    )
    assert [finding.kernel for finding in findings(manifest, "JA006")] == ["sweeps.py:forgotten_kernel"]


# Stubs

STUBBED = """
import absent_engine
from absent_engine.kernels import attention

@jitaudit.sweep(n=[3])
def passing(n):
    held = (absent_engine.VERSION, attention)  # passed around, never asked
    launch()

@jitaudit.sweep(n=[3])
def asking(n):
    if absent_engine.HAS_TRITON:
        return
    launch()

@jitaudit.sweep(n=[3])
def calling(n):
    attention(n)

@jitaudit.sweep(n=[3])
def comparing(n):
    launch(2 if absent_engine.VERSION == "2" else 1)

@jitaudit.sweep(n=[3])
def looking(n):
    launch(2 if hasattr(absent_engine, "flash") else 1)

@jitaudit.sweep(n=[3])
def looking_deeper(n):
    launch(getattr(absent_engine.flash, "LENGTH", 1))

@jitaudit.sweep(n=[3])
def compiling(n):
    launch(absent_engine.LENGTH)
"""


def test_a_package_that_is_not_there_is_refused(sweeps):
    with pytest.raises(RequestError, match="No module named 'absent_engine'"):
        sweeps(STUBBED)


def test_a_stub_cannot_divert_a_launcher(sweeps):
    """Whatever asks what it is worth stops the case: 128 passes with nothing launched would be a lie."""
    manifest = sweeps(STUBBED, stubs=("absent_engine",))
    assert manifest.profile.stubs == ("absent_engine",)
    verdicts = {run.name.rpartition(":")[2]: run.verdict for run in manifest.sweeps}
    assert verdicts == {
        "passing": "pass",
        "asking": "launched nothing",
        "calling": "launched nothing",
        "comparing": "launched nothing",
        "looking": "launched nothing",
        "looking_deeper": "launched nothing",
        "compiling": "launched nothing",
    }
    messages = [finding.message for finding in findings(manifest, "JA014")]
    assert len(messages) == 6
    assert any("absent_engine.HAS_TRITON, a --stub, has no answer" in message for message in messages)
    assert any("absent_engine.kernels.attention, a --stub, has no answer" in message for message in messages)


def test_a_stub_used_on_import_is_an_error(sweeps):
    with pytest.raises(RequestError, match=r"absent_engine\.decorate, a --stub"):
        sweeps("import absent_engine\n@absent_engine.decorate\ndef f(): ...\n", stubs=("absent_engine",))


def test_a_stub_never_hides_a_package(sweeps):
    with pytest.raises(RequestError, match="--stub json: it is installed here"):
        sweeps("", stubs=("json",))


# Kernels that do not exist yet


def test_a_kernel_that_a_factory_makes_is_counted_and_found_by_its_source(sweeps):
    manifest = sweeps(
        """
        def factory(scale):
            @triton.jit
            def made_kernel(x_ptr, n, SCALE: tl.constexpr):
                tl.store(x_ptr + n, SCALE)
            return made_kernel

        @jitaudit.sweep(n=jitaudit.ints(2, 4))
        def made(n):
            factory(n)[(1,)](torch.empty(64, device="cuda"), 3, n)
        """
    )
    (kernel,) = manifest.kernels
    assert (kernel.id, kernel.object, len(kernel.variants)) == ("sweeps.py:factory.<locals>.made_kernel", None, 3)
    assert (kernel.file, kernel.source[:7]) == ("sweeps.py", "sha256:")
    (finding,) = [finding for finding in judge(manifest) if finding.code == "JA012"]
    assert "counted, but warm can't find it again" in finding.message


def test_kernels_of_one_name_and_two_sources_are_two(sweeps):
    """One branch of a factory or the other, generated code: a key of both is two compiles."""
    manifest = sweeps(
        """
        def make(doubled):
            if doubled:
                @triton.jit
                def made_kernel(x_ptr):
                    tl.store(x_ptr, 2)
            else:
                @triton.jit
                def made_kernel(x_ptr):
                    tl.store(x_ptr, 1)
            return made_kernel

        @jitaudit.sweep(doubled=[False, True])
        def first(doubled):
            make(doubled)[(1,)](torch.empty(4, device="cuda"))

        @jitaudit.sweep(doubled=[True])
        def second(doubled):
            make(doubled)[(1,)](torch.empty(4, device="cuda"))
        """
    )
    digest = manifest.kernels[1].source.removeprefix("sha256:")[:8]
    assert counts(manifest) == {"make.<locals>.made_kernel": 1, f"make.<locals>.made_kernel#{digest}": 1}
    assert [kernel.launches for kernel in manifest.kernels] == [1, 2]
    assert len({kernel.source for kernel in manifest.kernels}) == 2


def test_generated_code_has_a_stable_file(sweeps):
    manifest = sweeps(
        """
        import importlib.util

        def generated():
            file = Path.home() / "generated.py"
            body = "def new_kernel(x_ptr):\\n    tl.store(x_ptr, 1)\\n"
            file.write_text("import triton, triton.language as tl\\n@triton.jit\\n" + body)
            spec = importlib.util.spec_from_file_location("generated", file)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module.new_kernel

        @jitaudit.sweep(n=jitaudit.ints(1, 2))
        def generates(n):
            generated()[(1,)](torch.empty(n, device="cuda"))
        """
    )
    assert [(kernel.file, kernel.launches) for kernel in manifest.kernels] == [("~/generated.py", 2)]
