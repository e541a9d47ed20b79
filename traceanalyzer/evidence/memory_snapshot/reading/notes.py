"""What is said in health of a snapshot: what it cannot tell, and where it contradicts itself."""

from __future__ import annotations

from traceanalyzer.evidence.memory_snapshot.reading.device import Device, DeviceRows
from traceanalyzer.ingest.contract import Sink
from traceanalyzer.units import format_bytes
from traceanalyzer.vocabulary.health import NOT_ALL_READ, NOT_RECORDED
from traceanalyzer.vocabulary.levels import HIGH, LOW, MEDIUM

HOW_TO_RECORD = "torch.cuda.memory._record_memory_history(max_entries=..., stacks='python')"


def of_file(sink: Sink, recorded: bool, wrong: int, any_history: bool) -> None:
    """What concerns the file as a whole."""
    if not recorded or not any_history:
        sink.health(
            NOT_RECORDED,
            MEDIUM,
            "the memory snapshot holds no history: what was in memory at the snapshot is known, and nothing of the time before; "
            f"call {HOW_TO_RECORD} before what is to be seen",
        )
    if wrong:
        sink.health(
            NOT_ALL_READ,
            LOW,
            "values of the memory snapshot are of a wrong type or impossible, and count as absent",
            wrong,
        )


def of_device(sink: Sink, device: Device, rows: DeviceRows) -> None:
    """What concerns one GPU."""
    gpu = f"GPU {device.number} of the memory snapshot"
    if rows.lost_beginning:
        sink.health(
            NOT_RECORDED,
            LOW,
            f"{gpu}: the history does not reach back to the beginning (its ring of max_entries ran over, or it was switched on later): "
            f"{rows.born_before:,} blocks are from before it, when and where they were allocated is known only as far as the snapshot "
            "says, and a higher peak may lie before it",
        )
    if rows.entries and rows.untimed:
        sink.health(
            NOT_ALL_READ, LOW, f"{gpu}: entries of the history have no time; only their order is known", rows.untimed
        )
    if rows.vanished:
        sink.health(
            NOT_ALL_READ,
            MEDIUM,
            f"{gpu}: blocks that the history left alive are not in the snapshot ({format_bytes(rows.vanished_bytes)}), so levels "
            "before it may be too low by that",
            rows.vanished,
        )
    if rows.below_zero:
        sink.health(
            NOT_ALL_READ,
            HIGH,
            f"{gpu}: the history gives back more memory than there was, so levels before it are wrong",
        )
    if rows.contradictions.reused:
        sink.health(
            NOT_ALL_READ,
            MEDIUM,
            f"{gpu}: addresses were handed out again without a release in between; they count as released then",
            rows.contradictions.reused,
        )
    if rows.contradictions.strays:
        sink.health(
            NOT_ALL_READ, LOW, f"{gpu}: releases of what was free already are left out", rows.contradictions.strays
        )
    if rows.misplaced:
        sink.health(NOT_ALL_READ, MEDIUM, f"{gpu}: blocks lie outside of their segment", rows.misplaced)
    if rows.disagreeing:
        sink.health(
            NOT_ALL_READ,
            MEDIUM,
            f"{gpu}: segments state other sums than their blocks; the blocks count",
            rows.disagreeing,
        )
