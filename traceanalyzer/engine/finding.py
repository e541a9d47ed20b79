"""One group of a rule's rows -> a finding: metrics, the test, the claim, the level and the words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from statistics import median

import pyarrow as pa

from traceanalyzer.engine.asked import asked, unclaimed
from traceanalyzer.engine.claims import ClaimBook, Gpu
from traceanalyzer.engine.evidence import evidence
from traceanalyzer.engine.gain import level
from traceanalyzer.engine.language import compute
from traceanalyzer.engine.language.kinds import Kind
from traceanalyzer.engine.language.names import Expression
from traceanalyzer.engine.rows import TableRows, Windows
from traceanalyzer.engine.rules.program import Program
from traceanalyzer.engine.rules.rule import Rule
from traceanalyzer.engine.tiles import Asked
from traceanalyzer.model.replayed import JobPrediction, JobReplay
from traceanalyzer.records import dataclass
from traceanalyzer.result.document import Finding, Metric, Saving, Scope
from traceanalyzer.units import BYTES, NS, format_duration
from traceanalyzer.vocabulary.levels import CONFIDENCES, HIGH, INFO
from traceanalyzer.vocabulary.losses import START_UP

Describe = Callable[[int, int], str]
WITHOUT, BALANCED = "without", "balanced"
"""How `saving.replay` of a rule may say that the job is played again."""
# No estimate says that more than this of a window may go.
MOST_SAVED = 0.99
# What others hold is worth a sentence from this share of the estimate on.
_WORTH_SAYING = 0.05


class CannotJudgeError(Exception):
    """The rows of a group do not allow a judgement, and why."""


@dataclass(frozen=True)
class GroupRun:
    """What judging a group needs. `weak` are the ranks whose trace health lowers the confidence of this rule, and what it says."""

    rule: Rule
    program: Program
    windows: Windows
    book: ClaimBook
    describe: Describe
    weak: Mapping[int | None, str]
    replay: JobReplay | None = None

    def finding(self, keys: dict[str, pa.Scalar], rows: TableRows) -> tuple[Finding, str] | None:
        """The finding of this group and the first sentence of its message, or None when it does not hold. Claims what it recovers.

        Raises CannotJudgeError where one of the rule's conditions to abstain holds.
        """
        if not rows.count:
            return None
        rule, program = self.rule, self.program.judgement
        scope = Scope(*(keys[key].as_py() if key in keys else None for key in ("rank", "device")))
        gpu = None if scope.rank is None or scope.device is None else (scope.rank, scope.device)
        rows.values |= keys | self._context(scope)
        spans = self._unclaimed(rows, gpu) if program.asks_first else {}
        # A metric with the name of something else takes its place from there on, so that their order counts.
        first = program.metrics if program.metrics.keys() & rows.values.keys() else program.first
        self._measure(rows, first)
        for condition, reason in program.abstain:
            if condition(rows).as_py():
                raise CannotJudgeError(reason)
        if program.having and not program.having(rows).as_py():
            return None
        spans = spans if program.asks_first else self._unclaimed(rows, gpu)
        self._measure(rows, {name: one for name, one in program.metrics.items() if name not in first})
        metrics = {name: metric(rows.values[name], program.metrics[name].kind) for name in program.metrics}
        wanted = self._estimate(rows)
        recoverable = min(wanted, self._claim(spans))
        rows.values["recoverable"] = pa.scalar(recoverable, pa.int64())
        gpus = self._gpus(scope, spans)
        window = sum(self.windows.duration(*gpu) for gpu in gpus)
        confidence, reasons = self._confidence(rows, gpus, scope)
        said = self.program.said
        assert said.message is not None
        finding = Finding(
            rule=rule.id,
            slug=rule.slug,
            title=rule.title,
            severity=self._severity(rows, recoverable / window if window else 0.0),
            confidence=confidence,
            message=_sentence(said.message(rows)) + self._accounted(spans, wanted, recoverable),
            scope=self._scope(rows) or scope,
            metrics=metrics,
            saving=self._saving(rows, wanted, recoverable, window, gpus),
            evidence=evidence(rule.source, rows, said.order_by, rule.limit),
            recommend=[step for when, step in said.recommend if when is None or when(rows).as_py()],
            references=list(rule.references),
            confidence_reasons=reasons,
        )
        return finding, _sentence(said.message.first_sentence(rows))

    def _unclaimed(self, rows: TableRows, gpu: Gpu | None) -> dict[Gpu, Iterable[Asked]]:
        """The intervals of the rows by GPU, where the rule claims any; the rows are given what nobody has claimed of them yet."""
        if not self.rule.claims:
            return {}
        spans = asked(rows, self.book, gpu)
        each, left = unclaimed(rows, spans, self.book, self.rule.claims)
        rows.values["unclaimed"] = pa.scalar(left, pa.int64())
        rows.add_column("unclaimed", each)
        return spans

    @staticmethod
    def _measure(rows: TableRows, metrics: Mapping[str, Expression]) -> None:
        """Give the rows the values of these metrics, which may need those before them."""
        rows.sum_up(one for expression in metrics.values() for one in expression.aggregates)
        for name, expression in metrics.items():
            rows.values[name] = expression(rows)

    def _scope(self, rows: TableRows) -> Scope | None:
        """The GPU that the rule says its finding is about, if it says one."""
        if not self.program.said.scope:
            return None
        told = {key: expression(rows).as_py() for key, expression in self.program.said.scope.items()}
        return Scope(*(None if told.get(key) is None else int(told[key]) for key in ("rank", "device")))

    def _context(self, scope: Scope) -> dict[str, pa.Scalar]:
        if scope.rank is None or scope.device is None:
            return {}
        name = pa.scalar(self.describe(scope.rank, scope.device))
        return {**self.windows.values(scope.rank, scope.device), "gpu": name}

    def _gpus(self, scope: Scope, spans: Mapping[Gpu, Iterable[Asked]]) -> list[tuple[int, int]]:
        """The GPUs whose windows the finding is measured against: those with rows, or those in its scope."""
        if spans:
            return list(spans)
        return [
            (rank, device)
            for rank, device in self.windows.gpus
            if scope.rank in (None, rank) and scope.device in (None, device)
        ]

    def _estimate(self, rows: TableRows) -> int:
        """What the rule says could be saved, in ns; the claim caps it."""
        estimate = self.program.said.recoverable(rows).as_py() if self.program.said.recoverable else None
        return max(0, round(estimate or 0))

    def _claim(self, spans: Mapping[Gpu, Iterable[Asked]]) -> int:
        rule = self.rule
        return sum(
            self.book.claim(rule.id, rule.category, *gpu, gpu_spans, rule.claims) for gpu, gpu_spans in spans.items()
        )

    def _accounted(self, spans: Mapping[Gpu, Iterable[Asked]], wanted: int, recoverable: int) -> str:
        """The sentence that says which other rules already account for what this one could not claim, or nothing."""
        missing = wanted - recoverable
        if missing <= _WORTH_SAYING * wanted:
            return ""
        held: Counter[str] = Counter()
        for gpu, gpu_spans in spans.items():
            held.update(self.book.who(*gpu, gpu_spans, self.rule.claims))
        # Another group of this very rule is no other account.
        held.pop(self.rule.id, None)
        if not held:
            return ""
        *others, last = held
        rules = f"{', '.join(others)} and {last} already account" if others else f"{last} already accounts"
        return f" {rules} for {format_duration(missing) + ' of ' if recoverable else ''}this time."

    def _severity(self, rows: TableRows, share: float) -> str:
        if self.rule.severity:
            return next((name for when, name in self.program.said.severity if when(rows).as_py()), INFO)
        return level(share)

    def _confidence(self, rows: TableRows, gpus: list[tuple[int, int]], scope: Scope) -> tuple[str, list[str]]:
        """The confidence, and why it is not high."""
        saving = self.rule.saving
        most = saving.confidence if saving else HIGH
        reasons = [] if most == HIGH else [f"this rule estimates, with {most} confidence at most"]
        lowered = []
        # What is true of the whole job has no rank.
        ranks = (None, scope.rank, *(rank for rank, _ in gpus))
        if weak := next((self.weak[rank] for rank in ranks if rank in self.weak), None):
            lowered.append(f"lowered by the health of the trace: {weak}")
        if saving and self.program.said.less_sure is not None and self.program.said.less_sure(rows).as_py():
            lowered.append(f"lowered because this condition of the rule holds: {saving.less_sure_when}")
        return CONFIDENCES[max(0, CONFIDENCES.index(most) - len(lowered))], reasons + lowered

    def _saving(
        self, rows: TableRows, wanted: int, recoverable: int, window: int, gpus: list[tuple[int, int]]
    ) -> Saving:
        if not self.rule.saving and self.rule.category != "health":
            return Saving(None, None, None, None)
        # What is paid once is no cost of a step.
        repeats = len(gpus) == 1 and self.rule.category != START_UP.name
        steps = self.windows.value(*gpus[0], "step_count").as_py() if repeats else None
        saving = Saving(
            recoverable_ns=recoverable,
            recoverable_share=round(recoverable / window, 6) if window else 0.0,
            speedup_ceiling=round(window / (window - recoverable), 6) if window > recoverable else None,
            per_step_ns=recoverable // steps if steps else None,
            prediction_note=self.rule.saving.unpredicted if self.rule.saving and recoverable else None,
            gpu_count=max(len(gpus), 1),
            predicted_speedup_range=self._range(rows, recoverable, window),
        )
        if not (self.program.said.sooner or self.program.said.replay) or not recoverable:
            return saving
        return self._with_job_prediction(rows, saving, recoverable / max(wanted, 1), gpus)

    def _range(self, rows: TableRows, recoverable: int, window: int) -> tuple[float, float] | None:
        """The speedups if the rule's estimate came to its least and to its most."""
        if not self.program.said.estimate or not recoverable:
            return None
        least, most = (round(end(rows).as_py() or 0) for end in self.program.said.estimate)
        least, most = min(max(least, 0), recoverable), min(max(most, recoverable), round(MOST_SAVED * window))
        low, high = (round(window / max(window - saved, 1), 6) for saved in (least, most))
        return low, max(low, high)

    @staticmethod
    def _by_gpu(rows: TableRows, value: Expression) -> list[int]:
        """The sums of a row's value on each GPU."""
        keys = {key: rows.column(key) for key in ("rank", "device")}
        values = compute.as_array(value(rows), rows.count)
        sums = pa.table({**keys, "value": values}).group_by([*keys]).aggregate([("value", "sum")])
        return [total or 0 for total in sums["value_sum"].to_pylist()]

    def _with_job_prediction(self, rows: TableRows, saving: Saving, part: float, gpus: list[tuple[int, int]]) -> Saving:
        """How much faster the whole job would be, by playing it again or else by what the rows say: its longest window, and a typical
        step of it, shorter by the same share.

        Of what others already account for, nothing would be gone: `part` is what is left of the estimate.
        Where nothing would be gone the saving stays as it is, with what the rule says to that.
        """
        played = self._played(rows)
        if played is not None:
            run, gain, step = (
                played.now,
                round(part * (played.now - played.then)),
                played.now if played.per_step else None,
            )
        else:
            run = max(self.windows.duration(*gpu) for gpu in gpus)
            gain = round(part * max(self._by_gpu(rows, self.program.said.sooner))) if self.program.said.sooner else 0
            steps = [step for gpu in gpus if (step := self.windows.value(*gpu, "step_time").as_py())]
            step = round(median(steps)) if steps else None
        gain = min(gain, run - 1)
        if len(gpus) == 1:
            gain = min(gain, saving.recoverable_ns or 0)
        if gain <= 0:
            return saving
        speedup = round(run / (run - gain), 6)
        condition = self.program.said.sooner_if(rows) if self.program.said.sooner_if else None
        balanced = self.program.said.replay is not None and self.program.said.replay(rows).as_py() == BALANCED
        if condition and saving.speedup_ceiling and speedup > saving.speedup_ceiling and not balanced:
            # All ranks are done sooner, and what they waited is only what those that came in time lost.
            spared = min(round(run * len(gpus) * (gain / run - (saving.recoverable_share or 0.0))), gain)
            each = format_duration(spared) if step is None else f"{format_duration(round(spared * step / run))} a step"
            condition += f", which spares it {each} of its own time"
        return replace(
            saving,
            step_ns=step,
            predicted_step_ns=None if step is None else round(step * (run - gain) / run),
            predicted_speedup=speedup,
            prediction_note=condition,
        )

    def _played(self, rows: TableRows) -> JobPrediction | None:
        """What the job played again says of the change that the rule names."""
        how = self.program.said.replay(rows).as_py() if self.program.said.replay else None
        if how is None or self.replay is None:
            return None
        if how == BALANCED:
            return self.replay.balanced()
        late = self._scope(rows)
        if how != WITHOUT or late is None or late.rank is None or late.device is None:
            return None
        return self.replay.without((late.rank, late.device))


def metric(value: pa.Scalar, kind: Kind) -> Metric:
    """A metric for the result document: whole ns and bytes, other fractions to six decimals."""
    plain = value.as_py()
    if isinstance(plain, float):
        plain = round(plain) if kind.unit in (NS, BYTES) else round(plain, 6)
    elif isinstance(plain, bool):
        plain = int(plain)
    return Metric(plain, kind.unit)


def _sentence(message: str) -> str:
    # A message may begin with a GPU's name, and some of those ("rank 2 …") begin with an ordinary word.
    return message[:1].upper() + message[1:]
