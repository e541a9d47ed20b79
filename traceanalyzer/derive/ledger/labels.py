"""Gaps in a line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceanalyzer.names import brief_name, readable_name
from traceanalyzer.units import format_duration
from traceanalyzer.vocabulary.lines import INPUT, cause_words

# What the host did comes before what followed; of that the start says enough.
_LONGEST_PLACE = 75


def gap(row: Mapping[str, Any]) -> str:
    what = f"{format_duration(row['duration'])} idle, {cause_words(row['cause'])}"
    # A loader's own range says more than what it happens to run.
    where = row["range_name"] if row["cause"] == INPUT.cause else row["place"] or row["range_name"]
    details = [readable_name(name, _LONGEST_PLACE) for name in (row["wait_name"], where) if name]
    what += f": {' for '.join(dict.fromkeys(details))}" if details else ""
    return what + (f", before {brief_name(row['next_op_name'])}" if row["next_op_name"] else "")
