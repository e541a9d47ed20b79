"""Beside the ledger's ceiling: how long a step takes without what a finding claimed, from the replayed timeline.

No prediction is above what its finding may recover, but where the replay shows that further time goes with it; the note says which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from traceanalyzer.columns import frames
from traceanalyzer.engine.claims import ClaimBook
from traceanalyzer.engine.finding import MOST_SAVED
from traceanalyzer.engine.language.message import words
from traceanalyzer.model.claimed import Claimed
from traceanalyzer.model.replayed import MOST_WRONG, MOSTLY, IdlePlaces, Prediction, WhatIf
from traceanalyzer.names import readable_name
from traceanalyzer.records import dataclass
from traceanalyzer.result.document import TIMED, Finding, PlaceSaving, Saving
from traceanalyzer.units import format_duration, format_share

WITHHELD = f"No prediction: the timeline cannot be replayed within {format_share(MOST_WRONG)} of itself"
SHARED = "No prediction: the rule has several findings on this GPU, and what each of them claimed is not told apart"
MOST_CAUSES = 2
"""More of them say nothing."""


def with_predictions(
    findings: Sequence[Finding], claims: ClaimBook, what_if: WhatIf, places: IdlePlaces
) -> list[Finding]:
    """The findings with a prediction for each that claimed time on one GPU."""
    count = Counter((finding.rule, finding.scope) for finding in findings)
    result = []
    for finding in findings:
        rank, device, saving = finding.scope.rank, finding.scope.device, finding.saving
        if rank is not None and device is not None and claims.has_any(finding.rule, rank, device):
            if count[finding.rule, finding.scope] > 1:
                saving = replace(saving, prediction_note=saving.prediction_note or SHARED)
            elif saving.recoverable_ns and not saving.prediction_note:
                own = claims.of_rule(finding.rule, rank, device)
                saving = _Claim((rank, device), own, what_if, places).predicted(saving)
        result.append(replace(finding, saving=saving))
    return result


@dataclass(frozen=True)
class _Claim:
    """What one finding claimed on one GPU, and what can be said of it."""

    key: frames.Key
    claimed: Claimed
    what_if: WhatIf
    places: IdlePlaces

    def predicted(self, saving: Saving) -> Saving:
        """With the prediction, and with the one place that causes most of the time, where there is one."""
        assert saving.recoverable_ns is not None
        # A rule that estimates takes a share of what it claimed; the rest of that GPU time stays.
        share = saving.recoverable_ns / self.claimed.ns
        found = self._without(1 - share)
        if found is None:
            return replace(saving, prediction_note=WITHHELD, predicted_speedup_range=None)
        then, note = self._bounded(found, saving.speedup_ceiling)
        saving = replace(saving, predicted_speedup=_speedup(found.now, then), prediction_note=note)
        if found.per_step:
            # What the bound adds to the one it adds to the other.
            bare = None if found.unprofiled is None else found.unprofiled + then - found.then
            saving = replace(saving, per_step_ns=found.claimed, step_ns=found.now)
            saving = replace(saving, predicted_step_ns=then, predicted_unprofiled_step_ns=bare)
        return replace(saving, place=self._place(saving), predicted_speedup_range=self._range(saving, found, share))

    def _range(self, saving: Saving, found: Prediction, share: float) -> tuple[float, float] | None:
        """What an estimate may come to: at least what the replay says of its least, at most its most on a host that keeps up."""
        speedup, ceiling = saving.predicted_speedup, saving.speedup_ceiling
        if saving.predicted_speedup_range is None or not saving.pays or speedup is None or not ceiling:
            return None
        # Of the whole window, as parts of what is recoverable of it.
        low, high = ((1 - 1 / end) / (1 - 1 / ceiling) for end in saving.predicted_speedup_range)
        least = self._without(1 - share * low)
        slow = _speedup(least.now, max(least.then, least.now - least.claimed)) if least else None
        fast = found.now / max(found.now - found.claimed * high, (1 - MOST_SAVED) * found.now)
        return min(slow or 1.0, speedup), round(max(fast, speedup), 6)

    def _without(self, keep: float) -> Prediction | None:
        return self.what_if.without(self.key, self.claimed, keep)

    def _bounded(self, found: Prediction, most: float | None) -> tuple[int, str | None]:
        """The time that is left, and what further time goes with the claim where that is more than can be recovered of it."""
        own = found.now - found.claimed
        least = max(own, ceil(found.now / most)) if most else own
        if least <= found.then * (1 + MOST_WRONG):
            return max(found.then, least), None
        if own <= found.then * (1 + MOST_WRONG):
            return found.then, TIMED
        return (
            found.then,
            f"With {format_duration(found.further)}{' a step' if found.per_step else ''} of {self._further(found)}",
        )

    def _further(self, found: Prediction) -> str:
        if found.work >= MOSTLY * found.further:
            return "GPU work that goes with it"
        beside = self.places.beside(self.key, self.claimed, found.start, found.end, found.further * found.steps)
        if beside.place:
            return f"idle time in {readable_name(beside.place)} that goes with it"
        causes = f" ({' and '.join(map(words, beside.causes))})" if 0 < len(beside.causes) <= MOST_CAUSES else ""
        return f"other idle time{causes} that goes with it"

    def _place(self, saving: Saving) -> PlaceSaving | None:
        """The one place that causes most of the time, and what its own share of the claim gives: no more than that, nor than all."""
        place = self.places.of(self.key, self.claimed)
        if place is None:
            return None
        found = self.what_if.without(self.key, place.claimed, 0.0)
        if found is None:
            return PlaceSaving(place.name, place.ns, None, None, None)
        least = ceil(found.now / saving.predicted_speedup) if saving.predicted_speedup else 0
        then = max(found.then, found.now - found.claimed, least)
        speedup = _speedup(found.now, then)
        if not found.per_step:
            return PlaceSaving(place.name, place.ns, None, None, speedup)
        return PlaceSaving(place.name, place.ns, found.claimed, then, speedup)


def _speedup(now: int, then: int) -> float | None:
    return round(now / then, 6) if then else None
