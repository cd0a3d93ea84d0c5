"""Arbitrary nouns for property tests, made from the types in `jitaudit.model` themselves."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from msgspec import inspect as types

TEXT = st.text(max_size=6)


def nouns(kind: Any) -> st.SearchStrategy[Any]:
    """Any value that the type `kind` allows."""
    return _of(types.type_info(kind))


def _of(kind: types.Type) -> st.SearchStrategy[Any]:
    match kind:
        case types.NoneType():
            return st.none()
        case types.BoolType():
            return st.booleans()
        case types.IntType():
            return st.integers(-(2**63), 2**63 - 1)
        case types.FloatType():
            return st.floats(allow_nan=False, allow_infinity=False)
        case types.StrType():
            return TEXT
        case types.LiteralType(values=values):
            return st.sampled_from(values)
        case types.UnionType(types=members):
            return st.one_of(*map(_of, members))
        case types.VarTupleType(item_type=item):
            return st.lists(_of(item), max_size=2).map(tuple)
        case types.DictType(key_type=key, value_type=value):
            return st.dictionaries(_of(key), _of(value), max_size=2)
        case types.StructType(cls=cls, fields=fields):
            return st.builds(cls, **{field.name: _of(field.type) for field in fields})
    raise TypeError(f"no strategy for {kind}")
