"""Metadata of sparse attention with pooled keys: one launch for a decode, a verify or a draft-extend step.

Each kernel gives one program to the length vectors and spreads the copy of the page tables over the others. Buffers
are static in a server, so what a definition leaves alone (columns past a request's length, rows past those in use)
keeps what it held. Lengths are tokens; token slots are not negative. At least one table is given, and
``page_size == 1`` needs ``page_table_1``.
"""

from .decode_step import decode, decode_kernel, decode_reference, sweep_decode
from .draft_extend_step import draft_extend, draft_extend_kernel, draft_extend_reference, sweep_draft_extend
from .verify_step import sweep_verify, verify, verify_kernel, verify_reference

__all__ = [
    "decode",
    "decode_kernel",
    "decode_reference",
    "draft_extend",
    "draft_extend_kernel",
    "draft_extend_reference",
    "sweep_decode",
    "sweep_draft_extend",
    "sweep_verify",
    "verify",
    "verify_kernel",
    "verify_reference",
]
