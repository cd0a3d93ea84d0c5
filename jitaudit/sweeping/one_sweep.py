"""One sweep's way through its cases: each group, and each order, in a process of its own."""

from __future__ import annotations

import mmap
import random
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from jitaudit.boxes import Point, boxes, compact
from jitaudit.errors import RequestError
from jitaudit.jit import identity
from jitaudit.jit.answers import Answer, answering_reads
from jitaudit.jit.capture import Capture, SeenKernel, SeenVariant
from jitaudit.jit.compiling import CompileFailed, compile_variant
from jitaudit.jit.stops import HostRead, raised, remembering_stops
from jitaudit.jit.tuning import config_text
from jitaudit.model import Autotuner, Box, Compile, Finding, Kernel, ParameterUse, SweepRun, TuningKey, Variant
from jitaudit.sweeping.axes import Sweep, axis_text, group_name
from jitaudit.sweeping.declarations import source_findings
from jitaudit.sweeping.forking import Died
from jitaudit.sweeping.targets import Loaded

Reason = tuple[str, str, str]
"""What stopped a case: the code, the message, and what is equal for cases that stopped for one reason."""

_AT = struct.Struct("q")
_NO_CASE = -1
_MOST_DEATHS = 3

Isolated = Callable[[Callable[[], "Part"]], "Part"]
"""Runs a part as if in a fresh process."""


class Stop(msgspec.Struct, frozen=True):
    """Cases that could not be counted, for one reason."""

    code: str
    message: str
    """That of the first case."""
    alike: str
    """Equal for cases that stopped for one reason."""
    points: tuple[Point, ...]


class Part(msgspec.Struct, frozen=True):
    """What one group's cases reached, in one order."""

    counted: int
    kernels: tuple[Kernel, ...]
    stops: tuple[Stop, ...]
    findings: tuple[Finding, ...]
    firsts: dict[str, tuple[str, ...]]
    """Kernel → for each variant, in the order in which they came, the case that reached it first."""
    asked: frozenset[str]
    hosts: frozenset[str]
    """The lines that read a value that the user gave."""
    unanswered: frozenset[str]
    """Those that read one that nobody gave."""
    uncounted: frozenset[str]
    """The kernels that only cases launched which then stopped."""
    opaque: dict[int, int]


class Swept(msgspec.Struct, frozen=True):
    """A sweep as it was run."""

    run: SweepRun
    kernels: tuple[Kernel, ...]
    findings: tuple[Finding, ...]
    asked: frozenset[str]
    hosts: frozenset[str]
    unanswered: frozenset[str]
    uncounted: frozenset[str]


class SweepRunner:
    """Runs one sweep under a capture."""

    def __init__(
        self,
        name: str,
        sweep: Sweep,
        loaded: Loaded,
        capture: Capture,
        hosts: dict[str, tuple[Answer, ...]],
        *,
        compiles: bool,
        isolated: Isolated,
        progress: Callable[[str, int, int], object],
    ) -> None:
        self._name, self._sweep, self._loaded, self._capture = name, sweep, loaded, capture
        self._hosts, self._compiles, self._isolated, self._progress = hosts, compiles, isolated, progress
        self._at = mmap.mmap(-1, _AT.size)
        """The case that is under way, told to this process by the fork that runs it."""
        self._lines: tuple[str, ...] = ()
        """The lines that read one of several values: they are axes too."""
        self._texts = {axis: tuple(map(axis_text, values)) for axis, values in sweep.axes.items()}
        self._cases = [(point, case, self._answers(())) for point, case in sweep.cases()]
        if not self._cases:
            raise RequestError(f"sweep {name}: no case is left: its axes or its where leave nothing")

    def run(self, *, orders: bool) -> Swept:
        """Run every case; with `orders` three times, in different orders."""
        groups = self._groups()
        parts = [self._part(group, members) for group, members in groups]
        ranged = {line for part in parts for line in part.hosts if len(self._hosts[line]) > 1}
        if ranged:
            self._add_lines(tuple(sorted(ranged)))
            groups = self._groups()
            parts = [self._part(group, members) for group, members in groups]
        findings = [finding for part in parts for finding in part.findings]
        findings += self._stop_findings([stop for part in parts for stop in part.stops])
        findings += self._answered_findings({line for part in parts for line in part.hosts})
        if orders:
            for (group, members), part in zip(groups, parts, strict=True):
                findings += self._order_findings(group, members, part)
        counted = sum(part.counted for part in parts)
        launched = any(part.kernels for part in parts)
        if not launched and counted:
            message = "no case launched a kernel: the launcher took another branch, or calls no Triton kernel"
            findings.append(Finding(code="JA007", name="launched-nothing", message=message, sweep=self._name))
        return Swept(
            run=SweepRun(
                name=self._name,
                axes={axis: compact(texts) for axis, texts in self._texts.items()},
                compare=self._sweep.compare,
                cases=len(self._cases),
                counted=counted,
                verdict="launched nothing" if not launched else "pass" if counted == len(self._cases) else "partial",
            ),
            kernels=tuple(kernel for part in parts for kernel in part.kernels),
            findings=tuple(findings),
            asked=frozenset().union(*(part.asked for part in parts)),
            hosts=frozenset().union(*(part.hosts for part in parts)),
            unanswered=frozenset().union(*(part.unanswered for part in parts)),
            uncounted=frozenset().union(*(part.uncounted for part in parts)),
        )

    def _answers(self, chosen: tuple[Answer, ...]) -> dict[str, Answer]:
        given = {line: values[0] for line, values in self._hosts.items()}
        return given | dict(zip(self._lines, chosen, strict=True))

    def _add_lines(self, lines: tuple[str, ...]) -> None:
        """Make each value that is read on `lines` a case of its own."""
        self._lines = lines
        self._texts |= {line: tuple(map(axis_text, self._hosts[line])) for line in lines}
        positions = list(product(*(range(len(self._hosts[line])) for line in lines)))
        self._cases = [
            (
                point + more,
                case,
                self._answers(tuple(self._hosts[line][at] for line, at in zip(lines, more, strict=True))),
            )
            for point, case in self._sweep.cases()
            for more in positions
        ]

    def _groups(self) -> list[tuple[str | None, list[int]]]:
        """The cases of each compared value."""
        compare = self._sweep.compare
        if compare is None:
            return [(None, list(range(len(self._cases))))]
        return [
            (group_name(value), [index for index, (_, case, _) in enumerate(self._cases) if case[compare] is value])
            for value in self._sweep.axes[compare]
        ]

    def _part(self, group: str | None, members: Sequence[int]) -> Part:
        part = self._run_beside_the_dead(group, members)
        self._capture.opaque.adopt(part.opaque)
        identity.adopt(part.kernels)
        _uses.update(
            {(kernel.id, kernel.source): {p.name: p.use for p in kernel.parameters} for kernel in part.kernels}
        )
        return part

    def _run_beside_the_dead(self, group: str | None, members: Sequence[int]) -> Part:
        """Run the cases; where one ends its process, all the others from the start. The fourth is a RequestError."""
        dead: dict[int, str] = {}
        while True:
            try:
                return self._isolated(lambda: self._run_part(group, members, dead))
            except Died as death:
                index = _AT.unpack(self._at[:])[0]
                if index == _NO_CASE:
                    raise
                if len(dead) == _MOST_DEATHS:
                    message = f"its process {death.how}, and {_MOST_DEATHS} cases before ended theirs"
                    raise RequestError(f"{self._name} at {self._case_text(index)}: {message}") from None
                dead[index] = death.how

    def _run_part(self, group: str | None, members: Sequence[int], dead: Mapping[int, str]) -> Part:
        self._capture.seed()
        stops: dict[tuple[str, str], tuple[str, list[Point]]] = {}
        hosts: set[str] = set()
        unanswered: set[str] = set()
        counted = 0
        for done, index in enumerate(members):
            point, case, answers = self._cases[index]
            self._at[:] = _AT.pack(index)
            if index in dead:
                reason: Reason | None = ("JA013", f"its process {dead[index]}", dead[index])
            else:
                with answering_reads(answers) as used:
                    reason = self._run_case(index, case, unanswered)
                hosts |= used
            if reason is None:
                counted += 1
            else:
                code, message, alike = reason
                stops.setdefault((code, alike), (message, []))[1].append(point)
            self._progress(self._name, done + 1, len(self._cases))
        self._at[:] = _AT.pack(_NO_CASE)
        taken = self._capture.take().values()
        seen = [kernel for kernel in taken if _counted(kernel)]
        findings: list[Finding] = []
        kernels = tuple(self._kernel(group, kernel, findings) for kernel in seen)
        return Part(
            counted=counted,
            kernels=kernels,
            stops=tuple(
                Stop(code, message, alike, tuple(points)) for (code, alike), (message, points) in stops.items()
            ),
            findings=tuple(findings),
            firsts={
                noun.id: tuple(
                    self._case_text(variant.cases[0]) for variant in kernel.variants.values() if variant.cases
                )
                for noun, kernel in zip(kernels, seen, strict=True)
            },
            asked=frozenset(self._capture.asked),
            hosts=frozenset(hosts),
            unanswered=frozenset(unanswered),
            uncounted=frozenset(self._id(kernel.function) for kernel in taken if not _counted(kernel)),
            opaque=self._capture.opaque.numbers,
        )

    def _run_case(self, index: int, case: dict[str, Any], unanswered: set[str]) -> Reason | None:
        """Run one case."""
        self._capture.begin(index)
        error: BaseException | None = None
        with remembering_stops() as stops:
            try:
                self._sweep(**case)
            except KeyboardInterrupt:
                raise
            except BaseException as caught:  # pytest's Skipped is no Exception
                error = caught
        unanswered.update(stop.line for stop in stops if isinstance(stop, HostRead))
        if stops:
            return "JA009" if isinstance(stops[0], HostRead) else "JA014", str(stops[0]), stops[0].alike
        if error is not None:
            where, message = raised(error)
            return "JA013", f"{where}{message}", where
        self._capture.end()
        return None

    def _stop_findings(self, stops: list[Stop]) -> Iterator[Finding]:
        names = {"JA009": "host-read", "JA013": "case-raised", "JA014": "unsupported"}
        united: dict[tuple[str, str], tuple[str, list[Point]]] = {}
        for stop in stops:
            united.setdefault((stop.code, stop.alike), (stop.message, []))[1].extend(stop.points)
        for (code, _), (message, points) in united.items():
            more = f" ({len(points)} cases)" if len(points) > 1 else ""
            first = self._point_text(points[0])
            yield Finding(code=code, name=names[code], message=message + more, sweep=self._name, case=first)

    def _answered_findings(self, lines: set[str]) -> Iterator[Finding]:
        for line in sorted(lines):
            values = ", ".join(map(str, compact(tuple(map(axis_text, self._hosts[line])))))
            message = f"{line} reads an unknown value on the host; counted for {values}, as --host-value says"
            yield Finding(code="JA009", name="host-read", message=message, sweep=self._name)

    def _order_findings(self, group: str | None, members: list[int], ascending: Part) -> Iterator[Finding]:
        """JA010: the kernels whose variants depend on the order of the cases."""
        shuffled = list(members)
        random.Random(0).shuffle(shuffled)
        parts = {
            "ascending": ascending,
            "descending": self._part(group, members[::-1]),
            "shuffled": self._part(group, shuffled),
        }
        keys = {
            order: {kernel.id: {variant.key.text for variant in kernel.variants} for kernel in part.kernels}
            for order, part in parts.items()
        }
        for kernel in sorted({kernel for reached in keys.values() for kernel in reached}):
            if len({frozenset(reached.get(kernel, ())) for reached in keys.values()}) > 1:
                told = "; ".join(
                    f"{order} {len(keys[order].get(kernel, ()))} (first at {_few(part.firsts.get(kernel, ()))})"
                    for order, part in parts.items()
                )
                message = f"its variants depend on the order of the cases: {told}"
                yield Finding(code="JA010", name="order-dependent", message=message, kernel=kernel, sweep=self._name)

    def _kernel(self, group: str | None, kernel: SeenKernel, findings: list[Finding]) -> Kernel:
        function = kernel.function
        variants = sorted((v for v in kernel.variants.values() if v.cases), key=lambda variant: variant.key.text)
        name = self._id(function)
        compiled = self._compiled(function, name, variants, findings)
        source = identity.source_digest(function)
        parameters = identity.parameters(function, _uses.get((name, source)))
        findings += source_findings(function, name, parameters)
        return Kernel(
            id=name,
            group=group,
            object=identity.object_path(function),
            file=identity.file_name(Path(function.fn.__code__.co_filename), self._loaded.root),
            line=function.starting_line_number,
            source=source,
            parameters=parameters,
            autotuner=_autotuner(kernel),
            launches=sum(variant.launches for variant in variants),
            variants=tuple(
                Variant(
                    key=variant.key,
                    via="autotune" if variant.tuned else "jit",
                    origin="probe",
                    launches=variant.launches,
                    cases=self._boxes([self._cases[index][0] for index in variant.cases]),
                    compile=compiled.get(variant.key.text),
                )
                for variant in variants
            ),
        )

    def _id(self, function: Any) -> str:
        return identity.kernel_id(function, self._loaded.root, self._loaded.files)

    def _compiled(
        self, function: Any, name: str, variants: list[SeenVariant], findings: list[Finding]
    ) -> dict[str, Compile]:
        """The variants' real compiles by key, where they were asked for; a failure is a finding."""
        compiled = {}
        for variant in variants if self._compiles else ():
            result = compile_variant(function, variant, self._capture.target)
            if isinstance(result, CompileFailed):
                message = f"does not compile for {variant.key.text}: {result.message}"
                findings.append(Finding(code="JA012", name="not-warmable", message=message, kernel=name))
            else:
                compiled[variant.key.text] = result
        return compiled

    def _boxes(self, points: list[Point]) -> tuple[Box, ...]:
        return tuple(
            {"sweep": self._name}
            | {
                axis: compact([texts[at] for at in positions])
                for positions, (axis, texts) in zip(box, self._texts.items(), strict=True)
            }
            for box in boxes(points)
        )

    def _case_text(self, index: int) -> str:
        return self._point_text(self._cases[index][0])

    def _point_text(self, point: Point) -> str:
        return ", ".join(f"{axis}={texts[at]}" for at, (axis, texts) in zip(point, self._texts.items(), strict=True))


_uses: dict[tuple[str, str], dict[str, ParameterUse | None]] = {}
"""Kernel and source → the uses of its parameters: telling them takes longer than a launch, so no fork does it twice."""


def _counted(kernel: SeenKernel) -> bool:
    return any(variant.cases for variant in kernel.variants.values())


def _autotuner(kernel: SeenKernel) -> Autotuner | None:
    if kernel.tuner is None:
        return None
    keys = kernel.tuner.tuning_keys
    return Autotuner(
        arguments=kernel.tuner.arguments,
        configs=tuple(map(config_text, kernel.tuner.configs)),
        tuning_keys=tuple(TuningKey(key=key, configs=keys[key]) for key in sorted(keys)),
        benchmark_runs=kernel.tuner.benchmark_runs,
    )


def _few(cases: Sequence[str]) -> str:
    return "; ".join(cases[:3]) + (f"; … {len(cases) - 3} more" if len(cases) > 3 else "")
