"""What could be changed so that variants merge, and the count that each change leads to, found by computing it. Pure.

*Intended* is what is meant to differ and is left alone: None-ness, flags and names (constexprs that are no numbers),
dtypes, numbers and options that no axis of ints moves, and what an autotuner sets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from jitaudit.jit.launch_options import default_option
from jitaudit.jit.target import DEFAULT_TARGET
from jitaudit.judging.reach import Column, Reach
from jitaudit.judging.rewriting import number_of, rewritten
from jitaudit.model import Cause, CauseKind, Kernel, ParameterUse, Remedy, SweepRun

_WIDEST = ("i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "fp64", "fp32", "bf16", "fp16")
"""Element types in the order in which a cast prefers them."""


class Remedies:
    """A kernel's remedies, and what any set of them comes to."""

    def __init__(self, kernel: Kernel, sweeps: Sequence[SweepRun], target: str = DEFAULT_TARGET) -> None:
        self.reach = Reach(kernel, sweeps)
        self._backend = target.partition(":")[0]
        self._uses = {parameter.name: parameter.use for parameter in kernel.parameters}
        self._listed: dict[str, Remedy] = {}
        """What the kernel does already: it acts on what a remedy passes, too."""
        for parameter in kernel.parameters:
            if parameter.policy == "do_not_specialize" or parameter.policy == "do_not_specialize_on_alignment":
                self._listed[parameter.name] = Remedy(parameter.policy, parameter.name)
        self._columns: dict[tuple[str, CauseKind | None, tuple[Remedy, ...]], list[int] | None] = {}

    @cached_property
    def choices(self) -> tuple[tuple[Remedy, ...], ...]:
        """For each thing that could be mended: its remedies, the one to prefer first."""
        return tuple(dict.fromkeys(choice for choice in self._offered.values() if choice))

    @cached_property
    def all(self) -> tuple[Remedy, ...]:
        """Every remedy once."""
        return tuple(dict.fromkeys(remedy for choice in self.choices for remedy in choice))

    @cached_property
    def unmended(self) -> tuple[Cause, ...]:
        """What splits, is not intended, and has no remedy here."""
        return tuple(c for c in self.reach.causes if self._offered.get((c.argument, c.kind)) == ())

    def count(self, remedies: Iterable[Remedy]) -> int:
        """The number of variants with all of `remedies`."""
        chosen = list(remedies)
        columns = (self._merged(column, chosen) for column in self.reach.columns.values())
        return self.reach.count([ids for ids in columns if ids is not None])

    @cached_property
    def intended(self) -> int:
        """The number of variants that differ in something intended."""
        columns = []
        for title, column in self.reach.columns.items():
            causes = self.reach.causes_by_title[title]
            kinds = {cause.kind for cause in causes if (cause.argument, cause.kind) in self._meant}
            classes = [c for kind, c in column.classes(self.reach.facets(column)).items() if kind in kinds]
            # A flag that is spelled in several types is meant to be on or off.
            flags = [r for r in self.all if _concerns(r, column) and (r.kind, r.setting) == ("retype", "bool")]
            if flags and number_of(column.texts[0]) is not None:
                classes.append([rewritten(text, flags) for text in column.texts])
            columns += [[texts[item] for item in column.ids] for texts in classes]
        return self.reach.count(columns)

    def use(self, argument: str) -> ParameterUse | None:
        """What the kernel does with an argument, where that is known."""
        return self._uses.get(argument)

    def lanes(self, floor: Remedy) -> float:
        """How many times the lanes of today's blocks run with `floor`, on average over the launches."""
        before = after = 0
        for variant in self.reach.kernel.variants:
            block = number_of(variant.key.arguments.get(floor.argument))
            if block is not None:
                before += int(block) * variant.launches
                after += max(int(block), int(str(floor.setting))) * variant.launches
        return after / before if before else 1.0

    @cached_property
    def _offered(self) -> dict[tuple[str, CauseKind], tuple[Remedy, ...]]:
        """The remedies of each cause that is not intended."""
        causes = (cause for cause in self.reach.causes if (cause.argument, cause.kind) not in self._meant)
        return {(cause.argument, cause.kind): tuple(self._remedies(cause)) for cause in causes}

    @cached_property
    def _meant(self) -> frozenset[tuple[str, CauseKind]]:
        return frozenset((cause.argument, cause.kind) for cause in self.reach.causes if self._is_intended(cause))

    def _merged(self, column: Column, remedies: Iterable[Remedy]) -> Sequence[int] | None:
        """What a column has under `remedies`, a number a variant; None where all are one."""
        mine = tuple(remedy for remedy in remedies if _concerns(remedy, column))
        if not mine:
            return column.ids
        key = (column.name, column.option, mine)
        if key not in self._columns:
            ids: dict[str | None, int] = {}
            done = (*mine, self._listed[column.name]) if column.name in self._listed else mine
            merged = [ids.setdefault(rewritten(text, done), len(ids)) for text in column.texts]
            self._columns[key] = [merged[item] for item in column.ids] if len(ids) > 1 else None
        return self._columns[key]

    def _is_intended(self, cause: Cause) -> bool:
        """Whether what this cause splits is meant to differ (see the module); never, if the body does not read it."""
        if self.use(cause.argument) == "unread" and cause.kind not in ("option", "autotune"):
            return False
        match cause.kind:
            case "none" | "autotune":
                return True
            case "constexpr":
                numbers = [number_of(text) for text in self.reach.columns[cause.argument].texts]
                if _are_flags_of_several_types(numbers):
                    return False
                plain = [number for number in numbers if number is not None and type(number) is not bool]
                return not plain or (bool(self.reach.grids) and not self._by_ints(cause))
            case "dtype":
                mixed = {"int", "float", "bool"} & set(cause.classes)
                return len(mixed) < 2 and not self._by_ints(cause)
            case "option":
                return not self._by_ints(cause)
            case _:
                return False

    def _by_ints(self, cause: Cause) -> bool:
        """Whether an axis of ints moves it."""
        return any(axis in cause.axis for _, axis in self.reach.int_axes)

    def _remedies(self, cause: Cause) -> Iterator[Remedy]:
        name = cause.argument
        if cause.kind == "option":
            default = str(default_option(self._backend, name))
            values = [default if value == "default" else value for value in cause.classes]
            if all(value.isdigit() for value in values):
                yield Remedy("option", name, max(map(int, values)))
            return
        use = self._uses.get(name)
        column = self.reach.columns[name]
        if use == "unread":
            yield Remedy("drop", name)
            return
        if any(text is not None and text.startswith("(") for text in column.texts):
            return
        match cause.kind:
            case "constexpr":
                yield from _for_constexpr(name, column, use)
            case "int_class":
                yield Remedy("do_not_specialize", name)
                if "%16" in cause.classes:
                    yield Remedy("do_not_specialize_on_alignment", name)
            case "alignment":
                listed = [Remedy("do_not_specialize_on_alignment", name), Remedy("do_not_specialize", name)]
                aligned = [Remedy("align", name)]
                yield from aligned + listed if use == "vector" else listed + aligned
            case "address_range":
                yield Remedy("do_not_specialize", name)
            case "width":
                if set(cause.classes) <= {"i32", "i64"} and len(_scalar_types(column)) == 1:
                    yield Remedy("annotate", name, "i64")
            case "dtype":
                yield from _for_dtype(name, column, cause)
            case _:
                return


def _concerns(remedy: Remedy, column: Column) -> bool:
    return remedy.argument == column.name and (remedy.kind == "option") is (column.option is not None)


def _for_constexpr(name: str, column: Column, use: ParameterUse | None) -> Iterator[Remedy]:
    numbers = [number_of(text) for text in column.texts]
    if _are_flags_of_several_types(numbers):
        yield Remedy("retype", name, "bool")
        return
    ints = [number for number in numbers if type(number) is int]
    powers = bool(ints) and len(ints) == len(column.texts) and all(n > 0 and n & (n - 1) == 0 for n in ints)
    # Triton takes no string, dtype or function as a runtime argument.
    can_move = all(
        number is not None or text in ("constexpr none", None)
        for number, text in zip(numbers, column.texts, strict=True)
    )
    if use not in ("block", "static") and can_move:
        yield Remedy("runtime", name, "do_not_specialize")
        yield Remedy("runtime", name)
    if powers and use in ("block", None):
        yield Remedy("floor", name, max(ints))


def _for_dtype(name: str, column: Column, cause: Cause) -> Iterator[Remedy]:
    scalars = _scalar_types(column)
    if len(scalars) > 1:
        ints = {text for text in column.texts if text and re.match(r"[iu]\d+ ", text)}
        flags = all(text.endswith(("=1", "%16")) for text in ints)
        yield Remedy("retype", name, "float" if "float" in scalars else "bool" if flags else "int")
    elements = [text.removeprefix("*") for text in cause.classes if text.startswith("*")]
    if len(elements) > 1 and all(element in _WIDEST for element in elements):
        yield Remedy("cast", name, min(elements, key=_WIDEST.index))


def _scalar_types(column: Column) -> set[str]:
    """Of a runtime argument: whether it arrives as an int, a float or a bool."""
    types = set()
    for text in column.texts:
        if text is not None and (match := re.match(r"([iu]\d+ )|(u1|i1)$|((?:fp|bf)\d+)$", text)):
            types.add("int" if match[1] else "bool" if match[2] else "float")
    return types


def _are_flags_of_several_types(numbers: Sequence[bool | int | float | None]) -> bool:
    """True with 1 or 1.0, False with 0 or 0.0: one flag, spelled in several types."""
    known = [number for number in numbers if number is not None]
    return len({type(number) for number in known}) > 1 and all(number in (0, 1) for number in known)
