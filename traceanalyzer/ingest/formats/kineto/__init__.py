"""PyTorch (Kineto) and other Chrome-trace JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING

from traceanalyzer.ingest.bytes.containers import READ_BYTES, Condition
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import FileFacts, Format, Progress, Sink
from traceanalyzer.ingest.formats.kineto.text.opening import UTF8_BOM, json_key
from traceanalyzer.ingest.python_traces import python_trace_of

if TYPE_CHECKING:
    from traceanalyzer.result.recording.diagnosis import Contents
    from traceanalyzer.result.recording.ways import Ways

_EVENTS, _PHASE, _TIME = (re.compile(json_key(key)) for key in ("traceEvents", "ph", "ts"))
# Stands before the events of a trace, and in nothing else that is known here.
_CHROME = re.compile(rb'"(?:schemaVersion|deviceProperties|displayTimeUnit)"')
# Metadata before the events may be long: custom metadata holds whole configurations.
_SEARCHED_BYTES = 8 << 20


class Kineto(Format):
    """`torch.profiler` exports of PyTorch 1.8 and later, and what else writes Chrome's trace events."""

    name = "kineto"
    priority = 800
    about = "a PyTorch/Chrome trace (JSON)"
    told = "the key `traceEvents`, or a list of events with `ph` and `ts`"
    record = "record with torch.profiler's export_chrome_trace"
    suffixes = (".json",)
    optional = ("operator_links", "shapes", "python_stacks")
    recorded_with: Mapping[str, str] = {
        "memory_events": "torch.profiler records them with profile_memory=True",
        "operator_shapes": "torch.profiler records them with record_shapes=True",
        "side_threads": "torch.profiler records them with with_stack=True and "
        "experimental_config=torch._C._profiler._ExperimentalConfig(profile_all_threads=True)",
    }

    def sniff(self, source: Source) -> bool:
        return _is_events(source.head) and python_trace_of(source) is None

    def tries(self, source: Source, named: bool) -> bool:
        """Any other JSON: its events may begin behind the head, or their key be damaged."""
        start = source.head.removeprefix(UTF8_BOM).lstrip()
        if not re.match(rb"\{\s*[\"}]|\[[\s,]*[\[{\]]", start):
            return False
        return named or "trace" in source.path.name.lower() or _is_events(_beginning(source))

    def vouches(self, source: Source) -> bool:
        return _CHROME.search(source.head) is not None

    def read(self, source: Source, sink: Sink, progress: Progress) -> FileFacts:
        from traceanalyzer.ingest.formats.kineto.importer import KinetoImporter

        return KinetoImporter().read(source, sink, progress)

    def ways(self, held: Contents, producer: str) -> Ways:
        from traceanalyzer.ingest.formats.kineto.advice.ways import ways

        return ways(held, producer)


def _is_events(head: bytes) -> bool:
    """Whether the start of a file shows that it is a Chrome trace: an object with events, or a list of them."""
    listed = re.match(rb"\s*\[\s*\{", head.removeprefix(UTF8_BOM)) is not None
    return bool(_EVENTS.search(head) or (listed and _PHASE.search(head) and _TIME.search(head)))


def _beginning(source: Source) -> bytes:
    return b"".join(islice(source.blocks(Condition()), _SEARCHED_BYTES // READ_BYTES))


KIND = Kineto()
