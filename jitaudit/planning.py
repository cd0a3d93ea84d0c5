"""From a manifest to what Triton would look up: each variant's disk hash here, or why it has none.

Kernels are found by importing their modules, so it runs in a process of its own (`sweeping.process`). A manifest is
data: it names installed modules, never files. A file is loaded only when the user gives it.
"""

from __future__ import annotations

import importlib
import math
import re
import sys
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import msgspec

from jitaudit.boxes import expand
from jitaudit.jit import identity
from jitaudit.jit.marker import Parts
from jitaudit.jit.rebuild import NotWarmable, Rebuilder, Rebuilt, hashed_parts
from jitaudit.model import Kernel, Manifest, Variant, VariantKey
from jitaudit.sweeping.targets import load_file, raised_on_import


class Sources(msgspec.Struct, frozen=True):
    """Whose code may be loaded, besides installed modules."""

    files: tuple[str, ...] = ()
    """Files that the user gave, which hold launchers and kernels."""
    here: bool = False
    """Modules of the working directory: the user named one as a target."""


class Planned(msgspec.Struct, frozen=True):
    """A variant, and what Triton files it under here."""

    kernel: str
    group: str | None
    key: VariantKey
    name: str
    """What the entry's files are named after."""
    hash: str
    code: str
    """Triton's digest of the function and what it uses."""
    source: str
    line: int
    cases: int
    """How many cases reach it; 0 for one that `--generic` added."""
    seconds: float | None
    """What its compile took where the manifest was made."""


class Unplanned(msgspec.Struct, frozen=True):
    """A variant that can't be made from the manifest, or a whole kernel (key None)."""

    kernel: str
    group: str | None
    key: VariantKey | None
    variants: int
    reason: str


class Plan(msgspec.Struct, frozen=True):
    """What a manifest asks for, here and now."""

    target: str
    parts: Parts
    planned: tuple[Planned, ...]
    unplanned: tuple[Unplanned, ...]


def plan(manifest: Manifest, sources: Sources, *, generic: bool = False) -> tuple[Plan, dict[str, Rebuilt]]:
    """Plan each variant for the target that Triton compiles for now; what to compile, by disk hash.

    Raises RequestError where a given file can't be loaded.
    """
    finder = KernelFinder(sources)
    planned: list[Planned] = []
    unplanned: list[Unplanned] = []
    rebuilt: dict[str, Rebuilt] = {}
    for kernel in manifest.kernels:
        try:
            function = finder.find(kernel)
            rebuilder = Rebuilder(function)
        except NotWarmable as why:
            unplanned.append(Unplanned(kernel.id, kernel.group, None, len(kernel.variants), str(why)))
            continue
        for variant in (*kernel.variants, *(generic_variants(kernel) if generic else ())):
            try:
                made = rebuilder.rebuild(variant.key)
            except NotWarmable as why:
                unplanned.append(Unplanned(kernel.id, kernel.group, variant.key, 1, str(why)))
                continue
            rebuilt.setdefault(made.hash, made)
            planned.append(_planned(kernel, variant, function, made))
    return Plan(manifest.target, hashed_parts(), tuple(planned), tuple(unplanned)), rebuilt


def generic_variants(kernel: Kernel) -> Iterator[Variant]:
    """For each set of dtypes, widths and constexprs, the variant without any class, where the kernel has it not yet.

    Its binary is valid for every variant of the same set.
    """
    known = {variant.key.text for variant in kernel.variants}
    for variant in kernel.variants:
        arguments = {name: _generic(text) for name, text in variant.key.arguments.items()}
        key = VariantKey(arguments=arguments, options=variant.key.options)
        if key.text not in known:
            known.add(key.text)
            yield Variant(key=key, via=variant.via, origin=variant.origin, launches=0, cases=())


class KernelFinder:
    """Finds the `JITFunction` of a manifest's kernel. Loads the user's files at once, modules when they are needed."""

    def __init__(self, sources: Sources) -> None:
        if sys.path[:1] == [""] and not sources.here:
            del sys.path[0]  # `python -c` puts the working directory there, and what lies in it is not installed
        self._files = dict(map(load_file, sources.files))

    def find(self, kernel: Kernel) -> Any:
        """The kernel's `JITFunction`. Raises NotWarmable where there is none, or none that may be looked for."""
        home, _, qualname = kernel.id.partition(":")
        if kernel.object is None:
            raise NotWarmable("its module holds no such kernel (a closure or generated code)")
        functions = _functions(self._module(home))
        function = functions.get(kernel.object)
        if function is None or function.fn.__qualname__ != qualname:
            raise NotWarmable(f"{home} no longer holds the kernel {qualname} at {kernel.object}")
        return function

    def _module(self, home: str) -> ModuleType:
        if home in self._files:
            return self._files[home]
        if home.endswith(".py") or "/" in home:
            raise NotWarmable(f"it lives in the file {home}: give that file with --sweeps")
        return _import(home)


@cache
def _functions(module: ModuleType) -> dict[str, Any]:
    return dict(identity.jit_functions(module))


@cache
def _import(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise NotWarmable(f"{name!r} is no module's name")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise NotWarmable(f"no module {name} is installed; give its file with --sweeps") from None
        raise NotWarmable(raised_on_import(name, error)) from None
    except (Exception, SystemExit) as error:  # whatever a module raises when it runs
        raise NotWarmable(raised_on_import(name, error)) from None


def _planned(kernel: Kernel, variant: Variant, function: Any, made: Rebuilt) -> Planned:
    return Planned(
        kernel=kernel.id,
        group=kernel.group,
        key=variant.key,
        name=made.name,
        hash=made.hash,
        code=function.cache_key,
        source=identity.source_digest(function),
        line=function.starting_line_number,
        cases=sum(_size(box) for box in variant.cases),
        seconds=sum(variant.compile.seconds.values()) if variant.compile else None,
    )


def _size(box: dict[str, Any]) -> int:
    return math.prod(len(expand(values)) for axis, values in box.items() if axis != "sweep")


_CLASSES = re.compile(r"\b([iu]\d+) (?:=1|%16)|(\*\w+) (?:aligned|unaligned)(?: <2GB)?")


def _generic(text: str) -> str:
    """An argument's text without its class; a constexpr's has none."""
    if text.startswith("constexpr "):
        return text
    return _CLASSES.sub(lambda match: f"{match[1]} any" if match[1] else f"{match[2]} unaligned", text)
