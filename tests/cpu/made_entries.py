"""Hand-made cache entries, as Triton 3.7 lays them out: consistent, tiny, and compiled by nobody."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
from dataclasses import dataclass, field, replace
from pathlib import Path

HOUR = 3600
BOOT = 1_767_225_600
"""2026-01-01T00:00:00Z."""


def elf(code: bytes) -> bytes:
    """A 64-bit ELF file of `code`, with one empty section behind it, as ptxas and lld put their tables last."""
    head = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 190, 1, 0, 0, 64 + len(code), 0, 64, 0, 0, 64, 1, 0
    )
    return head + code + bytes(64)


@dataclass(frozen=True)
class Made:
    """One entry to write."""

    kernel: str = "scale_kernel"
    arguments: tuple[str, ...] = ("x_ptr: *fp32 aligned", "n: i32 any")
    """``name: text`` each, in the words of a key."""
    salt: str = ""
    """What the compiled code does not show: a constexpr's value."""
    code: bytes = b"code"
    target: tuple[str, int | str] = ("cuda", 90)
    triton: str = "3.7.1"
    options: dict[str, object] = field(default_factory=dict)
    file: str = "/srv/site-packages/server/kernels.py"
    line: int = 7
    written: int = BOOT


def write_entry(cache: Path, made: Made) -> Path:
    """Write the entry below `cache` and return its directory."""
    digest = hashlib.sha256(repr(replace(made, written=0)).encode()).hexdigest()  # the same whenever it is written
    folder = cache / base64.b32encode(bytes.fromhex(digest)).decode().rstrip("=")
    folder.mkdir(parents=True)
    binary = "cubin" if made.target[0] == "cuda" else "hsaco"
    metadata = {
        "hash": digest,
        "target": {"backend": made.target[0], "arch": made.target[1], "warp_size": 32},
        "triton_version": made.triton,
        "name": made.kernel,
        **made.options,
    }
    files = {
        f"{made.kernel}.ttir": ttir(made).encode(),
        f"{made.kernel}.{binary}": elf(made.code),
        f"{made.kernel}.json": json.dumps(metadata).encode(),
    }
    group = {"child_paths": {name: str(folder.resolve() / name) for name in files}}
    files[f"__grp__{made.kernel}.json"] = json.dumps(group).encode()
    for name, data in files.items():
        (folder / name).write_bytes(data)
        os.utime(folder / name, (made.written, made.written))
    return folder


def ttir(made: Made) -> str:
    """The entry's TTIR: its argument list, and nothing that it does."""
    arguments = ", ".join(_argument(text) for text in made.arguments)
    return (
        f'#loc = loc("{made.file}":{made.line}:1)\nmodule {{\n'
        f"  tt.func public @{made.kernel}({arguments}) attributes {{noinline = false}} {{\n"
        f"    tt.return loc(#loc)\n  }} loc(#loc)\n}} loc(#loc)\n"
    )


_FLOATS = {"fp16": "f16", "fp32": "f32", "fp64": "f64"}


def _argument(text: str) -> str:
    name, _, words = text.partition(": ")
    kind, _, letter = words.partition(" ")
    element = kind.removeprefix("*")
    written = _FLOATS.get(element, element)
    written = f"!tt.ptr<{written}>" if kind.startswith("*") else written
    attributes = " {tt.divisibility = 16 : i32}" if letter in ("aligned", "%16") else ""
    return f'%{name}: {written}{attributes} loc("{name}"(#loc))'
