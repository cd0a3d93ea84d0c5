"""What launchers ask of the world while nothing is there, and what runs inside a capture."""

from __future__ import annotations

import copy
import io
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from jitaudit.jit.capture import Capture, capturing
from jitaudit.jit.stops import HostRead, Unsupported
from jitaudit.jit.values import known

pytestmark = pytest.mark.matrix


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


@triton.jit
def seeded_kernel(x_ptr, seed, offset):
    tl.store(x_ptr, seed + offset)


@triton.jit
def addressed_kernel(table_ptr, value):
    pages = table_ptr.to(tl.pointer_type(tl.int64))
    tl.store(pages, value)


@pytest.fixture
def capture() -> Iterator[Capture]:
    with capturing("cuda:90") as under_way:
        under_way.begin(0)
        yield under_way


def keys(capture: Capture) -> dict[str, int]:
    """Kernel → how many variants the case reached."""
    capture.end()
    return {kernel.function.__name__: len(kernel.variants) for kernel in capture.take().values()}


def launch(x: torch.Tensor, y: torch.Tensor) -> None:
    copy_kernel[(1,)](x, y, x.numel(), BLOCK=64)


# Questions


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda: torch.cuda.is_available(), True),
        (lambda: torch.cuda.device_count(), 1),
        (lambda: torch.cuda.current_device(), 0),
        (lambda: torch.cuda.get_device_capability(), (9, 0)),
        (lambda: torch.cuda.get_device_name(), "NVIDIA H200"),
        (lambda: torch.cuda.get_device_properties(0).multi_processor_count, 132),
        (lambda: torch.cuda.get_device_properties("cuda").major, 9),
        (lambda: torch.cuda.get_arch_list(), ["sm_90"]),
        (lambda: torch.cuda.is_bf16_supported(), True),
        (lambda: torch.cuda.memory_allocated(), 0),
        (lambda: torch.cuda.memory_stats(), {}),
        (lambda: torch.cuda.memory_stats()["allocated_bytes.all.peak"], 0),
        (lambda: torch.cuda.mem_get_info()[0], 150110011392),
        (lambda: torch.cuda.is_current_stream_capturing(), False),
        (lambda: torch.accelerator.is_available(), True),
        (lambda: torch.accelerator.current_accelerator().type, "cuda"),
        (lambda: torch.accelerator.device_count(), 1),
        (lambda: torch.get_device_module("cuda").device_count(), 1),
        (lambda: torch.version.hip, None),
        (lambda: triton.runtime.driver.active.get_current_target().arch, 90),
        (lambda: triton.runtime.driver.active.get_current_device(), 0),
        (lambda: triton.runtime.driver.active.get_active_torch_device(), torch.device("cuda", 0)),
        (lambda: triton.runtime.driver.active.utils.get_device_properties(0)["max_shared_mem"], 232448),
        (lambda: triton.testing.do_bench(lambda: None, quantiles=[0.5, 0.2, 0.8]), [1.0, 1.0, 1.0]),
        (lambda: triton.testing.do_bench(lambda: None), 1.0),
        (lambda: triton.testing.do_bench_cudagraph(lambda: None), 1.0),
    ],
)
def test_a_question_is_answered_from_the_profile(capture: Capture, ask: Callable[[], object], answer: object):
    assert ask() == answer


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda: torch.cuda.utilization(), "torch.cuda.utilization"),
        (lambda: torch.cuda.temperature(), "torch.cuda.temperature"),
        (lambda: torch.cuda.get_device_properties(0).clock_rate, "get_device_properties().clock_rate"),
        (lambda: torch.cuda.Event().elapsed_time(torch.cuda.Event()), "torch.cuda.Event.elapsed_time"),
        (lambda: triton.runtime.driver.active.launcher_cls, "triton.runtime.driver.active.launcher_cls"),
        (lambda: triton.runtime.driver.active.utils.load_binary, "triton.runtime.driver.active.utils.load_binary"),
        (lambda: torch.autocast("cuda").__enter__(), 'torch.autocast("cuda")'),
    ],
)
def test_an_unanswered_question_is_named_with_the_line_that_asks(
    capture: Capture, ask: Callable[[], object], named: str
):
    with pytest.raises(Unsupported, match="has no answer offline") as stopped:
        ask()
    assert named in str(stopped.value)
    assert __file__ in str(stopped.value)


def test_what_torch_lacks_is_missing_here_too(capture: Capture):
    assert getattr(torch.cuda.get_device_properties(0), "max_shared_memory", None) is None


def test_the_answers_that_were_used_are_noted(capture: Capture):
    assert torch.cuda.get_device_properties(0).multi_processor_count == 132
    assert torch.cuda.get_device_capability() == (9, 0)
    assert capture.asked == {"multi_processor_count", "capability"}


def test_amd_is_asked_as_amd():
    """No branch of another backend is forced on a launcher."""
    with capturing("hip:gfx942"):
        assert torch.version.hip is not None
        assert torch.version.cuda is None
        assert triton.runtime.driver.active.get_current_target().backend == "hip"


def test_streams_events_and_graphs_do_nothing(capture: Capture):
    x, y = torch.empty(64, device="cuda"), torch.empty(64, device="cuda")
    stream, event = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        launch(x, y)
        event.record(stream)
    x.record_stream(stream)
    torch.cuda.current_stream().wait_event(event)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch(x, y)
    graph.replay()
    torch.cuda.synchronize()
    assert event.query()
    assert keys(capture) == {"copy_kernel": 1}


def test_streams_are_told_apart(capture: Capture):
    default, stream = torch.cuda.default_stream(), torch.cuda.Stream(priority=-1)
    assert torch.cuda.current_stream() == default
    for current in (stream, torch.cuda.stream(stream)):
        with current:
            assert torch.cuda.current_stream() == stream
        assert torch.cuda.current_stream() == default
    assert (stream.priority, default.priority, default.cuda_stream) == (-1, 0, 0)
    assert len({default, stream, torch.cuda.Stream()}) == 3
    assert len({default.cuda_stream, stream.cuda_stream, torch.cuda.Stream().cuda_stream}) == 3
    assert torch.cuda.ExternalStream(4096).cuda_stream == 4096
    assert isinstance(torch.cuda.ExternalStream(4096), torch.cuda.ExternalStream)
    with torch.Stream(device="cuda") as current:
        assert torch.accelerator.current_stream() == current
        torch.Event("cuda").record(current)


def test_a_graph_capture_is_under_way_inside_it(capture: Capture):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        assert torch.cuda.current_stream() != torch.cuda.default_stream()
    assert not torch.cuda.is_current_stream_capturing()
    graph.capture_begin()
    assert torch.cuda.is_current_stream_capturing()
    graph.capture_end()
    assert not torch.cuda.is_current_stream_capturing()


def test_profiler_ranges_do_nothing(capture: Capture):
    with torch.cuda.nvtx.range("a step"):
        torch.cuda.nvtx.range_push("a part")
        torch.cuda.nvtx.mark("here")
        torch.cuda.nvtx.range_pop()
        torch.cuda.nvtx.range_end(torch.cuda.nvtx.range_start("another"))


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_optimizers_step(capture: Capture, optimizer: type[torch.optim.Optimizer]):
    module = torch.nn.Linear(4, 4, device="cuda")
    module(torch.empty(2, 4, device="cuda")).sum().backward()
    optimizer(module.parameters(), lr=0.1).step()  # type: ignore[call-arg]


def test_a_generator_has_a_gpus_seed_and_offset(capture: Capture):
    torch.cuda.manual_seed(7)
    generator = torch.cuda.default_generators[0]
    seed, offset = generator.get_state().view(torch.int64).tolist()
    assert (seed, offset) == (7, 0)
    for step in (0, 4, 16):  # launchers advance the offset by hand: %16 and other offsets are two classes
        generator.set_state(torch.tensor([7, step]).view(torch.uint8))
        seeded_kernel[(1,)](torch.empty(1, device="cuda"), *generator.get_state().view(torch.int64).tolist())
    assert keys(capture) == {"seeded_kernel": 2}
    own = torch.Generator(device="cuda").manual_seed(3)
    assert (own.initial_seed(), own.device.type) == (3, "cuda")
    assert torch.rand(4, device="cuda", generator=own).is_cuda


@pytest.mark.parametrize(
    ("draw", "offset"),
    [
        (lambda g: None, 0),
        (lambda g: torch.rand(1000, device="cuda", generator=g), 4),
        (lambda g: (torch.randn(3, device="cuda", generator=g), torch.empty(5, device="cuda").normal_(generator=g)), 8),
        (lambda g: torch.rand(0, device="cuda", generator=g), 0),
        (lambda g: torch.rand(10_000_000, device="cuda", generator=g), 40),  # 132 processors of 8 blocks
        (lambda g: torch.rand(10_000_000, dtype=torch.float64, device="cuda", generator=g), 76),
        (lambda g: torch.rand(4, generator=torch.Generator("cpu")), 0),
    ],
)
def test_random_operations_move_the_generator_as_on_a_gpu(
    capture: Capture, draw: Callable[[torch.Generator | None], object], offset: int
):
    torch.cuda.manual_seed(7)
    own = torch.Generator("cuda")
    draw(None), draw(own)
    assert (torch.cuda.default_generators[0].get_offset(), own.get_offset()) == (offset, offset)
    torch.randperm(4, device="cuda", generator=own)
    with pytest.raises(Unsupported, match=r"Generator after torch\.randperm"):
        own.get_state()
    assert own.manual_seed(3).get_offset() == 0


def test_initializers_read_nothing(capture: Capture):
    weight = torch.nn.Parameter(torch.empty(4, 4, device="cuda"))
    assert torch.nn.init.trunc_normal_(weight) is weight


def test_random_states_can_be_kept_and_put_back(capture: Capture):
    state = torch.cuda.get_rng_state()
    torch.cuda.manual_seed_all(5)
    assert torch.cuda.initial_seed() == 5
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.cuda.get_rng_state(), state)


def test_pinned_memory_may_be_read_by_a_kernel_but_not_written(capture: Capture):
    pinned, x = torch.zeros(64).pin_memory(), torch.empty(64, device="cuda")
    assert pinned.is_pinned()
    assert not torch.zeros(64).is_pinned()
    launch(pinned, x)
    with pytest.raises(Unsupported, match="writes pinned host memory"):
        launch(x, pinned)


def test_a_kernel_cannot_reach_pageable_memory(capture: Capture):
    x = torch.empty(64, device="cuda")
    launch(x, x)
    with pytest.raises(ValueError, match="x_ptr is a tensor on cpu"):
        launch(torch.empty(64), x)


def test_what_the_card_can_is_its_profiles():
    for target, new in (("cuda:75", False), ("cuda:90", True), ("hip:gfx942", True)):
        with capturing(target):
            assert torch.cuda.is_bf16_supported()
            assert torch.cuda.is_bf16_supported(including_emulation=False) is new
            assert torch.cuda.is_tf32_supported() is new
            assert torch.backends.cuda.is_built()
            assert torch.get_device_module() is torch.cuda is torch.get_device_module("cuda")


def test_autocast_is_refused_however_it_is_switched_on(capture: Capture):
    with pytest.raises(Unsupported, match="set_autocast_enabled"):
        torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_enabled("cuda", False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16


# Tensors


def test_a_stand_in_is_a_plain_tensor_on_cuda(capture: Capture):
    x = torch.empty(8, 16, device="cuda")
    assert type(x) is torch.Tensor
    assert (x.is_cuda, x.is_meta, x.is_cpu, x.device) == (True, False, False, torch.device("cuda", 0))
    assert x[1].data_ptr() == x.data_ptr() + 64
    assert x.data_ptr() % 256 == 0
    assert x.untyped_storage().data_ptr() == x[3].untyped_storage().data_ptr() == x.data_ptr()
    assert torch.empty(1, device="cuda").data_ptr() != x.data_ptr()


def test_a_tensor_of_no_elements_is_at_0(capture: Capture):
    x = torch.empty(64, device="cuda")
    assert (x[1:1].data_ptr(), x[64:].data_ptr(), torch.empty(0, device="cuda").data_ptr()) == (0, 0, 0)
    launch(x[1:1], x)
    launch(x[:0], x)
    assert keys(capture) == {"copy_kernel": 1}


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.empty(4, device=torch.cuda.current_device()),
        lambda: torch.zeros(4, device=0),
        lambda: torch.arange(4, device=0),
        lambda: torch.empty_like(torch.empty(4), device=0),
        lambda: torch.empty(4).new_empty(4, device=0),
        lambda: torch.tensor([1], device=0),
        lambda: torch.nn.Linear(4, 4, device=0).weight,
        lambda: torch.nn.Linear(4, 4).to(0).weight,
        lambda: torch.nn.Linear(4, 4).to(device=0).weight,
        lambda: torch.empty(4, device=torch.device(torch.cuda.current_device())),
        lambda: torch.empty(4, device=torch.device(index=0)),
    ],
)
def test_a_device_may_be_a_number(capture: Capture, make: Callable[[], torch.Tensor]):
    assert make().device == torch.device("cuda", 0) == torch.device(0)


def test_devices_are_what_they_were(capture: Capture):
    with torch.device(0):
        x = torch.empty(4)
    assert isinstance(x.device, torch.device)
    assert not isinstance("cuda", torch.device)
    assert {torch.device: "found"}[type(x.device)] == "found"
    assert (torch.device("cpu").type, torch.device("cuda:0").index) == ("cpu", 0)
    for device in (x.device, torch.device("cpu")):
        assert pickle.loads(pickle.dumps(device)) == copy.deepcopy(device) == device


def test_storages_and_files_and_other_libraries_tensors(capture: Capture):
    """The ways to a tensor that pass torch's operations by."""
    storage = torch.UntypedStorage(16, device="cuda")
    assert torch.empty(0, device="cuda").set_(storage, 1, (2,), (1,)).data_ptr() == storage.data_ptr() + 4
    file = io.BytesIO()
    torch.save({"weight": torch.arange(4.0)}, file)
    file.seek(0)
    assert torch.load(file, map_location="cuda")["weight"].is_cuda
    x = torch.empty(4, device="cuda")
    assert torch.from_dlpack(x).data_ptr() == torch.utils.dlpack.from_dlpack(torch.to_dlpack(x)).data_ptr()
    assert x.share_memory_().data_ptr() == x.data_ptr()
    assert (x.type(), torch.empty(4).type()) == ("torch.cuda.FloatTensor", "torch.FloatTensor")
    assert x.type(torch.float16).dtype == torch.float16


@pytest.mark.parametrize(
    "fill",
    [
        lambda x, generator: x.exponential_(generator=generator),
        lambda x, generator: x.uniform_(0, 1, generator=generator),
        lambda x, generator: torch.nn.init.normal_(x, generator=generator),
        lambda x, generator: torch.randperm(4, generator=generator, device="cuda"),
        lambda x, generator: torch.multinomial(torch.ones(4, device="cuda"), 1, generator=generator),
    ],
)
def test_random_operations_take_a_gpus_generator(capture: Capture, fill: Callable[..., torch.Tensor]):
    assert fill(torch.empty(4, device="cuda"), torch.Generator("cuda")).is_cuda
    assert torch.rand(2, generator=torch.Generator("cpu").manual_seed(3)).shape == (2,)


def test_memory_pools_and_graphed_callables(capture: Capture):
    class Layer(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.empty_like(x)
            launch(x, y)
            return x + y

    x = torch.empty(64, device="cuda")
    with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
        launch(x, torch.empty(64, device="cuda"))
    assert torch.cuda.make_graphed_callables(Layer(), (x,))(x).is_cuda
    assert keys(capture) == {"copy_kernel": 1}


def test_large_tensors_take_no_memory(capture: Capture):
    x = torch.zeros(1 << 40, dtype=torch.bfloat16, device="cuda") + 1
    assert x.numel() == 1 << 40


def test_tables_of_addresses_and_deep_copies(capture: Capture):
    layers = [torch.empty(64, device="cuda") for _ in range(2)]
    table = torch.tensor([layer.data_ptr() for layer in layers], dtype=torch.uint64, device="cuda")
    assert table.cpu().tolist() == [layer.data_ptr() for layer in layers]
    module = torch.nn.Linear(4, 4, device="cuda")
    twin = copy.deepcopy(module)
    assert twin.weight.is_cuda
    assert twin.weight.data_ptr() != module.weight.data_ptr()
    view = torch.arange(4, device="cuda")[1:]
    assert (copy.deepcopy(view).tolist(), copy.deepcopy(view).data_ptr() % 16) == ([1, 2, 3], 8)


# What runs inside


def test_autograd_runs_forward_and_backward(capture: Capture):
    class Copy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.empty_like(x)
            launch(x, y)
            return y

        @staticmethod
        def backward(ctx, gradient):
            x = torch.empty_like(gradient)
            copy_kernel[(1,)](gradient, x, gradient.numel(), BLOCK=128)
            return x

    Copy.apply(torch.empty(64, device="cuda", requires_grad=True)).sum().backward()
    assert keys(capture) == {"copy_kernel": 2}


def test_threads_work_on_stand_ins(capture: Capture):
    def work() -> None:
        x = torch.arange(64, device="cuda")
        launch(x, x + 1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work) for _ in range(8)]:
            done.result()
    capture.end()
    (seen,) = capture.take().values()
    assert [variant.launches for variant in seen.variants.values()] == [9]


def test_custom_operators_run_their_cuda_implementation(capture: Capture):
    @torch.library.custom_op("jitaudit_test::plain", mutates_args=())
    def plain(x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        launch(x, y)
        return y

    library = torch.library.Library("jitaudit_test", "FRAGMENT")
    library.define("by_device(Tensor x) -> Tensor")
    library.impl("by_device", lambda x: plain(x), "CUDA")
    library.impl("by_device", lambda x: x + 1, "CPU")
    assert torch.ops.jitaudit_test.by_device(torch.empty(64, device="cuda")).is_cuda
    assert keys(capture) == {"copy_kernel": 1}
    capture.begin(1)
    assert torch.ops.jitaudit_test.by_device(torch.zeros(2)).tolist() == [1, 1]
    assert keys(capture) == {}


def test_wrap_triton_launches_the_kernel(capture: Capture):
    @torch.library.triton_op("jitaudit_test::wrapped", mutates_args={})
    def wrapped(x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        torch.library.wrap_triton(copy_kernel)[(1,)](x, y, x.numel(), BLOCK=64)
        return y

    wrapped(torch.empty(64, device="cuda"))
    assert keys(capture) == {"copy_kernel": 1}


def test_modules_live_on_cuda(capture: Capture):
    with torch.device("cuda"):
        built = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.LayerNorm(16))
    moved = torch.nn.Linear(16, 16).cuda()
    assert {p.device.type for p in (*built.parameters(), *moved.parameters())} == {"cuda"}
    moved(built(torch.empty(4, 16, device="cuda"))).sum().backward()
    assert moved.weight.grad is not None


# Values


def test_known_values_can_be_read_on_the_host(capture: Capture):
    lens = torch.tensor([3, 1, 2], device="cuda")
    assert lens.cpu().numpy().tolist() == [3, 1, 2]
    assert np.asarray((lens.cumsum(0) + 1).to("cpu")).tolist() == [4, 5, 7]
    assert (int(lens.max()), lens.tolist(), bool((lens > 0).all())) == (3, [3, 1, 2], True)
    assert torch.empty(6, 2, device="cuda")[torch.repeat_interleave(lens) == 0].shape == (3, 2)


def test_a_known_mask_gives_a_known_shape(capture: Capture):
    mask = torch.tensor([True, False, True], device="cuda")
    assert torch.empty(3, 5, device="cuda")[mask].shape == (2, 5)
    assert torch.empty(5, 3, device="cuda").masked_select(mask).shape == (10,)
    assert torch.tensor([5, 6, 7], device="cuda").masked_select(mask).tolist() == [5, 7]
    assert torch.tensor(5, device="cuda").masked_select(mask).tolist() == [5, 5]
    unknown = torch.empty(3, dtype=torch.bool, device="cuda")
    with pytest.raises(HostRead, match="index reads an unknown bool"):
        torch.empty(3, 5, device="cuda")[unknown]
    with pytest.raises(HostRead, match="masked_select reads an unknown bool"):
        torch.empty(3, device="cuda").masked_select(unknown)


def test_values_can_be_given(capture: Capture):
    tokens = known(torch.empty(4, dtype=torch.int32, device="cuda"), [5, 6, 7, 8])
    assert tokens[1:3].tolist() == [6, 7]
    assert known(torch.empty(2, 2, device="cuda"), 0.5).cpu().tolist() == [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.sum().item(),
        lambda x: x.tolist(),
        lambda x: bool(x[0]),
        lambda x: x.cpu(),
        lambda x: x.nonzero(),
        lambda x: torch.equal(x, x + 1),
        lambda x: torch.repeat_interleave(x),
        lambda x: torch.empty(3).copy_(x),
        lambda x: x.unique(),
    ],
)
def test_an_unknown_value_is_never_guessed(capture: Capture, read: Callable[[torch.Tensor], object]):
    with pytest.raises(HostRead, match="on the host") as stopped:
        read(torch.empty(3, dtype=torch.int64, device="cuda"))
    assert __file__ in stopped.value.line


def test_a_stop_cannot_be_swallowed(capture: Capture):
    def cautious(x: torch.Tensor) -> int:
        try:
            return int(x.max())
        except Exception:
            return 0

    with pytest.raises(HostRead):
        cautious(torch.empty(3, device="cuda"))


def test_what_a_kernel_may_have_written_is_unknown(capture: Capture):
    lens, out = torch.tensor([1, 2], device="cuda"), torch.zeros(2, dtype=torch.int64, device="cuda")
    view = out[1:]
    launch(lens, out)
    assert lens.tolist() == [1, 2]
    with pytest.raises(HostRead):
        view.item()


@pytest.mark.parametrize(
    "pass_on",
    [
        lambda address: address,
        lambda address: torch.tensor([0, address], device="cuda"),
        lambda address: torch.tensor([address], dtype=torch.uint64, device="cuda"),
    ],
    ids=["number", "table", "table of uint64"],
)
def test_what_lies_at_an_address_that_a_kernel_is_given_is_unknown(capture: Capture, pass_on: Callable[[int], object]):
    page, other = torch.tensor([1, 2], device="cuda"), torch.tensor([3], device="cuda")
    other.data_ptr()
    launch(page, torch.empty(64, device="cuda"))  # a pointer that is only read
    assert page.tolist() == [1, 2]
    addressed_kernel[(1,)](pass_on(page[1:].data_ptr()), 7)
    assert other.tolist() == [3]
    with pytest.raises(HostRead):
        page.tolist()


def test_what_a_graph_writes_is_unknown_after_a_replay(capture: Capture):
    """It is computed again, from what its inputs hold then."""
    lens, kept = torch.tensor([1, 2], device="cuda"), torch.tensor([3], device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        total = lens.sum()
        counts = torch.zeros(2, dtype=torch.int64, device="cuda")
        counts += lens
    lens.copy_(torch.tensor([5, 6]))
    graph.replay()
    assert (lens.tolist(), kept.tolist()) == ([5, 6], [3])
    for written in (total, counts):
        with pytest.raises(HostRead):
            written.tolist()


def test_what_is_computed_from_unknown_values_is_unknown(capture: Capture):
    total = torch.tensor([1, 2], device="cuda")
    total += torch.empty(2, dtype=torch.int64, device="cuda")
    with pytest.raises(HostRead):
        total.tolist()
    total.zero_()
    assert total.tolist() == [0, 0]
