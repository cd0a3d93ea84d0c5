"""What runs in a target's own process: import it under capture, run its sweeps, and answer with a manifest."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from jitaudit.jit.capture import Capture, capturing, capturing_on_gpu
from jitaudit.jit.environment import environment
from jitaudit.jit.standin import preload
from jitaudit.manifest import sorted_findings, union
from jitaudit.model import SCHEMA_VERSION, Manifest, Profile
from jitaudit.sweeping.axes import Sweep, group_name
from jitaudit.sweeping.declarations import never_launched
from jitaudit.sweeping.forking import KeptFolder, in_fork
from jitaudit.sweeping.hosts import read_host_values
from jitaudit.sweeping.one_sweep import Part, SweepRunner, Swept
from jitaudit.sweeping.process import Progress, serve
from jitaudit.sweeping.relocating import relocate
from jitaudit.sweeping.running import Answer, Request
from jitaudit.sweeping.stubs import install_stubs
from jitaudit.sweeping.targets import load


def main(progress: int, private: str) -> None:
    """Answer the request that stands on standard input."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a fork has no other thread: torch must not wait for one
    serve(_run, Request, progress, private)


def _run(request: Request, progress: Progress) -> Answer:
    narrowing = request.narrowing
    if request.relocation is not None:
        relocate(request.relocation)
    install_stubs(narrowing.stubs)
    hosts = read_host_values(narrowing.host_values)
    world: AbstractContextManager[Capture] = capturing_on_gpu() if narrowing.gpu else capturing(request.architecture)
    with world as capture:
        loaded = load(request.target)
        if not narrowing.gpu:
            preload()
        home = KeptFolder(Path.home())

        def forked(work: Callable[[], Part]) -> Part:
            part = in_fork(work, Part, request.target.text)
            home.put_back()
            return part

        swept = [
            SweepRunner(
                name,
                sweep.with_axes(narrowing.axes, narrowing.groups),
                loaded,
                capture,
                hosts,
                compiles=narrowing.compile,
                isolated=_here if narrowing.gpu else forked,
                progress=progress,
            ).run(orders=narrowing.orders)
            for name, sweep in loaded.sweeps.items()
            if not narrowing.groups or set(_groups(sweep)) & set(narrowing.groups)
        ]
        manifest = union([_manifest(capture, None, narrowing.stubs), *(_manifest(capture, one, ()) for one in swept)])
        uncounted = frozenset().union(*(one.uncounted for one in swept))
        findings = sorted_findings((*manifest.findings, *never_launched(loaded, manifest, uncounted)))
    return Answer(
        manifest=msgspec.structs.replace(manifest, findings=findings),
        axes=tuple(sorted({axis for sweep in loaded.sweeps.values() for axis in sweep.axes})),
        groups=tuple(sorted({group for sweep in loaded.sweeps.values() for group in _groups(sweep)})),
        host_lines=tuple(sorted({line for one in swept for line in one.hosts})),
        unanswered=tuple(sorted({line for one in swept for line in one.unanswered})),
    )


def _here(work: Callable[[], Part]) -> Part:
    """CUDA does not survive a fork."""
    return work()


def _groups(sweep: Sweep) -> tuple[str, ...]:
    return tuple(map(group_name, sweep.axes[sweep.compare])) if sweep.compare else ()


def _manifest(capture: Capture, swept: Swept | None, stubs: tuple[str, ...]) -> Manifest:
    asked = capture.asked | swept.asked if swept else capture.asked
    return Manifest(
        schema_version=SCHEMA_VERSION,
        target=capture.target,
        configuration="",
        environment=environment(),
        profile=Profile(asked=tuple(sorted(asked)), stubs=stubs),
        sweeps=(swept.run,) if swept else (),
        kernels=swept.kernels if swept else (),
        findings=swept.findings if swept else (),
    )
