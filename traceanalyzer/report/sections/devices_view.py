"""The ledger of each GPU as the page shows it: a bar, its lines and its figures."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.records import dataclass
from traceanalyzer.report.palette import SWATCHES, Swatch
from traceanalyzer.report.sections.ledger_bar import Segment, ledger_segments
from traceanalyzer.report.sections.words import format_duration
from traceanalyzer.result.document import Device
from traceanalyzer.result.gpus import lines_side_by_side
from traceanalyzer.units import format_count, format_share


@dataclass(frozen=True)
class DeviceView:
    """`facts` are figures by the glossary's names for them."""

    label: str
    device: Device
    segments: list[Segment]
    facts: dict[str, str]

    def ns(self, line: Swatch) -> int:
        """The time on a line of the ledger."""
        return sum(segment.ns for segment in self.segments if segment.swatch == line)


def device_views(shown: Sequence[int], devices: Sequence[Device], labels: Sequence[str]) -> list[DeviceView]:
    """Those at the positions `shown`."""
    lines = lines_side_by_side(devices)
    return [
        DeviceView(labels[at], devices[at], ledger_segments(lines[at], devices[at].window_ns), _facts(devices[at]))
        for at in shown
    ]


def _facts(device: Device) -> dict[str, str]:
    return {
        "window": format_duration(device.window_ns),
        "busy": format_share(device.busy_ns / max(device.window_ns, 1)),
        "longest gap": format_duration(device.max_gap_ns),
        "GPU operations": format_count(device.gpu_op_count),
        "kernels": format_count(device.kernel_count),
    }


def ledger_legend(devices: list[DeviceView]) -> list[Swatch]:
    """The lines that any of the ledgers has, in the palette's order."""
    used = {segment.swatch.key for device in devices for segment in device.segments}
    return [swatch for swatch in SWATCHES if swatch.key in used]
