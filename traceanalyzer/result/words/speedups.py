"""How people write a speedup: "1.52×", or as a range where it is an estimate, "1.4× to 3.9×"."""

from __future__ import annotations

from traceanalyzer.names import readable_name
from traceanalyzer.result.document import PlaceSaving, Saving

SAME = 0.03
"""A place alone gives as much as the whole finding, within this share."""
LONGEST_PLACE = 75


def times(speedup: float) -> str:
    return f"{speedup:.2f}×"


def times_range(ends: tuple[float, float]) -> str:
    low, high = (f"{end:.0f}×" if end >= 9.95 else f"{end:.1f}×" for end in ends)
    return low if low == high else f"{low} to {high}"


def told_apart(saving: Saving) -> PlaceSaving | None:
    """The place, where leaving out it alone is predicted to give something, and less than the whole finding."""
    place = saving.place
    if place is None or place.predicted_speedup is None or saving.predicted_speedup is None or not saving.pays:
        return None
    return place if place.predicted_speedup * (1 + SAME) < saving.predicted_speedup else None


def place_name(place: PlaceSaving) -> str:
    return readable_name(place.name, LONGEST_PLACE)
