"""`jitaudit doctor` for a person: a row a thing, PASS or WARN before those that can go wrong."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from jitaudit.doctor import Diagnosis, TritonCache, Usage
from jitaudit.jit.environment import Compiler, Package


def text(diagnosis: Diagnosis) -> RenderableType:
    """The diagnosis on one screen; JSON has what is left out (the key's variables that are unset)."""
    table = Table.grid(
        Column(no_wrap=True),
        Column(no_wrap=True),
        Column(overflow="fold"),
        padding=(0, 2),
    )
    for subject, lines in _judged(diagnosis):
        harms = [caution for caution in diagnosis.warnings if caution.subject == subject]
        lines = [*lines, *(f"{caution.message}; {caution.remedy}" for caution in harms)]
        table.add_row(_WARN if harms else _PASS, subject, Text("\n".join(lines)))
    for subject, line in _told(diagnosis):
        table.add_row("", subject, Text(line))
    version = diagnosis.jitaudit or "(not installed)"
    return Group(Text(f"jitaudit {version} on Python {diagnosis.python}"), "", table)


_PASS = Text("PASS", style="green")
_WARN = Text("WARN", style="bold yellow")


def _judged(diagnosis: Diagnosis) -> Iterator[tuple[str, list[str]]]:
    """Each subject that a warning can be about, with what is so whatever the verdict."""
    cache = diagnosis.cache
    yield "Triton", _package(diagnosis.triton)
    yield "torch", _package(diagnosis.torch)
    yield "C compiler", _compiler(diagnosis.compiler)
    yield "cache", _cache(cache)
    if cache.file_system:
        yield "file system", [f"{cache.file_system} on {cache.mount_point}"]
    own_rows = {"Triton", "torch", "C compiler", "cache", "file system"}
    for subject in sorted({caution.subject for caution in diagnosis.warnings} - own_rows):
        yield subject, []


def _told(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    yield "GPUs", ", ".join(diagnosis.gpus) or "none found; only --gpu needs one"
    for cache in diagnosis.other_caches:
        yield cache.tool, f"{cache.path} ({cache.decided_by}): {_usage(cache.usage)}"
    given = [f"{name}={value}" for name, value in diagnosis.variables.items() if value is not None]
    yield "in the key", " ".join(given) or f"none of the {len(diagnosis.variables)} variables is set"


def _package(found: Package) -> list[str]:
    return [f"{found.version} ({', '.join(found.distributions)})"] if found.version else []


def _compiler(compiler: Compiler) -> list[str]:
    return [f"{compiler.path} ({compiler.decided_by})"] if compiler.path else []


def _cache(cache: TritonCache) -> list[str]:
    held = _usage(cache.usage) if cache.usage else "not there yet"
    lines = [f"{cache.setting.path or repr('')} ({cache.setting.decided_by}): {held}"]
    if cache.inductor_moves_to:
        lines.append(f"Inductor's first graph moves it to {cache.inductor_moves_to}, unless TRITON_CACHE_DIR is set")
    return lines


def _usage(usage: Usage) -> str:
    more = "" if usage.complete else "at least "
    return f"{more}{usage.entries:,} {'entry' if usage.entries == 1 else 'entries'}, {_size(usage.bytes)}"


def _size(size: int) -> str:
    if size < 1024:
        return f"{size} B"
    number = size / 1024
    for unit in ("KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"
