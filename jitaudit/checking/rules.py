"""The reasons for a miss. The list is closed: each miss has one of these."""

from __future__ import annotations

from typing import Literal

Code = Literal[
    "JA012", "JA201", "JA202", "JA203", "JA204", "JA205", "JA206", "JA207", "JA208", "JA209", "JA210", "JA211", "JA212",
    "JA213", "JA214", "JA215", "JA216", "JA217", "JA218", "JA219", "JA220",
]  # fmt: skip

RULES: dict[Code, str] = {
    "JA012": "not-warmable",
    "JA201": "triton-changed",
    "JA202": "assembler-changed",
    "JA203": "target-changed",
    "JA204": "source-changed",
    "JA205": "line-moved",
    "JA206": "variable-changed",
    "JA207": "cache-moved",
    "JA208": "entry-partial",
    "JA209": "entry-damaged",
    "JA210": "never-warmed",
    "JA211": "compile-failed",
    "JA212": "untuned",
    "JA213": "no-launcher",
    "JA214": "no-utilities",
    "JA215": "no-compiler",
    "JA216": "entry-removed",
    "JA217": "pipeline-changed",
    "JA218": "default-changed",
    "JA219": "winner-gone",
    "JA220": "winner-elsewhere",
}
"""Code → name."""

NEXT: dict[Code, str] = dict.fromkeys(RULES, "jitaudit warm") | {
    "JA012": "jitaudit rule JA012",
    "JA209": "jitaudit warm --repair",
    "JA212": "jitaudit warm --gpu",
    "JA219": "jitaudit warm --gpu",
    "JA220": "jitaudit warm --gpu",
}
"""Code → the command that mends it (``warm`` with the arguments of the check), or tells what will."""
