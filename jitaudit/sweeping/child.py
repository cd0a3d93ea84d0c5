"""What runs in a target's own process: import it under capture, run its sweeps, and answer with a manifest."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from jitaudit.boxes import Point, boxes, compact
from jitaudit.errors import RequestError
from jitaudit.jit import identity
from jitaudit.jit.capture import Capture, SeenKernel, SeenVariant, capturing, capturing_on_gpu
from jitaudit.jit.compiling import CompileFailed, compile_variant
from jitaudit.jit.environment import environment
from jitaudit.jit.keys import Opaque, value_text
from jitaudit.jit.stops import CaseStopped, HostRead
from jitaudit.manifest import sorted_findings, union
from jitaudit.model import (
    SCHEMA_VERSION,
    Autotuner,
    Box,
    Compile,
    Finding,
    Kernel,
    Manifest,
    Profile,
    SweepRun,
    TuningKey,
    Variant,
)
from jitaudit.sweeping.axes import Sweep, axis_text, group_name
from jitaudit.sweeping.process import Progress, serve
from jitaudit.sweeping.relocating import relocate
from jitaudit.sweeping.running import Answer, Request
from jitaudit.sweeping.targets import Loaded, load


def main(progress: int, private: str) -> None:
    """Answer the request that stands on standard input."""
    serve(_run, Request, progress, private)


def _run(request: Request, progress: Progress) -> Answer:
    narrowing = request.narrowing
    if request.relocation is not None:
        relocate(request.relocation)
    world: AbstractContextManager[Capture] = capturing_on_gpu() if narrowing.gpu else capturing(request.architecture)
    with world as capture:
        loaded = load(request.target)
        axes = {axis for sweep in loaded.sweeps.values() for axis in sweep.axes}
        groups = {group for sweep in loaded.sweeps.values() for group in _groups(sweep)}
        runs = [
            _SweepRunner(
                name, sweep.with_axes(narrowing.axes, narrowing.groups), loaded, capture, request, progress
            ).run()
            for name, sweep in loaded.sweeps.items()
            if not narrowing.groups or set(_groups(sweep)) & set(narrowing.groups)
        ]
        manifest = union([_manifest(capture, (), (), ()), *runs])
        findings = sorted_findings((*manifest.findings, *_never_launched(loaded, manifest)))
    return Answer(
        manifest=msgspec.structs.replace(manifest, findings=findings),
        axes=tuple(sorted(axes)),
        groups=tuple(sorted(groups)),
    )


def _groups(sweep: Sweep) -> tuple[str, ...]:
    return tuple(map(group_name, sweep.axes[sweep.compare])) if sweep.compare else ()


def _manifest(
    capture: Capture, sweeps: tuple[SweepRun, ...], kernels: tuple[Kernel, ...], findings: tuple[Finding, ...]
) -> Manifest:
    return Manifest(
        schema_version=SCHEMA_VERSION,
        target=capture.target,
        configuration="",
        environment=environment(),
        profile=Profile(asked=tuple(sorted(capture.asked))),
        sweeps=sweeps,
        kernels=kernels,
        findings=findings,
    )


class _SweepRunner:
    """One sweep's way through its cases."""

    def __init__(
        self, name: str, sweep: Sweep, loaded: Loaded, capture: Capture, request: Request, progress: Progress
    ) -> None:
        self._name, self._sweep, self._loaded, self._capture = name, sweep, loaded, capture
        self._request, self._progress = request, progress
        self._texts = {axis: tuple(map(axis_text, values)) for axis, values in sweep.axes.items()}
        self._stopped: dict[tuple[str, str], list[Point]] = {}
        self._findings: list[Finding] = []

    def run(self) -> Manifest:
        cases = list(self._sweep.cases())
        if not cases:
            raise RequestError(f"sweep {self._name}: no case is left: its axes or its where leave nothing")
        counted = 0
        kernels: list[Kernel] = []
        for group, members in self._grouped(cases):
            self._capture.seed()
            for index in members:
                counted += self._run_case(index, *cases[index])
                self._progress(self._name, index + 1, len(cases))
            kernels += self._kernels(group, self._capture.take(), [point for point, _ in cases])
        launched = any(kernel.variants for kernel in kernels)
        run = SweepRun(
            name=self._name,
            axes={axis: compact(texts) for axis, texts in self._texts.items()},
            compare=self._sweep.compare,
            cases=len(cases),
            counted=counted,
            verdict="launched nothing" if not launched else "pass" if counted == len(cases) else "partial",
        )
        findings = [*self._findings, *self._stop_findings()]
        if not launched and counted:
            message = "no case launched a kernel: the launcher took another branch, or calls no Triton kernel"
            findings.append(Finding(code="JA007", name="launched-nothing", message=message, sweep=self._name))
        return _manifest(self._capture, (run,), tuple(kernels), tuple(findings))

    def _grouped(self, cases: list[tuple[Point, dict[str, Any]]]) -> Iterator[tuple[str | None, list[int]]]:
        """The cases of each compared value in turn, as if each had a process of its own."""
        compare = self._sweep.compare
        if compare is None:
            yield None, list(range(len(cases)))
            return
        for value in self._sweep.axes[compare]:
            members = [index for index, (_, case) in enumerate(cases) if case[compare] is value]
            yield group_name(value), members

    def _run_case(self, index: int, point: Point, case: dict[str, Any]) -> bool:
        self._capture.begin(index)
        try:
            self._sweep(**case)
        except CaseStopped as stop:
            self._stopped.setdefault(("JA009" if isinstance(stop, HostRead) else "JA014", str(stop)), []).append(point)
            return False
        except (Exception, SystemExit) as error:
            self._stopped.setdefault(("JA013", _raised(error)), []).append(point)
            return False
        self._capture.end()
        return True

    def _stop_findings(self) -> Iterator[Finding]:
        names = {"JA009": "host-read", "JA013": "case-raised", "JA014": "unsupported"}
        for (code, message), points in self._stopped.items():
            first = ", ".join(
                f"{axis}={texts[at]}" for at, (axis, texts) in zip(points[0], self._texts.items(), strict=True)
            )
            more = f" ({len(points)} cases)" if len(points) > 1 else ""
            yield Finding(code=code, name=names[code], message=message + more, sweep=self._name, case=first)

    def _kernels(self, group: str | None, seen: dict[Any, SeenKernel], points: list[Point]) -> Iterator[Kernel]:
        for kernel in seen.values():
            function = kernel.function
            variants = [variant for variant in kernel.variants.values() if variant.cases]
            if not variants:
                continue
            name = identity.kernel_id(function, self._loaded.root, self._loaded.files)
            self._findings += _source_findings(function, name)
            compiled = self._compiled(function, name, variants)
            yield Kernel(
                id=name,
                group=group,
                object=identity.object_path(function),
                file=identity.file_name(Path(function.fn.__code__.co_filename), self._loaded.root),
                line=function.starting_line_number,
                source=identity.source_digest(function),
                parameters=identity.parameters(function),
                autotuner=_autotuner(kernel),
                launches=sum(variant.launches for variant in variants),
                variants=tuple(
                    Variant(
                        key=variant.key,
                        via="autotune" if variant.tuned else "jit",
                        origin="probe",
                        launches=variant.launches,
                        cases=self._boxes([points[index] for index in variant.cases]),
                        compile=compiled.get(variant.key.text),
                    )
                    for variant in sorted(variants, key=lambda variant: variant.key.text)
                ),
            )

    def _compiled(self, function: Any, name: str, variants: list[SeenVariant]) -> dict[str, Compile]:
        """The variants' real compiles by key, where they were asked for; a failure is a finding."""
        compiled = {}
        for variant in variants if self._request.narrowing.compile else ():
            result = compile_variant(function, variant, self._capture.target)
            if isinstance(result, CompileFailed):
                message = f"does not compile for {variant.key.text}: {result.message}"
                self._findings.append(Finding(code="JA012", name="not-warmable", message=message, kernel=name))
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


def _autotuner(kernel: SeenKernel) -> Autotuner | None:
    if kernel.tuner is None:
        return None
    keys = kernel.tuner.tuning_keys
    return Autotuner(
        arguments=kernel.tuner.arguments,
        configs=tuple(map(_config_text, kernel.tuner.configs)),
        tuning_keys=tuple(TuningKey(key=key, configs=keys[key]) for key in sorted(keys)),
        benchmark_runs=kernel.tuner.benchmark_runs,
    )


def _config_text(config: Any) -> str:
    """Without the options that are unset: which there are differs between Tritons."""
    return ", ".join(f"{name}: {value}" for name, value in config.all_kwargs().items())


def _source_findings(function: Any, kernel: str) -> Iterator[Finding]:
    """What a kernel's declaration gets wrong: JA001, JA002, JA003."""
    parameters = identity.parameters(function)
    policies = {parameter.name: parameter.policy for parameter in parameters}
    names = list(policies)
    for option in ("do_not_specialize", "do_not_specialize_on_alignment"):
        for listed in getattr(function, option):
            argument = names[listed] if isinstance(listed, int) and 0 <= listed < len(names) else str(listed)
            if argument not in policies:
                message = (
                    f"{option} names {argument}, which is no parameter: Triton accepts it silently, and it does nothing"
                )
                yield Finding(
                    code="JA002", name="unknown-name-in-dns", message=message, kernel=kernel, argument=argument
                )
            elif policies[argument] == "constexpr":
                message = (
                    f"{argument} is a constexpr, so listing it in {option} has no effect on the key: every value is a "
                    "variant, and Triton refuses to compile each of them; drop it from the list"
                )
                yield Finding(code="JA001", name="constexpr-in-dns", message=message, kernel=kernel, argument=argument)
    for parameter in parameters:
        if parameter.use == "unread" and parameter.policy in ("constexpr", "specialized"):
            message = f"the body never reads {parameter.name}, and its class is in the key; drop it"
            yield Finding(code="JA003", name="unread-argument", message=message, kernel=kernel, argument=parameter.name)


def _never_launched(loaded: Loaded, manifest: Manifest) -> Iterator[Finding]:
    """JA006: the kernels of the target's own modules that no case launched or passed on, and no kernel calls."""
    launched = {kernel.id for kernel in manifest.kernels}
    passed = {
        text for k in manifest.kernels for v in k.variants for text in v.key.arguments.values() if "function" in text
    }
    functions = {module: dict(identity.jit_functions(module)) for module in loaded.modules}
    called = {name for held in functions.values() for f in held.values() for name in identity.called_names(f)}
    for module, held in functions.items():
        for function in held.values():
            kernel = identity.kernel_id(function, loaded.root, loaded.files)
            if function.fn.__module__ != module.__name__ or kernel in launched or function.__name__ in called:
                continue
            launched.add(kernel)
            if not any(value_text(function, Opaque()) in text for text in passed):
                message = "no case of the sweeps launches it: its variants are not counted"
                yield Finding(code="JA006", name="never-launched", message=message, kernel=kernel)


def _raised(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    message = str(error).strip().partition("\n")[0]
    return f"{frame.filename}:{frame.lineno}: {type(error).__name__}: {message}"
