"""What a finding gives, in the words of every output: the speed first, then what it means for a step, or when it holds."""

from __future__ import annotations

from traceanalyzer.records import dataclass
from traceanalyzer.result.document import Result, Saving
from traceanalyzer.result.words.speedups import place_name, times, times_range, told_apart
from traceanalyzer.result.words.unprofiled import Duration, saving_without_profiler
from traceanalyzer.units import format_duration


@dataclass(frozen=True)
class Gain:
    """For example "1.52× faster" and "without it; an average step takes 13.2 ms instead of 20.1 ms". `term` is the glossary's word for
    how the speed was found: predicted, estimated, at most, or no gain."""

    speed: str
    rest: str
    term: str

    @property
    def words(self) -> str:
        return f"{self.speed} {self.rest}".strip()


def is_of_all(result: Result) -> bool:
    """Whether the GPUs work together, so that what one of them gains takes the others to gain as much."""
    return bool(result.job and result.job.parallelism and len(result.devices) > 1)


def gain(saving: Saving, everywhere: bool = False, duration: Duration = format_duration) -> Gain | None:
    """From the replayed timeline where there is a prediction, else the ceiling; None when nothing was estimated or is left to claim.
    Where one place causes most of it, what that alone gives comes first, and the range of an estimate is a range.

    Beside a prediction, the note of the saving is the condition under which it holds: "1.87× faster", "had the rank come in time; a
    step would take …". `everywhere`: the GPU works with others, and was played again as if they gained as much. `duration` writes
    times.
    """
    if not saving.recoverable_ns:
        return None
    condition = saving.prediction_note if saving.predicted_speedup is not None else None
    if condition:
        condition = condition[:1].lower() + condition[1:]
    if not saving.pays:
        return Gain("no faster", f"{condition or 'without it alone'}: something else sets the pace", "no gain")
    if saving.predicted_speedup_range is not None:
        rest = "without it, estimated from what the GPU can do"
        return Gain(f"{times_range(saving.predicted_speedup_range)} faster", rest, "estimated")
    if saving.predicted_speedup is not None:
        return _predicted(saving, saving.predicted_speedup, condition, everywhere, duration)
    whole = "in all" if saving.gpu_count == 1 else f"of {saving.gpu_count} GPUs together"
    lost = (
        f"it costs {duration(saving.recoverable_ns)} {whole}"
        if saving.per_step_ns is None
        else f"it costs {duration(saving.per_step_ns)} of a step"
    )
    if saving.speedup_ceiling is None:
        return Gain(lost[:1].upper() + lost[1:], "", "claimed")
    return Gain(f"at most {times(saving.speedup_ceiling)} faster", f"without it; {lost}", "at most")


def _predicted(saving: Saving, speedup: float, condition: str | None, everywhere: bool, duration: Duration) -> Gain:
    place, then, beside = told_apart(saving), saving.predicted_step_ns, []
    words = condition or ("without it on all GPUs" if everywhere else "without it")
    if place is not None and place.predicted_speedup is not None:
        beside = [f"{times(speedup)} {condition or 'without all of it'}"]
        words, condition, then, speedup = (
            f"without {place_name(place)} alone",
            None,
            place.predicted_step_ns,
            place.predicted_speedup,
        )
    if then is not None and saving.step_ns is not None:
        step = "a typical step would take" if condition else "an average step takes"
        lasts = f"{words}; {step} {duration(then)} instead of {duration(saving.step_ns)}"
    else:
        lasts = f"{words}, over the whole recording"
    bare = saving_without_profiler(saving, duration)
    return Gain(f"{times(speedup)} faster", "; ".join([lasts, *beside, *([bare] if bare else [])]), "predicted")
