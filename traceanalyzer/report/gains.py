"""What a finding gives, in words: the speed first, then what it means for a step, or under which condition it holds."""

from __future__ import annotations

from dataclasses import dataclass

from traceanalyzer.report.words import format_duration
from traceanalyzer.result.document import Saving
from traceanalyzer.result.unprofiled_words import saving_without_profiler


@dataclass(frozen=True)
class Gain:
    """For example "1.52× faster" and "without it; an average step takes 13.2 ms instead of 20.1 ms". `term` is the glossary's word for
    how the speed was found: predicted, at most, or no gain."""

    speed: str
    rest: str
    term: str

    @property
    def words(self) -> str:
        return f"{self.speed} {self.rest}".strip()


def gain(saving: Saving, everywhere: bool = False) -> Gain | None:
    """From the replayed timeline where there is a prediction, else the ceiling; None when nothing was estimated or is left to claim.

    Beside a prediction, the note of the saving is the condition under which it holds: "1.87× faster", "had the rank come in time; a
    step would take …". `everywhere`: the GPU works with others, and was played again as if they gained as much.
    """
    if not saving.recoverable_ns:
        return None
    condition = saving.prediction_note if saving.predicted_speedup is not None else None
    if condition:
        condition = condition[:1].lower() + condition[1:]
    if not saving.pays:
        return Gain("no faster", f"{condition or 'without it alone'}: something else sets the pace", "no gain")
    if saving.predicted_speedup is not None:
        words = [condition or ("without it on all GPUs" if everywhere else "without it")]
        if saving.predicted_step_ns is not None and saving.step_ns is not None:
            now, then = format_duration(saving.step_ns), format_duration(saving.predicted_step_ns)
            step = "a typical step would take" if condition else "an average step takes"
            words.append(f"{step} {then} instead of {now}")
            words.append(saving_without_profiler(saving, format_duration) or "")
        else:
            words[0] += ", over the whole recording"
        return Gain(f"{saving.predicted_speedup:.2f}× faster", "; ".join(filter(None, words)), "predicted")
    whole = "in all" if saving.gpu_count == 1 else f"of {saving.gpu_count} GPUs together"
    lost = (
        f"it costs {format_duration(saving.recoverable_ns)} {whole}"
        if saving.per_step_ns is None
        else f"it costs {format_duration(saving.per_step_ns)} of a step"
    )
    if saving.speedup_ceiling is None:
        return Gain(lost[:1].upper() + lost[1:], "", "claimed")
    return Gain(f"at most {saving.speedup_ceiling:.2f}× faster", f"without it; {lost}", "at most")
