"""Whether a file is a log of DeepSpeed's: several of its typical lines, as they are printed and not as they are quoted."""

from __future__ import annotations

import re

from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.bytes.streams import BLOCK_BYTES

LOOKED_AT = 16 << 20
"""Bytes from the start in which one of DeepSpeed's lines must stand: installing and loading comes first, and tells nothing."""
_LEAST = 2
_NUMBER, _REST, _END = rb"\d+(?:\.\d+)?", rb"[^\r\n]", rb"(?:\x1b\[[\d;]*m|[ \t])*(?:[\r\n]|\Z)"
_OTHER = re.compile(rb"\s*(?:\{|\[\s*[\[{\"]|<[!?a-zA-Z])")
"""JSON, XML and HTML."""
# What speaks for it, and how much. Whole lines to their end: of source code and of prose none is.
_SIGNS: tuple[tuple[int, bytes], ...] = (
    (2, rb"(?<!-)-{10,200} DeepSpeed Flops Profiler -{10,200}[ \t]*[\r\n]{1,4}%b{0,200}?Profile Summary at step \d+:" % _REST),
    (1, rb"time \(ms\) \| (?:fwd|forward)(?:_microstep)?: %b \| %b{0,400}?step(?:_microstep)?: %b%b" % (_NUMBER, _REST, _NUMBER, _END)),
    (1, rb"time \(ms\) \| (?:optimizer|pipe)_\w+: %b(?: \| \w+: %b){0,20}%b" % (_NUMBER, _NUMBER, _END)),
    (2, rb"Comm\. Op {2,}Message Size {2,}Count {2,}Total Latency\(ms\)%b{2,200}[\r\n]+%b{3,200}[\r\n]+%b{0,200}? "
        rb"\d[\d.]* ?[KMGTP]?B +\d+ " % (_REST, _REST, _REST)),
    (1, rb"comm op: \w+ \| (?:\[Caller Func: %b{0,100}?\] \| )?time \(ms\): %b \| msg size: %b{3,100}" % (_REST, _NUMBER, _REST)),
    (1, rb"step=\d+, skipped=\d+, lr=\[%b{1,400}" % _REST),
    (1, rb"(?:\[timer\.py:\d+:stop\] |\bepoch=\d+/micro_step=\d+/global_step=|(?<!\d)\d{1,12}/\d{1,12}, )"
        rb"%b{0,100}?SamplesPerSec=\d" % _REST),
    (0, rb"\[logging\.py:\d+:(?:log_dist|print_dist)\] \[Rank -?\d+\] "),
    (0, rb"\[INFO\] \[config\.py:\d+:print\]   \w+ \.{3,} "),
)  # fmt: skip
"""Those that count 0 are DeepSpeed's too and hold nothing to read: with them one line that does is enough."""
_ANY = re.compile(b"|".join(b"(?P<s%d>%b)" % (at, pattern) for at, (_, pattern) in enumerate(_SIGNS)))
_QUOTED = re.compile(rb"^[ \t>]*(?:```|~~~)", re.MULTILINE)


def is_deepspeed_log(source: Source) -> bool:
    """Whether at least two such lines stand near its start, outside of what a document quotes."""
    if b"\0" in source.head or _OTHER.match(source.head):
        return False
    found, fences, others = 0, 0, False
    with source.open() as stream:
        kept, looked = b"", 0
        while looked < LOOKED_AT and (block := stream.read(BLOCK_BYTES)):
            looked += len(block)
            text, last = kept + block, 0
            if b"\0" in block:
                return False
            for one in _ANY.finditer(text):
                fences += len(_QUOTED.findall(text, last, one.start()))
                last = one.end()
                if fences % 2 == 0:
                    weight = next(weight for at, (weight, _) in enumerate(_SIGNS) if one[f"s{at}"] is not None)
                    found, others = found + weight, others or not weight
                    if found and found + others >= _LEAST:
                        return True
            # A line that is cut by the end of a block is looked at with the next one.
            cut = max(last, text.rfind(b"\n", 0, len(text) - 2048) + 1)
            fences += len(_QUOTED.findall(text, last, cut))
            kept = text[cut:]
            if len(kept) > 1 << 16:
                kept = kept[-(1 << 16) :]
    return False
