"""pytest: count the JIT variants that a test reaches.

.. code:: python

    def test_the_batch_is_not_in_the_key(jit_variants):
        with jit_variants() as seen:
            for bs in range(1, 65):
                decode(torch.empty(bs, 128, device="cuda"))
        assert seen.count("my_server.metadata:decode_kernel") == 1

    @pytest.mark.jit_budget(kernel="my_server.*", max=4)
    def test_decode(): ...

Where torch sees a GPU, launches are real and observed. Elsewhere, or with a target, the launchers run on stand-ins and
nothing is launched. Either way the count is of keys, so it is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from jitaudit.jit.capture import Capture, SeenKernel
    from jitaudit.jit.observing import Observation
    from jitaudit.model import Kernel


class VariantCount(int):
    """How many variants were reached; a failing comparison tells their cause and remedy."""

    lines: tuple[str, ...] = ()


class Seen:
    """What a block reached. Read it when the block is over."""

    def __init__(self, root: Path, target: str) -> None:
        self.target = target
        self._root = root
        self._kernels: tuple[Kernel, ...] = ()

    def count(self, kernel: str) -> VariantCount:
        """The variants of the kernels that a glob means: an id ``module:qualname``, or what follows the colon."""
        from jitaudit.configuration import matches

        found = [seen for seen in self._kernels if matches(seen.id, None, kernel)]
        count = VariantCount(sum(len(seen.variants) for seen in found))
        count.lines = tuple(line for seen in found for line in _why(seen)) or (self._nothing(kernel),)
        return count

    def variants(self, kernel: str) -> tuple[str, ...]:
        """The keys of the same kernels, in words."""
        from jitaudit.configuration import matches

        return tuple(v.key.text for seen in self._kernels if matches(seen.id, None, kernel) for v in seen.variants)

    @property
    def kernels(self) -> dict[str, int]:
        """Every kernel that was launched, with its count."""
        return {kernel.id: len(kernel.variants) for kernel in self._kernels}

    def close(self, seen: Mapping[Any, SeenKernel], cases: range) -> None:
        """Take over what the cases of the block reached."""
        kernels = (_noun(kernel, self._root, cases) for kernel in seen.values())
        self._kernels = tuple(sorted((k for k in kernels if k.variants), key=lambda kernel: kernel.id))

    def _nothing(self, kernel: str) -> str:
        return f"no kernel that matches {kernel!r} was launched; launched were {', '.join(self.kernels) or 'none'}"


class Budget(NamedTuple):
    """``jit_budget``: a kernel glob, the most variants, and the target to count for."""

    kernel: str
    max: int
    target: str | None = None


@pytest.fixture
def jit_variants(request: pytest.FixtureRequest) -> Callable[..., AbstractContextManager[Seen]]:
    """``with jit_variants() as seen:`` counts the JIT variants that the block reaches: ``seen.count("module:kernel")``.

    ``jit_variants(target="cuda:90")`` counts for a target on stand-ins, also where there is a GPU.
    """

    def watch(target: str | None = None) -> AbstractContextManager[Seen]:
        return _block(request.node, target)

    return watch


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    line = "jit_budget(kernel, max, target=None): fail if the test reaches more than max variants of the kernels"
    config.addinivalue_line("markers", line)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Hold a marked test to its budgets."""
    budgets = [_budget(mark) for mark in item.iter_markers("jit_budget")]
    if not budgets:
        return (yield)
    with _block(item, budgets[0].target) as seen:
        result = yield
    over = [line for budget in budgets for line in _held(seen, budget)]
    if over:
        pytest.fail("\n".join(over), pytrace=False)
    return result


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Say why there are so many, where a count is not what was asserted."""
    counts = [side for side in (left, right) if isinstance(side, VariantCount)]
    if not counts:
        return None
    return [f"{left!r} {op} {right!r}", *(line for count in counts for line in count.lines)]


class _Watch:
    """One capture or observation under way, cut into cases so that blocks may nest."""

    def __init__(self, source: Capture | Observation) -> None:
        self.source = source
        self.case = 0
        source.begin(0)

    def cut(self) -> int:
        """Begin the next case."""
        self.source.end()
        self.case += 1
        self.source.begin(self.case)
        return self.case


_WATCH = pytest.StashKey[_Watch]()


@contextmanager
def _block(item: pytest.Item, target: str | None) -> Iterator[Seen]:
    with _watching(item, target) as watch:
        seen = Seen(item.config.rootpath, watch.source.target)
        first = watch.cut()
        yield seen
        seen.close(watch.source.seen, range(first, watch.cut()))
    failed = getattr(watch.source, "failed", ())
    if failed:
        pytest.fail(f"launches that could not be observed: {'; '.join(failed)}", pytrace=False)


@contextmanager
def _watching(item: pytest.Item, target: str | None) -> Iterator[_Watch]:
    """The test's watch: the one under way, or a new one."""
    if _WATCH in item.stash:
        watch = item.stash[_WATCH]
        if target not in (None, watch.source.target):
            pytest.fail(f"{target}: this test already counts for {watch.source.target}", pytrace=False)
        yield watch
        return
    with _source(target) as source:
        item.stash[_WATCH] = _Watch(source)
        try:
            yield item.stash[_WATCH]
        finally:
            del item.stash[_WATCH]


@contextmanager
def _source(target: str | None) -> Iterator[Capture | Observation]:
    from jitaudit.errors import JitauditError
    from jitaudit.jit.observing import watching

    with ExitStack() as stack:
        try:
            source = stack.enter_context(watching(target))
        except JitauditError as error:
            pytest.fail(str(error), pytrace=False)
        yield source


def _budget(mark: pytest.Mark) -> Budget:
    try:
        budget = Budget(*mark.args, **mark.kwargs)
    except TypeError:
        budget = Budget("", -1)
    if not isinstance(budget.kernel, str) or not budget.kernel or not isinstance(budget.max, int) or budget.max < 0:
        pytest.fail(
            f"{mark.name}{mark.args or mark.kwargs}: write jit_budget(kernel='module:name', max=4)", pytrace=False
        )
    return budget


def _held(seen: Seen, budget: Budget) -> tuple[str, ...]:
    """What to say of kernels that are over their budget, or that were not launched."""
    count = seen.count(budget.kernel)
    if 0 < count <= budget.max:
        return ()
    return (f"jit_budget {budget.kernel!r}: {int(count)} variants, budget {budget.max}", *count.lines)


def _why(kernel: Kernel) -> Iterator[str]:
    from jitaudit.gating import words
    from jitaudit.judging.remedies import Remedies

    remedies = Remedies(kernel, ())
    yield f"{kernel.id}: {words.variants(len(kernel.variants))} ({kernel.file}:{kernel.line})"
    if len(kernel.variants) > 1:
        yield f"  cause   {words.cause(remedies.reach)}"
        yield f"  remedy  {words.remedy(remedies)}"
        yield "  run     jitaudit rule JA301"


def _noun(kernel: SeenKernel, root: Path, cases: range) -> Kernel:
    from jitaudit.jit import identity
    from jitaudit.model import Kernel, Variant

    function = kernel.function
    reached = [v for v in kernel.variants.values() if any(case in cases for case in v.cases)]
    return Kernel(
        id=identity.kernel_id(function, root, {}),
        group=None,
        object=identity.object_path(function),
        file=identity.file_name(Path(function.fn.__code__.co_filename), root),
        line=function.starting_line_number,
        source=identity.source_digest(function),
        parameters=identity.parameters(function),
        autotuner=None,
        launches=sum(variant.launches for variant in reached),
        variants=tuple(
            Variant(
                key=variant.key,
                via="autotune" if variant.tuned else "jit",
                origin="probe",
                launches=variant.launches,
                cases=(),
            )
            for variant in sorted(reached, key=lambda variant: variant.key.text)
        ),
    )
