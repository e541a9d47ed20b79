"""Reading an exported trace as Perfetto does, by the rules of the format."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any


@dataclass
class Track:
    """The slices of one track as (start, end, event) in ns, and what the track and its process are called."""

    process: str
    name: str
    slices: list[tuple[int, int, dict[str, Any]]]


def nanoseconds(micros: float) -> int:
    """Perfetto multiplies and cuts; nothing may be lost by that."""
    cut = micros * 1000 if isinstance(micros, int) else int(micros * 1000.0)
    assert cut == round(micros * 1000)
    return cut


def tracks_of(content: bytes) -> list[Track]:
    """All tracks with slices. Asserts that slices nest, that numbers of tracks are used once, and that arrows lead forward."""
    events = json.loads(content)["traceEvents"]
    names = {(e["name"], e["pid"], e["tid"]): e["args"].get("name") for e in events if e["ph"] == "M"}
    found: dict[tuple[int, int], list[Any]] = defaultdict(list)
    begins: dict[int, int] = {}
    for number, event in enumerate(events):
        if event["ph"] == "X":
            start = nanoseconds(event["ts"])
            found[event["pid"], event["tid"]].append((start, number, start + nanoseconds(event["dur"]), event))
            if event.get("flow_out"):
                assert event["bind_id"] not in begins
                begins[event["bind_id"]] = start
    assert len({tid for _, tid in found}) == len(found)
    tracks = []
    for (pid, tid), slices in found.items():
        slices.sort(key=lambda one: one[:2])
        open_: list[int] = []
        for start, _, end, event in slices:
            assert 0 <= start <= end
            while open_ and open_[-1] <= start:
                open_.pop()
            assert not open_ or end <= open_[-1]
            open_.append(end)
            assert "flow_in" not in event or begins[event["bind_id"]] <= start
        process, name = names["process_name", pid, pid], names["thread_name", pid, tid]
        tracks.append(Track(process, name, [(start, end, event) for start, _, end, event in slices]))
    return tracks
