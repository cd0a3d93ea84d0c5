"""Remedies and their prices in words."""

from __future__ import annotations

from jitaudit.explaining.explanation import Offer
from jitaudit.model import Remedy
from jitaudit.pricing import Price

_COPY = {
    "align": "a copy where the view is off, unless it is allocated so",
    "cast": "a copy where the type differs",
}
"""What a remedy does to memory, which no binary shows."""


def where(remedy: Remedy) -> str:
    """Who has to change."""
    return "call site" if remedy.at_call_site else "kernel"


def price_words(offer: Offer) -> str:
    """What the remedy costs: measured where it was compiled, else what its use lets expect."""
    words = _measured(offer.price) if offer.price else _expected(offer)
    if offer.price and offer.remedy.kind in ("align", "cast"):
        words += f", and {_COPY[offer.remedy.kind]}"
    if offer.lanes is not None and offer.lanes > 1:
        words += f"; {offer.lanes:.1f}× the lanes on average"
    return words


def _measured(price: Price) -> str:
    words = f"{price.verdict}: {', '.join(price.changes)}" if price.changes else price.verdict
    if price.timing:
        before, after = price.timing
        words += (
            f"; {before.gpu:.1f} → {after.gpu:.1f} µs on the GPU, {before.host:.1f} → {after.host:.1f} µs on the host"
        )
    return words


def _expected(offer: Offer) -> str:
    match offer.remedy.kind:
        case "drop" | "retype":
            return "free"
        case "cast":
            return f"costs {_COPY['cast']}"
        case "align":
            return f"costs {_COPY['align']}"
        case "floor" | "option":
            return "costs where less would do"
        case _ if offer.use == "scalar":
            return "free: only read as a scalar"
        case _ if offer.use == "vector":
            return "may cost: it is in the address or the mask of vector accesses"
        case _:
            return "price not known"
