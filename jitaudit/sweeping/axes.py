"""Sweeps, their axes, and axis values as text."""

from __future__ import annotations

import enum
import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from jitaudit.boxes import Point, compact, expand, group_of, quoted, read_range
from jitaudit.errors import RequestError
from jitaudit.jit.stops import CaseStopped, raised
from jitaudit.model import AxisValue


def ints(first: int, last: int, step: int = 1) -> range:
    """The ints from `first` to `last`, both included, for an axis of a sweep."""
    if step < 1 or last < first:
        raise ValueError(f"ints({first}, {last}, {step}): an empty range; the first must not exceed the last")
    return range(first, last + 1, step)


class Sweep:
    """A launcher over its axes. `sweep` makes it; calling it calls the function."""

    def __init__(
        self,
        function: Callable[..., object],
        axes: dict[str, tuple[Any, ...]],
        compare: str | None,
        where: Callable[..., bool] | None,
    ) -> None:
        self.function = function
        self.axes = axes
        self.compare = compare
        self.where = where
        self.__doc__ = function.__doc__
        self._check()

    def __call__(self, *args: Any, **kwargs: Any) -> object:
        return self.function(*args, **kwargs)

    def with_axes(self, given: dict[str, str], groups: Sequence[str] = ()) -> Sweep:
        """The same sweep with the axes that are given as text, as ``--axis`` has it, and the groups that are wanted.

        Raises RequestError for an axis value that can't be read or is not there.
        """
        axes = {
            name: read_axis(name, given[name], values) if name in given else values
            for name, values in self.axes.items()
        }
        if groups and self.compare:
            axes[self.compare] = tuple(v for v in axes[self.compare] if group_name(v) in groups)
        return Sweep(self.function, axes, self.compare, self.where)

    def as_recorded(self, axes: dict[str, tuple[AxisValue, ...]]) -> Sweep:
        """The same sweep over the values that a manifest has of its axes."""
        moved = {}
        for name, declared in self.axes.items():
            texts = tuple(map(axis_text, declared))
            if name in axes and set(map(str, expand(axes[name]))) != set(map(str, texts)):
                moved[name] = ",".join(map(str, compact(expand(axes[name]))))
        return self.with_axes(moved)

    def cases(self) -> Iterator[tuple[Point, dict[str, Any]]]:
        """Each case that `where` admits: its position on every axis, and its values by name.

        Raises RequestError where `where` raises.
        """
        named = inspect.signature(self.where).parameters if self.where else ()
        for point in product(*(range(len(values)) for values in self.axes.values())):
            case = {name: values[at] for at, (name, values) in zip(point, self.axes.items(), strict=True)}
            if self._admits({name: case[name] for name in named}):
                yield point, case

    def _admits(self, named: dict[str, Any]) -> bool:
        try:
            return self.where is None or bool(self.where(**named))
        except (Exception, CaseStopped) as error:
            name = getattr(self.function, "__qualname__", repr(self.function))
            raise RequestError(f"sweep {name}: its where raised at {''.join(raised(error))}") from error

    def _check(self) -> None:
        parameters = inspect.signature(self.function).parameters
        name = getattr(self.function, "__qualname__", repr(self.function))
        for axis, values in self.axes.items():
            if axis == "sweep" or axis not in parameters:
                raise ValueError(f"sweep {name}: axis {axis} is no parameter of the function")
            if not values:
                raise ValueError(f"sweep {name}: axis {axis} has no values")
            for value in values:
                axis_text(value)
        for parameter in parameters.values():
            needed = parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
            if needed and parameter.name not in self.axes:
                raise ValueError(f"sweep {name}: parameter {parameter.name} is no axis and has no default")
        if self.compare is not None and self.compare not in self.axes:
            raise ValueError(f"sweep {name}: compare={self.compare!r} is no axis")
        for unknown in set(inspect.signature(self.where).parameters if self.where else ()) - set(self.axes):
            raise ValueError(f"sweep {name}: where names {unknown}, which is no axis")


def sweep(
    *, compare: str | None = None, where: Callable[..., bool] | None = None, **axes: Iterable[Any]
) -> Callable[[Callable[..., object]], Sweep]:
    """Make a function that calls a launcher into a sweep over `axes`: every combination of their values is a case.

    compare: the axis whose values become the columns of the table.
    where: a function of the axes that it names; a case that it denies is dropped.
    A parameter with a default that is no axis keeps its default. Raises ValueError where these do not fit together.
    """

    def make(function: Callable[..., object]) -> Sweep:
        return Sweep(function, {name: tuple(values) for name, values in axes.items()}, compare, where)

    return make


def axis_text(value: Any) -> AxisValue:
    """An axis value as a manifest has it: an int as its digits, a dtype or enum by its qualified name.

    Raises ValueError for a value whose text would change from run to run.
    """
    kind = type(value)
    if value is None or kind in (bool, float):
        return value  # type: ignore[no-any-return]
    if kind is int:
        return str(value)
    if kind is str:
        return quoted(value)
    if isinstance(value, enum.Enum):
        return f"{kind.__module__}.{kind.__qualname__}.{value.name}"
    if isinstance(value, type | types.FunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    text = repr(value)
    if " at 0x" in text:
        raise ValueError(f"axis value {text} has no stable text; give its class a __repr__ that does not change")
    return text


def group_name(value: Any) -> str:
    """The group of a compared axis's value."""
    return group_of(axis_text(value))


def read_axis(name: str, text: str, declared: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values of ``--axis name=text``; words are looked up among the values that the sweep declares."""
    values: list[Any] = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        numbers = read_range(item)
        if numbers is not None:
            values += numbers
        elif item.lower() in _WORDS:
            values.append(_WORDS[item.lower()])
        else:
            values.append(_declared(name, item, declared))
    if not values:
        raise RequestError(f"--axis {name}={text}: an empty range; write {name}=1..64, 1..512:8, 1,2,4 or true")
    return tuple({(type(value), value): value for value in values}.values())


_WORDS = {"true": True, "false": False, "none": None}


def _declared(name: str, item: str, declared: tuple[Any, ...]) -> Any:
    for value in declared:
        text = str(axis_text(value))
        if item in (text, text.rpartition(".")[2]):
            return value
    try:
        return int(item)  # 1_000
    except ValueError:
        pass
    try:
        number = float(item)
    except ValueError:
        pass
    else:
        if declared and all(value is None or isinstance(value, int) for value in declared):
            raise RequestError(f"--axis {name}={item}: the sweep has ints there; write an int, or a range as in 1..64")
        return number
    if all(isinstance(value, str) for value in declared):
        return item
    known = ", ".join(str(axis_text(value)) for value in declared[:8])
    raise RequestError(f"--axis {name}={item}: neither a number nor a range nor one of the sweep's values ({known})")
