"""What is known of a figure before there is a capture: all that a kind of evidence says of those that it adds."""

from __future__ import annotations

from traceanalyzer.records import dataclass
from traceanalyzer.units import Unit


@dataclass(frozen=True)
class Figure:
    """The unit of a figure and what it is, in words that follow its name."""

    unit: Unit
    about: str
