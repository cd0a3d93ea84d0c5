"""Remedies in words: a line each."""

from __future__ import annotations

from jitaudit.model import Remedy, RemedyKind

_WORDS: dict[RemedyKind, str] = {
    "drop": "drop {}: the body never reads it",
    "retype": "always pass {} as {}",
    "cast": "pass {} as a tensor of {}",
    "align": "start {} on a 16-byte boundary, or copy it",
    "floor": "pass no {} below {}, and mask what lies past the end",
    "option": "always launch with {}={}",
    "bucket": "round the autotune key {} up to a power of two",
    "annotate": "annotate {}: tl.int64",
    "do_not_specialize": "list {} in do_not_specialize",
    "do_not_specialize_on_alignment": "list {} in do_not_specialize_on_alignment",
}


def remedy_words(remedy: Remedy) -> str:
    """What to do."""
    if remedy.kind == "runtime":
        listed = ", listed in do_not_specialize" if remedy.setting else ""
        return f"make {remedy.argument} a runtime argument{listed}"
    return _WORDS[remedy.kind].format(remedy.argument, remedy.setting)
