"""What a compiled kernel is made of, read from its ELF file and its assembly: the static price of a variant, no GPU.

NVIDIA (CUDA ELF): ``.nv.info`` has records of a format byte, an attribute byte and a value, among them a function's
registers and local memory; an instruction has 16 bytes. AMD: the assembly carries the same facts as metadata.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from jitaudit.model import Code

_INSTRUCTION_BYTES = 16
_NOP, _BRANCH = 0x918, 0x947
"""Opcodes (the lower 12 bits) of what ptxas pads a function with: a branch to itself, then NOPs."""
_SIZED = 0x04
"""The format of ``.nv.info`` whose value has a length of its own: here (symbol, number), 4 bytes each."""
_FRAME_SIZE, _REGISTER_COUNT = 0x11, 0x2F
"""Its attributes ``EIATTR_FRAME_SIZE``, in bytes, and ``EIATTR_REGCOUNT``."""

_ENTRY = slice(16, 24)
"""``KERNEL_CODE_ENTRY_BYTE_OFFSET`` in AMD's kernel descriptor."""

_PTX_ACCESS = re.compile(
    r"^\s*(?:@!?%\w+\s+)?(ld|st)\.(?:volatile\.|relaxed\.|acquire\.|release\.)*global(\.[\w.:]*)?\s", re.M
)
_PTX_ASYNC = re.compile(
    r"^\s*(?:@!?%\w+\s+)?cp\.async\.c[ag]\.shared\.global\S*\s+\[[^]]*\],\s*\[[^]]*\],\s*(\w+)", re.M
)
_AMD_ACCESS = re.compile(r"^\s*(?:global|buffer|flat)_(load|store)_(?:lds_)?(\w+)", re.M)
_AMD_BITS = {
    "ubyte": 8, "sbyte": 8, "byte": 8, "u8": 8, "i8": 8, "b8": 8, "ushort": 16, "sshort": 16, "short": 16, "u16": 16,
    "i16": 16, "b16": 16, "dword": 32, "b32": 32, "dwordx2": 64, "b64": 64, "dwordx3": 96, "b96": 96, "dwordx4": 128,
    "b128": 128,
}  # fmt: skip


def code_of(kernel: Any, target: str) -> Code:
    """Take stock of what `triton.compile` returned for `target`."""
    return _nvidia(kernel) if target.startswith("cuda:") else _amd(kernel)


def _nvidia(kernel: Any) -> Code:
    sections = list(_sections(kernel.asm["cubin"]))
    text = next(section for section in sections if section.name == f".text.{kernel.metadata.name}")
    facts = _largest(next((section.content for section in sections if section.name == ".nv.info"), b""))
    loads, stores = _ptx_accesses(kernel.asm["ptx"])
    return Code(
        digest=_digest(sections),
        instructions=_instructions(text.content),
        registers=facts.get(_REGISTER_COUNT, 0),
        spills=facts.get(_FRAME_SIZE, 0),
        shared=kernel.metadata.shared,
        loads=loads,
        stores=stores,
    )


def _amd(kernel: Any) -> Code:
    assembly = kernel.asm["amdgcn"]
    body = assembly.partition(f"{kernel.metadata.name}:")[2].partition(".Lfunc_end")[0]

    def fact(name: str) -> int:
        return max((int(value) for value in re.findall(rf"\.{name}:\s+(\d+)", assembly)), default=0)

    accesses: dict[str, Counter[int]] = {"load": Counter(), "store": Counter()}
    for operation, width in _AMD_ACCESS.findall(body):
        accesses[operation][_AMD_BITS[width.partition("_")[0]]] += 1
    return Code(
        digest=_digest(map(_without_entry, _sections(kernel.asm["hsaco"]))),
        instructions=len(re.findall(r"^\s+[a-z]\w+", body, re.M)),
        registers=fact("vgpr_count"),
        spills=fact("private_segment_fixed_size"),
        shared=kernel.metadata.shared,
        loads=_sorted(accesses["load"]),
        stores=_sorted(accesses["store"]),
    )


def _ptx_accesses(ptx: str) -> tuple[dict[int, int], dict[int, int]]:
    accesses: dict[str, Counter[int]] = {"ld": Counter(), "st": Counter()}
    for operation, modifiers in _PTX_ACCESS.findall(ptx):
        vector = re.search(r"\.v(\d)", modifiers)
        bits = re.search(r"\.[bsuf](\d+)$", modifiers)
        if bits:
            accesses[operation][int(bits[1]) * (int(vector[1]) if vector else 1)] += 1
    accesses["ld"].update(int(size, 0) * 8 for size in _PTX_ASYNC.findall(ptx))
    return _sorted(accesses["ld"]), _sorted(accesses["st"])


def _sorted(counts: Counter[int]) -> dict[int, int]:
    return {bits: counts[bits] for bits in sorted(counts, reverse=True)}


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    content: bytes


def _sections(elf: bytes) -> Iterator[_Section]:
    """The sections of a 64-bit little-endian ELF file that have content."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, table + index * size) for index in range(count)]
    names = headers[names_index][4]
    for name, kind, _, _, offset, length, *_ in headers:
        end = elf.index(b"\0", names + name)
        content = b"" if kind in (0, 8) else elf[offset : offset + length]  # 8: no bits in the file
        yield _Section(elf[names + name : end].decode(), content)


def _digest(sections: Iterable[_Section]) -> str:
    """Of code and constants alone: symbol names, debug lines and notes stand in other sections."""
    digest = hashlib.sha256()
    for section in sections:
        kind = re.match(r"\.text|\.nv\.constant\d*|\.nv\.global|\.rodata|\.data", section.name)
        if kind:
            digest.update(f"{kind[0]} {len(section.content)}\n".encode() + section.content)
    return f"sha256:{digest.hexdigest()}"


def _without_entry(section: _Section) -> _Section:
    """AMD's kernel descriptor without its distance to the code, which the length of names in between moves."""
    if section.name != ".rodata":
        return section
    return _Section(section.name, section.content[: _ENTRY.start] + section.content[_ENTRY.stop :])


def _instructions(code: bytes) -> int:
    opcodes = [int.from_bytes(code[at : at + 2], "little") & 0xFFF for at in range(0, len(code), _INSTRUCTION_BYTES)]
    while opcodes and opcodes[-1] == _NOP:
        opcodes.pop()
    return len(opcodes) - (bool(opcodes) and opcodes[-1] == _BRANCH)


def _largest(info: bytes) -> dict[int, int]:
    """By attribute of ``.nv.info``: the largest number that a function has."""
    largest: dict[int, int] = {}
    at = 0
    while at + 4 <= len(info):
        form, attribute, length = struct.unpack_from("<BBH", info, at)
        if form == _SIZED and length == 8:
            (number,) = struct.unpack_from("<I", info, at + 8)
            largest[attribute] = max(number, largest.get(attribute, 0))
        at += 4 + (length if form == _SIZED else 0)
    return largest
