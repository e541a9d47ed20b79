"""The line of the program's own code that a finding names, as a file that can be opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.places import frame_text, is_user_frame, line_of, parsed_frame, place_parts
from traceanalyzer.result.document import Finding, Source

NAMED = ("source", "place")
"""The metrics of rules that hold a place as messages name it: `aten::item called from train.py:41 (train_step)`."""


def with_sources(findings: Sequence[Finding], host_ranges: pa.Table) -> list[Finding]:
    """The findings with `source`, where the message names a line of the user's code and the recording tells which file that is."""
    asked = [next(_asked(finding), None) for finding in findings]
    wanted = dict(place for place in asked if place)
    if not wanted:
        return list(findings)
    files: dict[str, set[Source]] = {}
    for name in _frames(host_ranges, set(wanted.values())):
        if (text := frame_text(name)) in wanted and is_user_frame(name) and (parsed := parsed_frame(name)):
            file, line, function = parsed
            files.setdefault(text, set()).add(Source(file, int(line), function))
    # Two files of one name: which of them is meant is not known.
    told = {text: found.pop() for text, found in files.items() if len(found) == 1}
    return [
        replace(finding, source=told[place[0]]) if place and place[0] in told else finding
        for finding, place in zip(findings, asked, strict=True)
    ]


def _asked(finding: Finding) -> Iterator[tuple[str, str]]:
    """The places in its figures that its message names, as `frame_text` writes them, and their lines; a place too small to be named is
    none to point at."""
    for name in NAMED:
        metric = finding.metrics.get(name)
        if metric and isinstance(metric.value, str):
            what, source = place_parts(metric.value)
            place = source or what
            if (found := line_of(place)) and found[0] in finding.message:
                yield place, found[1]


def _frames(host_ranges: pa.Table, lines: set[str]) -> list[str]:
    """The distinct names of ranges that are at one of these lines."""
    names = pc.unique(host_ranges["name"].cast(pa.string()))
    pattern = rf"\((?:{'|'.join(sorted(lines))})\): "
    return [name for name in names.filter(pc.match_substring_regex(names, pattern)).to_pylist() if name is not None]
