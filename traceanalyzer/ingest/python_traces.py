"""Chrome traces that profilers of Python's functions write: they hold no GPU work, and are told from those that do."""

from __future__ import annotations

import re

from traceanalyzer.ingest.bytes.containers import Condition
from traceanalyzer.ingest.bytes.source import HEAD_BYTES, Source

PYSPY, VIZTRACER = "py-spy chrometrace", "viztracer"
"""What `python_trace_of` tells."""
_BOM = b"\xef\xbb\xbf"
_START = re.compile(rb"\s*(?:\[\s*[{\]]|\{)")
_PYSPY = re.compile(rb'"cat"\s*:\s*"py-spy"')
_VIZTRACER = re.compile(rb'"cat"\s*:\s*"(?:FEE|fee)"|"viztracer_metadata"\s*:')
# VizTracer can merge what torch.profiler recorded into its own file, which then is a trace like any other.
_OTHERS = re.compile(
    rb'"cat"\s*:\s*"(?:[Kk]ernel|gpu_\w+|cuda_\w+|hip_\w+|cpu_op|Operator|operator|user_annotation|Runtime|runtime|Memcpy|Memset|'
    rb'python_function|ac2g|async_\w+)"|"deviceProperties"\s*:'
)
_OVERLAP = 128


def python_trace_of(source: Source) -> str | None:
    """Which profiler of Python's functions wrote a Chrome trace, where that is certain and no GPU work is in it; None otherwise.

    A file of VizTracer is read to its end for that, since what it merges comes last.
    """
    head = source.head.removeprefix(_BOM)
    if not _START.match(head):
        return None
    if _OTHERS.search(head):
        return None
    if _PYSPY.search(head):
        return PYSPY
    if _VIZTRACER.search(head):
        return None if len(source.head) >= HEAD_BYTES and _holds_others(source) else VIZTRACER
    return None


def _holds_others(source: Source) -> bool:
    rest = b""
    for block in source.blocks(Condition()):
        text = rest + block
        if _OTHERS.search(text):
            return True
        rest = text[-_OVERLAP:]
    return False
