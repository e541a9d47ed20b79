"""What each ledger line was lost to, in the verdict's causes: by the category of the rule that claimed it, else by the line."""

from __future__ import annotations

from traceanalyzer.derive.ledger.tables import IDLE_CAUSES
from traceanalyzer.result.verdict import CAUSES

LINE_CAUSE = {
    "compute": "compute",
    "exposed_communication": "communication",
    "exposed_memcpy": "memcpy",
    "exposed_memset": "memset",
    "idle.launch_latency": "launch",
    "idle.host_work": "host",
    **{f"idle.{cause}": cause for cause in IDLE_CAUSES if cause not in ("launch_latency", "host_work")},
}
"""What takes the time of each line, as long as no rule knows better: keys of the verdict's CAUSES, or "compute"."""


def cause_of(category: str, line: str) -> str:
    """What a claimed part of a line was lost to. The sentence counts idle time by cause, so idle and busy never mix."""
    cause = CAUSES.get(category)
    # This category only gathers what lies on its lines; the lines say more, but for a launch that the host held up by loading code.
    if (
        cause is None
        or line == "compute"
        or cause.idle != line.startswith("idle.")
        or (category == "host" and line != "idle.launch_latency")
    ):
        return LINE_CAUSE[line]
    return category
