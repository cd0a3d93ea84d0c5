"""``--stub MODULE``: a stand-in for a package that can't be imported here.

It can be imported and passed around. Whatever could divert a launcher (a truth value, a comparison, a call, a type
check, a length, `hasattr`) stops the case, and so does a kernel that is given one.
"""

from __future__ import annotations

import dis
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any

from jitaudit.errors import RequestError
from jitaudit.jit.stops import Stub


def install_stubs(modules: Sequence[str]) -> None:
    """Make each of `modules`, and what lies below it, importable as a stub.

    Raises RequestError for one that is there: a stub never hides a real package.
    """
    for name in modules:
        if _is_there(name):
            raise RequestError(f"--stub {name}: it is installed here; a stub would hide it")
    if modules:
        sys.meta_path.insert(0, _Finder(tuple(modules)))


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


class _Finder(MetaPathFinder, Loader):
    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if not any(f"{fullname}.".startswith(f"{name}.") for name in self._names):
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StubModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


class _StubModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return _attribute(self.__name__, name, sys._getframe(1))


class _Stub(Stub):
    """Any attribute of a stub module."""

    def __getattr__(self, name: str) -> _Stub:
        return _attribute(self._name, name, sys._getframe(1))

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f"<stub {self._name}>"

    __bool__ = __call__ = __len__ = __iter__ = __contains__ = __getitem__ = Stub.stop
    __instancecheck__ = __subclasscheck__ = __mro_entries__ = Stub.stop
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __int__ = __float__ = __index__ = Stub.stop


def _attribute(owner: str, name: str, asking: FrameType) -> _Stub:
    """For who writes ``owner.name``; who calls `hasattr` or `getattr` asks whether it is there, and nobody knows."""
    if name.startswith("__"):
        raise AttributeError(name)
    stub = _Stub(f"{owner}.{name}")
    if _is_call(asking) and not asking.f_code.co_filename.startswith("<frozen importlib"):
        stub.stop()
    return stub


def _is_call(frame: FrameType) -> bool:
    """Whether the instruction that a frame is at calls something, rather than loads an attribute."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("CALL")
