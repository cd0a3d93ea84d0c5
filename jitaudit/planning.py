"""From a manifest to what Triton would look up: each variant's disk hash here, or why it has none.

Kernels are found by importing their modules, so it runs in a process of its own (`sweeping.process`). A manifest is
data: it names installed modules, never files. A file is loaded only when the user gives it.
"""

from __future__ import annotations

import importlib
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from jitaudit.boxes import expand
from jitaudit.errors import SetupError
from jitaudit.jit import identity
from jitaudit.jit.environment import cache_setting
from jitaudit.jit.lookup import Broken, Whole, cache_manager, look_up
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


class Cache(msgspec.Struct, frozen=True):
    """The Triton cache directory in question."""

    path: str
    """Absolute."""
    decided_by: str
    """The option or the variable, or ``default``."""


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

    @property
    def distinct(self) -> dict[str, Planned]:
        """One variant for each disk hash."""
        return {variant.hash: variant for variant in reversed(self.planned)}


def cache_here(given: Path | None) -> Cache:
    """The directory that the user gives, else the one that a Triton process started here would use.

    Raises SetupError where the environment names none.
    """
    if given is not None:
        return Cache(os.path.abspath(given), "--cache-dir")
    setting = cache_setting()
    if not setting.path:
        raise SetupError("TRITON_CACHE_DIR is empty, and Triton refuses to compile; set it to a directory, or unset it")
    return Cache(os.path.abspath(setting.path), setting.decided_by)


def child_environment(cache: Cache) -> dict[str, str]:
    """What the process that plans needs: the directory, and no threads that it would fork beside."""
    return {"TRITON_CACHE_DIR": cache.path, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def find_kernels(manifest: Manifest, sources: Sources) -> tuple[Any, ...]:
    """For each kernel of the manifest its `JITFunction`, or the NotWarmable that says why there is none.

    Imports their modules. Raises RequestError where a file that the user gave can't be loaded.
    """
    if sys.path[:1] == [""] and not sources.here:
        del sys.path[0]  # `python -c` puts the working directory there, and what lies in it is not installed
    files = dict(map(load_file, sources.files))
    return tuple(_found(kernel, files) for kernel in manifest.kernels)


def plan(manifest: Manifest, functions: Sequence[Any], *, generic: bool = False) -> tuple[Plan, dict[str, Rebuilt]]:
    """Plan each variant for the target that Triton compiles for now; and what to compile, by disk hash.

    `functions`: what `find_kernels` found.
    """
    planned: list[Planned] = []
    unplanned: list[Unplanned] = []
    rebuilt: dict[str, Rebuilt] = {}
    for kernel, function in zip(manifest.kernels, functions, strict=True):
        try:
            if isinstance(function, NotWarmable):
                raise function
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


def survey(plan: Plan, directory: Path, listed: Mapping[str, Mapping[str, str]]) -> dict[str, Whole | Broken | None]:
    """What Triton would find in `directory` under each disk hash of the plan.

    `listed`: by hash, the files that a marker lists.
    """
    return {
        digest: look_up(directory, digest, variant.name, listed.get(digest, {}), cache_manager(digest))
        for digest, variant in plan.distinct.items()
    }


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


def _found(kernel: Kernel, files: Mapping[str, ModuleType]) -> Any:
    home, _, qualname = kernel.id.partition(":")
    try:
        if kernel.object is None:
            raise NotWarmable("its module holds no such kernel (a closure or generated code)")
        if home not in files and (home.endswith(".py") or "/" in home):
            raise NotWarmable(f"it lives in the file {home}: give that file with --sweeps")
        function = _functions(files.get(home) or _import(home)).get(kernel.object)
        if function is None or function.fn.__qualname__ != qualname:
            raise NotWarmable(f"{home} no longer holds the kernel {qualname} at {kernel.object}")
    except NotWarmable as why:
        return why
    return function


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
