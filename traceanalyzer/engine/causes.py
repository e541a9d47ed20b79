"""What each ledger line was lost to, in the verdict's causes: by the category of the rule that claimed it, else by the line."""

from __future__ import annotations

from traceanalyzer.vocabulary.lines import COMPUTE, LAUNCH_LATENCY, LINES, is_idle
from traceanalyzer.vocabulary.losses import CAUSES, HOST

LINE_CAUSE = {name: line.lost_to for name, line in LINES.items()}
"""What takes the time of each line, as long as no rule knows better: names of the verdict's CAUSES, or "compute"."""


def cause_of(category: str, line: str) -> str:
    """What a claimed part of a line was lost to. The sentence counts idle time by cause, so idle and busy never mix."""
    cause = CAUSES.get(category)
    # This category only gathers what lies on its lines; the lines say more, but for a launch that the host held up by loading code.
    if (
        cause is None
        or line == COMPUTE.name
        or cause.idle != is_idle(line)
        or (category == HOST.name and line != LAUNCH_LATENCY.name)
    ):
        return LINE_CAUSE[line]
    return category
