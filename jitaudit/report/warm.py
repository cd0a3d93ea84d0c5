"""What `jitaudit warm` says: one screen for a person; JSON has the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from jitaudit.configuration import kernel_name
from jitaudit.warming import Warming

_SHOWN = 6
"""Lines of each list before ``-v``."""


def text(warming: Warming, *, verbose: bool = False) -> str:
    """The verdict, what went wrong, and the slowest compiles."""
    return "".join(f"{line}\n" for line in _lines(warming, verbose=verbose))


def _lines(warming: Warming, *, verbose: bool) -> Iterator[str]:
    where = f"{warming.target} in {warming.cache.path} ({warming.cache.decided_by})"
    if warming.nothing_to_do:
        yield f"WARM  {where}: nothing to do, all {warming.present} are there"
    else:
        yield f"{_verdict(warming)}  {where}"
        yield ", ".join(_counts(warming)) + f"; {_seconds(warming)}"
    yield from _shortened(
        [f"FAILED  {kernel_name(one.kernel, one.group)}: {one.brief}: {one.reason}" for one in warming.failed], verbose
    )
    yield from _shortened(
        [
            f"NOT WARMABLE  {kernel_name(one.kernel, one.group)} ({one.variants} variants): {one.reason}"
            for one in warming.unplanned
        ],
        verbose,
    )
    yield from _shortened([f"PARTIAL  {line}: jitaudit probe tells why" for line in warming.uncounted], verbose)
    yield from _shortened(list(_damage(warming)), verbose)
    left = Counter((kernel_name(one.kernel, one.group), one.reason) for one in warming.left)
    yield from _shortened([f"LEFT  {kernel}: {count}: {reason}" for (kernel, reason), count in left.items()], verbose)
    if warming.stopped:
        yield f"STOPPED  {warming.stopped}"
    if not warming.nothing_to_do:
        for one in warming.slowest:
            yield f"{one.seconds:7.2f} s  {kernel_name(one.kernel, one.group)}: {one.brief}"
    yield from _afterwards(warming)
    for note in warming.notes:
        yield f"note: {note}"


def _verdict(warming: Warming) -> str:
    if warming.stopped:
        return "STOPPED"
    if warming.failed or warming.unplanned or warming.damaged:
        return "WARM" if warming.complete else "INCOMPLETE"
    return "LEFT SOME" if warming.left else "WARM"


def _counts(warming: Warming) -> Iterator[str]:
    yield f"{warming.compiled} compiled"
    yield f"{warming.present} already there"
    for count, what in ((len(warming.failed), "failed"), (len(warming.left), "left")):
        if count:
            yield f"{count} {what}"


def _seconds(warming: Warming) -> str:
    return (
        f"{warming.start_seconds:.1f} s to start, {warming.look_seconds:.1f} s to look, "
        f"{warming.compile_seconds:.1f} s to compile ({warming.cpu_seconds:.1f} s of CPU)"
    )


def _damage(warming: Warming) -> Iterator[str]:
    for one in warming.damaged:
        aside = f"; set aside in {one.aside}" if one.aside else "; jitaudit warm --repair sets it aside and restores it"
        restored = "" if not one.restored else ", restored byte for byte" if one.identical else ", compiled again"
        yield f"{'REPAIRED' if one.restored else 'DAMAGED'}  {one.kernel}: {one.file}: {one.detail}{aside}{restored}"


def _afterwards(warming: Warming) -> Iterator[str]:
    """What a GPU added, and what one adds later."""
    if warming.tuned:
        yield f"TUNED  {len(warming.tuned.winners)} tuning keys measured on {warming.tuned.device}"
        yield from (f"RAISED  {line}" for line in warming.tuned.raised[:_SHOWN])
    if warming.unknown_winners:
        yield (
            f"note: {warming.unknown_winners} tuning keys: every config is compiled, and which one wins only a GPU can "
            "tell; the first launch of each key benchmarks"
        )
    if warming.host_builds:
        compiler = f"with {warming.compiler}" if warming.compiler else "and there is no C compiler here"
        libraries = f"{warming.host_builds} C {'library' if warming.host_builds == 1 else 'libraries'}"
        yield f"note: the first launches on a GPU build {libraries} {compiler}"


def _shortened(lines: list[str], verbose: bool) -> Iterator[str]:
    shown = lines if verbose or len(lines) <= _SHOWN else lines[: _SHOWN - 1]
    yield from shown
    if len(shown) < len(lines):
        yield f"{len(lines) - len(shown)} more, use -v"
