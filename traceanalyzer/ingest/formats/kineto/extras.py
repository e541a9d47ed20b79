"""Fields that only a few kinds of events have, read in a second pass over their chunk."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import msgspec

from traceanalyzer.ingest.formats.kineto.text.decode import Events


class Extra(msgspec.Struct, gc=False):
    """`id`, `id2` and `scope` of asynchronous events; the arguments of any event as the text they were."""

    id: Any = None
    id2: Any = None
    scope: Any = None
    args: msgspec.Raw = msgspec.Raw()


# An id may be a number that no float64 holds.
_decoder = msgspec.json.Decoder(list[Extra], float_hook=str)


def extras(events: Events, rows: list[int]) -> list[Extra]:
    """Those of the given events."""
    if not rows:
        return []
    everything = _decoder.decode(events.text)
    return list(itemgetter(*rows)(everything)) if len(rows) > 1 else [everything[rows[0]]]
