"""Which form a profile has, told from its head, and its bytes as a whole."""

from __future__ import annotations

import re

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.cpu_profile.reading import protobuf
from traceanalyzer.ingest.bytes.source import HEAD_BYTES, Source
from traceanalyzer.ingest.contract import Progress
from traceanalyzer.ingest.python_traces import PYSPY, VIZTRACER, python_trace_of

SPEEDSCOPE, PERF, AUSTIN, MOJO, PPROF, FOLDED = "speedscope", "perf script", "austin", "mojo", "pprof", "folded"
BOM = b"\xef\xbb\xbf"
_SPEEDSCOPE = re.compile(
    rb'^\s*\{[^{\[]*"(?:\$schema"\s*:\s*"https?:(?:\\?/){2}www\.speedscope\.app|exporter"\s*:\s*"(?:speedscope|py-spy|austin|rbspy)@?)'
)
_PROFILES = re.compile(rb'"type"\s*:\s*"(?:sampled|evented)"')
_SHARED = re.compile(rb'"(?:unit|startValue|endValue|activeProfileIndex)"\s*:')
PERF_HEADER = re.compile(
    rb"(?P<comm>\S[^\n]{0,40}?)\s+(?:(?P<pid>\d+)/)?(?P<tid>-?\d+)\s+(?:\[(?P<cpu>\d+)\]\s+)?(?:[A-Za-z.]{4,8}\s+)?"
    rb"(?:(?P<time>\d+\.\d+):\s+)?(?:(?P<period>\d+)\s+)?(?P<event>[A-Za-z][^\s:]*(?::[\w\-]*)*):(?:\s|$)(?P<rest>.*)"
)
PERF_FRAME = re.compile(
    rb"\s+(?P<address>[0-9a-f]{1,16})\s+(?P<symbol>\S.*?)(?:\s+\((?P<module>[^\n]*)\))?(?:\s+\(inlined\))?\s*"
)
AUSTIN_LINE = re.compile(rb"P\d+;T(?:\d+:)?(?:0x)?[0-9a-fA-F]+(?:;.*)? -?\d+(?:,-?\d+)*\r?")
_AUSTIN_HEAD = re.compile(rb"# (?:austin|mojo)\s*:\s*\S+")
FOLDED_LINE = re.compile(rb"(?P<stack>[^\s;#{\[<,\"][^\n]*?) (?P<count>\d+(?:\.\d+)?)\s*")
_LEAST_FOLDED = 0.5
"""At least so many lines of a file of folded stacks have more than one frame."""


def form_of(source: Source) -> str | None:
    """The form of a CPU profile that the content certainly has; None for anything else."""
    head = source.head.removeprefix(BOM)
    if head.startswith(b"MOJ") and head[3:4] in (b"\1", b"\2", b"\3", b"\4"):
        return MOJO
    if protobuf.is_pprof(head, len(source.head) < HEAD_BYTES):
        return PPROF
    start = head.lstrip()[:1]
    if start == b"{" and _is_speedscope(head):
        return SPEEDSCOPE
    if start in (b"{", b"["):
        return python_trace_of(source)
    return _form_of_text(head, len(source.head) < HEAD_BYTES)


def _is_speedscope(head: bytes) -> bool:
    return _SPEEDSCOPE.match(head) is not None or (
        b'"profiles"' in head and _PROFILES.search(head) is not None and _SHARED.search(head) is not None
    )


def _form_of_text(head: bytes, whole: bool) -> str | None:
    if b"\0" in head:
        return None
    lines = head.split(b"\n")
    # The last line of a head may be half a one.
    lines = [line.rstrip(b"\r") for line in (lines if whole else lines[:-1])]
    said = [line for line in lines if line.strip() and not line.startswith(b"#")]
    if _AUSTIN_HEAD.match(head) or (said and AUSTIN_LINE.fullmatch(said[0])):
        return AUSTIN if all(AUSTIN_LINE.fullmatch(line) for line in said[:2]) else None
    if said and _is_perf(said):
        return PERF
    return FOLDED if _is_folded(said, whole and not head.endswith(b"\n")) else None


def _is_perf(said: list[bytes]) -> bool:
    found = PERF_HEADER.fullmatch(said[0].strip())
    if not found or found["comm"].startswith((b"{", b"[", b"<")):
        return False
    if found["rest"].strip():
        return bool(found["time"] and PERF_FRAME.fullmatch(b" " + found["rest"]))
    return len(said) > 1 and PERF_FRAME.fullmatch(said[1]) is not None and said[1][:1].isspace()


def _is_folded(said: list[bytes], cut: bool) -> bool:
    """Whether every line is a stack and a number; of a cut file the last may be half a line."""
    if said and cut and not FOLDED_LINE.fullmatch(said[-1]):
        said = said[:-1]
    if not said or not all(FOLDED_LINE.fullmatch(line) for line in said):
        return False
    several = sum(b";" in line and b"; " not in line.replace(b": ", b":") for line in said)
    return several >= max(1, _LEAST_FOLDED * len(said))


def whole(source: Source, progress: Progress) -> tuple[bytes, str | None]:
    """All bytes, and what is the matter with the end of them. The caller says what that means."""
    with source.open(progress) as stream:
        parts = []
        while block := stream.read(1 << 20):
            parts.append(block)
        data = b"".join(parts)
        return data.removeprefix(BOM), stream.damage


def whole_json(source: Source, progress: Progress) -> bytes:
    """All of a JSON text. Raises InputError where its end is missing."""
    data, damage = whole(source, progress)
    if damage:
        raise InputError(f"{source.path}: {damage}")
    return data


__all__ = [
    "AUSTIN",
    "FOLDED",
    "MOJO",
    "PERF",
    "PPROF",
    "PYSPY",
    "SPEEDSCOPE",
    "VIZTRACER",
    "form_of",
    "whole",
    "whole_json",
]
