"""The line of the program's own code that a finding names, as a file that can be opened."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.places import frame_text, is_user_frame, parsed_frame
from traceanalyzer.result.document import Finding, Source

NAMED = ("source", "place")
"""The metrics of rules that hold a place as messages name it: `aten::item called from train.py:41 (train_step)`."""
_PLACE = re.compile(r"(?:.* called from )?(?P<text>(?P<short>[^ ].*:(?P<line>\d{1,9})) \(.*\))", re.DOTALL)


def with_sources(findings: Sequence[Finding], host_ranges: pa.Table) -> list[Finding]:
    """The findings with `source`, where the message names a line of the user's code and the recording tells which file that is."""
    asked = [next(_asked(finding), None) for finding in findings]
    wanted = {place["text"]: place["line"] for place in asked if place}
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
        replace(finding, source=told[place["text"]]) if place and place["text"] in told else finding
        for finding, place in zip(findings, asked, strict=True)
    ]


def _asked(finding: Finding) -> Iterator[re.Match[str]]:
    """The places in its figures that its message names; a place too small to be named is none to point at."""
    for name in NAMED:
        metric = finding.metrics.get(name)
        place = _PLACE.fullmatch(metric.value) if metric and isinstance(metric.value, str) else None
        if place and place["short"] in finding.message:
            yield place


def _frames(host_ranges: pa.Table, lines: set[str]) -> list[str]:
    """The distinct names of ranges that are at one of these lines."""
    names = pc.unique(host_ranges["name"].cast(pa.string()))
    pattern = rf"\((?:{'|'.join(sorted(lines))})\): "
    return [name for name in names.filter(pc.match_substring_regex(names, pattern)).to_pylist() if name is not None]
