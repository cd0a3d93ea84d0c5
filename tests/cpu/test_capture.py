"""Launchers under capture: what they see, what stops them, and what is counted."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.driver import driver

import jitaudit
from jitaudit.errors import RequestError, SetupError
from jitaudit.jit.capture import Capture, capturing
from jitaudit.jit.stops import CaseStopped, HostRead, Unsupported
from jitaudit.jit.target import device_profile, require_target

pytestmark = pytest.mark.matrix


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


@pytest.fixture
def capture() -> Iterator[Capture]:
    with capturing("cuda:90") as capture:
        capture.begin(0)
        yield capture


def launches(capture: Capture) -> list[tuple[str, int]]:
    """(key, launches) of each variant that a case reached."""
    capture.end()
    seen = [variant for kernel in capture.take().values() for variant in kernel.variants.values()]
    return [(variant.key.text, variant.launches) for variant in seen if variant.cases]


# Host reads

READS = [
    (".item()", lambda t: t.sum().item()),
    (".item()", lambda t: int(t[0])),
    (".item()", lambda t: bool(t[0])),
    (".item()", lambda t: 1 if t[0] > 0 else 2),
    (".item()", lambda t: list(range(t[0]))),
    (".cpu()", lambda t: t.tolist()),
    (".cpu()", lambda t: t.cpu()),
    (".cpu()", lambda t: t.to("cpu")),
    ("torch.nonzero", lambda t: t.nonzero()),
    ("torch.equal", lambda t: torch.equal(t, t + 1)),
    ("torch.repeat_interleave", lambda t: t.repeat_interleave(t)),
]


@pytest.mark.parametrize(("operation", "read"), READS, ids=[inspect.getsource(read).strip()[:60] for _, read in READS])
def test_a_host_read_of_an_unknown_value_names_the_operation_the_tensor_and_the_line(
    capture: Capture, operation: str, read: Callable[[torch.Tensor], object]
):
    tensor = torch.empty(3, dtype=torch.int32, device="cuda")
    with pytest.raises(HostRead) as stopped:
        read(tensor)
    line = read.__code__.co_firstlineno
    assert str(stopped.value).startswith(f"{__file__}:{line}: ")
    assert "reads an unknown" in str(stopped.value)
    if operation != ".cpu()":
        assert operation in str(stopped.value)


def test_a_launchers_own_except_does_not_divert_a_stop(capture: Capture):
    def launcher() -> str:
        try:
            return str(torch.empty(1, device="cuda").item())
        except Exception:
            return "fallback"

    with pytest.raises(CaseStopped):
        launcher()


def test_known_values_answer_host_reads_and_follow_torch(capture: Capture):
    lens = jitaudit.known(torch.empty(4, dtype=torch.int32, device="cuda"), [3, 1, 4, 1])
    assert lens.tolist() == [3, 1, 4, 1]
    assert (lens * 2)[1:].max().item() == 8
    assert lens.cumsum(0).cpu().numpy().tolist() == [3, 4, 8, 9]
    assert lens.repeat_interleave(lens).shape == (9,)
    lens[0] = 7
    assert lens.sum().item() == 13


def test_known_values_of_one_part_are_not_those_of_the_whole(capture: Capture):
    lens = torch.empty(4, dtype=torch.int32, device="cuda")
    lens[:2] = 5
    with pytest.raises(HostRead):
        lens.tolist()


def test_small_tensors_that_are_built_from_data_are_known(capture: Capture):
    assert torch.tensor([2, 3], device="cuda").tolist() == [2, 3]
    assert torch.arange(3, device="cuda").sum().item() == 3
    assert torch.zeros(2, dtype=torch.bool, device="cuda").any().item() is False


RANDOM = [
    lambda: torch.randint(0, 9, (3,), device="cuda"),
    lambda: torch.zeros(3, dtype=torch.int64, device="cuda").random_(),
    lambda: torch.bernoulli(torch.tensor([0.5, 0.5], device="cuda")),
    lambda: torch.randperm(3, device="cuda"),
]


@pytest.mark.parametrize("make", RANDOM, ids=["randint", "random_", "bernoulli", "randperm"])
def test_random_values_are_never_known(capture: Capture, make: Callable[[], torch.Tensor]):
    tensor = make()
    with pytest.raises(HostRead):
        tensor.tolist()


def test_what_a_kernel_may_have_written_is_unknown(capture: Capture):
    x, out = torch.arange(64, device="cuda"), torch.zeros(64, dtype=torch.int64, device="cuda")
    copy_kernel[(1,)](x, out, 64, BLOCK=64)
    with pytest.raises(HostRead):
        out.tolist()


def test_known_writes_a_real_tensor(capture: Capture):
    assert jitaudit.known(torch.empty(2, dtype=torch.int64), 9).tolist() == [9, 9]


# Launches


def test_addresses_are_those_of_views_in_one_storage(capture: Capture):
    whole = torch.empty(64, dtype=torch.int32, device="cuda")
    other = torch.empty(1, dtype=torch.int32, device="cuda")
    assert whole.data_ptr() % 256 == other.data_ptr() % 256 == 0
    assert whole[3:].data_ptr() == whole.data_ptr() + 12
    assert whole.view(8, 8).t()[1].data_ptr() == whole.data_ptr() + 4
    assert other.data_ptr() >= whole.data_ptr() + 256


def test_a_launch_is_counted_once_its_case_ends(capture: Capture):
    x = torch.empty(64, device="cuda")
    copy_kernel[(1,)](x, x, 64, BLOCK=64)
    capture.begin(1)
    copy_kernel[(1,)](x, x, 63, BLOCK=64)
    copy_kernel[(1,)](x, x, 63, BLOCK=64)
    assert [count for _, count in launches(capture)] == [2]


def test_a_callable_grid_gets_the_bound_arguments(capture: Capture):
    seen = []

    def grid(arguments: dict[str, object]) -> tuple[int]:
        seen.append((arguments["n"], arguments["BLOCK"]))
        return (1,)

    copy_kernel[grid](torch.empty(4, device="cuda"), torch.empty(4, device="cuda"), n=4, BLOCK=128)
    assert seen == [(4, 128)]


def test_a_kept_kernel_launches_its_variant_again(capture: Capture):
    x = torch.empty(64, device="cuda")
    kept = copy_kernel[(1,)](x, x, 64, BLOCK=64)
    kept[(1,)](x, x, 64, 64)
    assert [count for _, count in launches(capture)] == [2]


def test_a_warm_up_reaches_its_variant_and_launches_nothing(capture: Capture):
    copy_kernel.warmup(torch.float32, torch.float32, 3, BLOCK=64, grid=(1,))
    ((key, count),) = launches(capture)
    assert (count, "x_ptr: *fp32 aligned" in key) == (0, True)


def test_a_tensor_on_the_host_is_refused_as_triton_does(capture: Capture):
    with pytest.raises(ValueError, match="x_ptr"):
        copy_kernel[(1,)](torch.empty(64), torch.empty(64, device="cuda"), 64, BLOCK=64)


GRIDS = [
    (None, TypeError, "subscriptable"),
    (1, TypeError, "subscriptable"),
    ((1.5,), TypeError, "float"),
    ((1, 1 << 31), OverflowError, "maximum"),
    (lambda meta: (torch.empty(1, dtype=torch.int32, device="cuda")[0],), HostRead, "reads an unknown int32"),
]


@pytest.mark.parametrize(("grid", "raises", "said"), GRIDS, ids=["None", "int", "float", "too large", "on the device"])
def test_a_grid_is_read_as_the_launcher_reads_it(
    capture: Capture, grid: object, raises: type[BaseException], said: str
):
    x = torch.empty(64, device="cuda")
    with pytest.raises(raises, match=said):
        copy_kernel[grid](x, x, 3, BLOCK=64)
    copy_kernel[(torch.tensor(2, device="cuda"),)](x, x, 3, BLOCK=64)
    assert [count for _, count in launches(capture)] == [1]


WIDTH = tl.constexpr(16)


@triton.jit
def width_kernel(x_ptr):
    tl.store(x_ptr + tl.arange(0, WIDTH), 1)


def test_a_global_that_changes_after_a_launch_is_refused_as_triton_does(capture: Capture, monkeypatch):
    x = torch.empty(64, device="cuda")
    width_kernel[(1,)](x)
    width_kernel[(1,)](x)
    monkeypatch.setitem(globals(), "WIDTH", tl.constexpr(32))
    with pytest.raises(RuntimeError, match="Global variable WIDTH has changed"):
        width_kernel[(1,)](x)
    assert [count for _, count in launches(capture)] == [2]
    width_kernel[(1,)](x)  # as in a new process


def test_an_option_of_triton_itself_may_change_between_launches(capture: Capture, monkeypatch):
    x = torch.empty(64, device="cuda")
    copy_kernel[(1,)](x, x, 3, BLOCK=64)
    monkeypatch.setattr(triton.knobs.runtime, "debug", True)
    copy_kernel[(1,)](x, x, 3, BLOCK=64)
    assert len(launches(capture)) == 2


def test_an_option_that_triton_rejects_is_rejected(capture: Capture):
    with pytest.raises(KeyError, match="num_wraps was specified but unrecognised"):
        copy_kernel[(1,)](torch.empty(4, device="cuda"), torch.empty(4, device="cuda"), 4, BLOCK=64, num_wraps=4)


# Device questions

TARGETS = [
    ("cuda:80", 108, 32, (8, 0)),
    ("cuda:90", 132, 32, (9, 0)),
    ("cuda:100", 148, 32, (10, 0)),
    ("cuda:120", 170, 32, (12, 0)),
    ("hip:gfx942", 304, 64, (9, 4)),
    ("hip:gfx950", 256, 64, (9, 5)),
]


@pytest.mark.parametrize(("target", "processors", "warp", "capability"), TARGETS)
def test_every_question_is_answered_by_one_profile(
    target: str, processors: int, warp: int, capability: tuple[int, int]
):
    with capturing(target) as capture:
        properties = torch.cuda.get_device_properties("cuda")
        assert (properties.multi_processor_count, properties.warp_size) == (processors, warp)
        assert torch.cuda.get_device_capability() == (properties.major, properties.minor) == capability
        assert torch.cuda.get_device_name() == properties.name
        assert driver.active.get_current_target().warp_size == warp
        utils = driver.active.utils.get_device_properties(0)
        assert utils["multiprocessor_count"] == processors
        assert utils["max_shared_mem"] == properties.shared_memory_per_block_optin
        assert (torch.version.hip is not None) == target.startswith("hip")
        with torch.cuda.device(0), torch.cuda.stream(torch.cuda.Stream()):
            assert torch.cuda.current_device() == 0
        assert torch.cuda.is_available()
        assert torch.empty(1, device="cuda").device == torch.device("cuda", 0)
    assert {"multi_processor_count", "warp_size", "capability", "name"} <= capture.asked


def test_the_answers_that_were_used_are_noted_and_no_others():
    with capturing("cuda:90") as capture:
        assert capture.asked == set()
        assert torch.cuda.get_device_properties(0).multi_processor_count == 132
    assert capture.asked == {"multi_processor_count"}


@pytest.mark.parametrize(
    ("question", "ask"),
    [
        ("get_device_properties().uuid", lambda: torch.cuda.get_device_properties(0).uuid),
        ("torch.cuda.utilization", lambda: torch.cuda.utilization()),
        ("elapsed_time", lambda: torch.cuda.Event().elapsed_time(torch.cuda.Event())),
        ("triton.runtime.driver.active.map_python_to_cpp_type", lambda: driver.active.map_python_to_cpp_type("i32")),
    ],
)
def test_an_unknown_question_stops_the_case_by_name(capture: Capture, question: str, ask: Callable[[], object]):
    with pytest.raises(Unsupported, match=r"has no answer offline") as stopped:
        ask()
    assert question in str(stopped.value)
    assert str(stopped.value).startswith(f"{__file__}:{ask.__code__.co_firstlineno}: ")


@pytest.mark.parametrize(
    ("target", "warp", "capability"),
    [("cuda:89", 32, (8, 9)), ("hip:gfx90a", 64, (9, 0)), ("hip:gfx1100", 32, (11, 0))],
)
def test_a_target_without_a_profile_knows_little_and_says_so(target: str, warp: int, capability: tuple[int, int]):
    with capturing(target) as capture:
        x = torch.empty(64, device="cuda")
        copy_kernel[(1,)](x, x, 64, BLOCK=64)
        assert torch.cuda.get_device_capability() == capability
        assert torch.cuda.get_device_properties(0).warp_size == warp
        for ask in (
            lambda: torch.cuda.get_device_name(),
            lambda: torch.cuda.get_device_properties(0).multi_processor_count,
            lambda: torch.cuda.mem_get_info(),
            lambda: driver.active.utils.get_device_properties(0)["max_shared_mem"],
        ):
            with pytest.raises(Unsupported):
                ask()
    assert capture.asked == {"capability", "warp_size"}


@pytest.mark.parametrize("target", ["cuda", "cuda:", "cuda:ninety", "tpu:4", "hip:942", "90", "cuda:9000"])
def test_what_is_no_target_is_refused(target: str):
    with pytest.raises(RequestError, match="not a target"):
        device_profile(target)


@pytest.mark.parametrize("target", ["cuda:10", "hip:gfx999"])
def test_a_target_that_triton_can_not_compile_for_is_refused(target: str):
    with pytest.raises(SetupError, match=f"--target {target}: this Triton can't compile for it") as refused:
        require_target(target)
    assert "\n" not in str(refused.value)
