"""What the health of a file says of repairs and losses in its events."""

from __future__ import annotations

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.formats.kineto.text.decode import Events
from traceanalyzer.ingest.formats.kineto.text.splitter import Splitter
from traceanalyzer.vocabulary.health import NOT_ALL_READ
from traceanalyzer.vocabulary.levels import HIGH, INFO, LOW, MEDIUM, Severity


class Damage:
    """Counts over the chunks of a file what the splitter does not see."""

    def __init__(self) -> None:
        self._timed = self._misfits = self._quantised = 0

    def take(self, events: Events) -> None:
        self._timed += int(events.timed.sum())
        self._misfits += events.misfits
        self._quantised += events.quantised

    def report(self, unread: str | None, splitter: Splitter[Events], gpu_work: bool, sink: Sink) -> None:
        """`unread`: why the file itself ended early and what that means, None when it did not; `gpu_work`: any came before."""
        cut = splitter.truncated and (splitter.cut or splitter.layout != "list")
        if (unread or cut) and not gpu_work:
            # The profiler writes what the GPU did last.
            why = unread or "the file ends in the middle of its events"
            message = f"{why}; no work of a GPU comes before that, so there is nothing to judge: copy or record the trace again"
            sink.health(NOT_ALL_READ, HIGH, message)
        elif unread:
            sink.health(NOT_ALL_READ, MEDIUM, unread)
        elif cut:
            sink.health(NOT_ALL_READ, MEDIUM, "the file ends in the middle of its events; what came after is lost")
        elif splitter.truncated:
            message = "the list of events has no end, which its format allows; whether events were lost cannot be told"
            sink.health(NOT_ALL_READ, INFO, message)
        if splitter.layout == "keyless":
            message = "the key of the event array is missing or damaged; the events were known by their form"
            sink.health(NOT_ALL_READ, LOW, message)
        if splitter.mixed:
            message = "another trace begins in the middle of the events: two programs wrote this file, and their events are mixed"
            sink.health(NOT_ALL_READ, HIGH, message)
        if splitter.dropped:
            message = "events that are no valid JSON and could not be mended were dropped"
            sink.health(NOT_ALL_READ, LOW, message, splitter.dropped, splitter.first_dropped)
        if splitter.bad_bytes:
            sink.health(NOT_ALL_READ, INFO, "bytes that are no UTF-8 were read as question marks", splitter.bad_bytes)
        for repair, (count, example) in splitter.repairs.items():
            sink.health(NOT_ALL_READ, INFO, repair.value, count, example)
        if splitter.commas:
            message = "commas missing or too many between events were put right"
            sink.health(NOT_ALL_READ, INFO, message, splitter.commas, splitter.first_comma)
        if self._misfits:
            message = "values of a type that no reader can use were read as absent"
            sink.health(NOT_ALL_READ, LOW, message, self._misfits)
        if self._quantised:
            # Where most times are rounded, every interval is made of rounding.
            severity: Severity = HIGH if 2 * self._quantised >= self._timed else MEDIUM
            message = "times are written with fewer digits than microseconds need; what lies closer together cannot be told apart"
            sink.health(NOT_ALL_READ, severity, message, self._quantised)
