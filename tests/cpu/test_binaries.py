"""What is read from a binary is what NVIDIA's own tools and AMD's assembler say of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import triton
import triton.language as tl
from triton.compiler import ASTSource

from jitaudit.jit.binaries import code_of
from jitaudit.jit.target import gpu_target

pytestmark = pytest.mark.matrix

TARGETS = ("cuda:80", "cuda:90", "cuda:100", "hip:gfx942", "hip:gfx950")


@triton.jit
def copy_kernel(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * stride + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=tl.arange(0, BLOCK) < n), mask=tl.arange(0, BLOCK) < n)


@triton.jit
def another_name_for_copy_kernel(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * stride + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=tl.arange(0, BLOCK) < n), mask=tl.arange(0, BLOCK) < n)


@triton.jit
def sorted_product_kernel(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * stride + tl.arange(0, BLOCK)[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for step in range(n):
        total = tl.dot(tl.load(x_ptr + at + step * BLOCK), tl.load(x_ptr + at), total)
    tl.store(y_ptr + at, tl.sort(total))


def compiled(kernel: object, target: str, block: int, *, divisible: bool = True) -> Any:
    attributes = {(place,): [["tt.divisibility", 16]] for place in range(4)} if divisible else {}
    signature = {"x_ptr": "*fp16", "y_ptr": "*fp16", "stride": "i32", "n": "i32", "BLOCK": "constexpr"}
    return triton.compile(ASTSource(kernel, signature, {(4,): block}, attributes), target=gpu_target(target))


@pytest.mark.parametrize("target", TARGETS)
def test_dropping_a_class_narrows_the_accesses(target: str):
    wide, narrow = (
        code_of(compiled(copy_kernel, target, 1024, divisible=divisible), target) for divisible in (True, False)
    )
    bits = 128 if target.startswith("cuda") else 64  # four waves of 64 lanes share the block, not of 32
    assert (wide.loads, wide.stores) == ({bits: 1}, {bits: 1})
    assert (narrow.loads, narrow.stores) == ({16: bits // 16}, {16: bits // 16})
    assert narrow.instructions > wide.instructions
    assert narrow.digest != wide.digest


@pytest.mark.parametrize(("target", "block", "divisible"), [("cuda:80", 64, True), ("cuda:90", 128, False)])
def test_nvidia_says_the_same(target: str, block: int, divisible: bool, tmp_path: Path):
    kernel = compiled(sorted_product_kernel, target, block, divisible=divisible)
    code = code_of(kernel, target)
    registers, stack, instructions = _cuobjdump(kernel.asm["cubin"], tmp_path)
    assert (code.registers, code.spills, code.instructions) == (registers, stack, instructions)
    assert code.shared == kernel.metadata.shared
    assert (code.spills > 0) == (block == 128)


@pytest.mark.parametrize("target", TARGETS)
def test_names_do_not_count(target: str):
    one, other = compiled(copy_kernel, target, 1024), compiled(another_name_for_copy_kernel, target, 1024)
    assert one.metadata.name != other.metadata.name
    assert code_of(one, target).digest == code_of(other, target).digest


def _cuobjdump(cubin: bytes, folder: Path) -> tuple[int, int, int]:
    """Registers, bytes of stack, and instructions without the padding at the end."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    (folder / "kernel.cubin").write_bytes(cubin)

    def printed(option: str) -> str:
        return subprocess.run(
            [tool, option, folder / "kernel.cubin"], capture_output=True, text=True, check=True
        ).stdout

    usage = re.search(r"REG:(\d+) STACK:(\d+)", printed("-res-usage"))
    assert usage
    lines = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(\S.*?);", printed("-sass"), re.M)
    while lines[-1] == "NOP":
        lines.pop()
    return int(usage[1]), int(usage[2]), len(lines) - lines[-1].startswith("BRA")
