"""The result in the text format of Prometheus (0.0.4), so that a nightly job can be graphed. Who reads it knows the time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import field

from traceanalyzer.records import dataclass
from traceanalyzer.render.lines import printable
from traceanalyzer.result.document import Result
from traceanalyzer.result.gpus import ledger_lines, steps_of_gpus
from traceanalyzer.result.ranks import notes
from traceanalyzer.vocabulary.levels import OUTCOMES, SEVERITIES

NS = 1_000_000_000
Labels = dict[str, str]


@dataclass
class Family:
    """A metric and its samples as (labels, value)."""

    name: str
    help: str
    samples: list[tuple[Labels, float]] = field(default_factory=list)

    def lines(self) -> list[str]:
        head = [f"# HELP traceanalyzer_{self.name} {self.help}", f"# TYPE traceanalyzer_{self.name} gauge"]
        return [
            *head,
            *(f"traceanalyzer_{self.name}{_labels(labels)} {_number(value)}" for labels, value in self.samples),
        ]


def render_prometheus(result: Result) -> str:
    """Gauges in base units: seconds, shares from 0 to 1, counts. A metric without samples is left out; ends in a newline."""
    families = [*_about(result), *_gpus(result), *_steps(result), *_findings(result), *_job(result)]
    return "\n".join(line for family in families if family.samples for line in family.lines()) + "\n"


def _about(result: Result) -> Iterator[Family]:
    info = {"version": result.tool.get("version", ""), "bound_by": result.verdict.bound_by}
    yield Family("info", "The tool's version and what bounds the run; always 1.", [(info, 1)])
    yield Family("judged", "1 when the trace could be judged, else 0.", [({}, int(result.judged))])
    yield Family("input_bytes", "Size of the trace files in bytes.", [({}, sum(one.bytes for one in result.inputs))])
    health = Counter(note.severity for note in notes(result.health))
    yield Family(
        "health_notes", "Notes on the health of the trace.", [({"severity": s}, health[s]) for s in SEVERITIES]
    )
    outcomes = Counter(rule.outcome for rule in result.rules)
    yield Family("rules", "Rules by what they came to.", [({"outcome": name}, outcomes[name]) for name in OUTCOMES])


def _gpus(result: Result) -> Iterator[Family]:
    """The ledger: the lines of a GPU add up to its window."""
    window = Family("window_seconds", "From the first GPU operation's start to the last one's end.")
    busy = Family("busy_seconds", "Time in which the GPU did anything.")
    info = Family("gpu_info", "Which GPU it is; always 1.")
    line = Family("ledger_seconds", "The window by line of the ledger, idle time by cause; each moment is on one line.")
    share = Family("ledger_ratio", "The ledger's lines as shares of the window.")
    parts = Family(
        "exposed_communication_seconds", "That line of the ledger by what it is made of, where that is told."
    )
    kernels = Family("kernels", "Kernels that ran.")
    for gpu, device in zip(_gpu_labels(result), result.devices, strict=True):
        window.samples.append((gpu, device.window_ns / NS))
        busy.samples.append((gpu, device.busy_ns / NS))
        info.samples.append((gpu | {"name": device.name or ""}, 1))
        for name, ns in ledger_lines(device).items():
            line.samples.append((gpu | {"line": name}, ns / NS))
            share.samples.append((gpu | {"line": name}, round(ns / max(device.window_ns, 1), 9)))
        for name, amount in (("wait", device.exposed_wait_ns), ("transfer", device.exposed_transfer_ns)):
            if amount is not None:
                parts.samples.append((gpu | {"part": name}, amount / NS))
        kernels.samples.append((gpu, device.kernel_count))
    yield from (info, window, busy, line, share, *([parts] if parts.samples else []), kernels)


def _gpu_labels(result: Result) -> list[Labels]:
    """What names each GPU. `gpu` is its place in the result: where files do not say their ranks, several can have one number."""
    return [
        {"gpu": str(number), "rank": _text(device.rank), "device": str(device.device)}
        for number, device in enumerate(result.devices)
    ]


def _steps(result: Result) -> Iterator[Family]:
    count = Family("steps", "Steps that were recorded.")
    median = Family("step_median_seconds", "Median time of a step.")
    p95 = Family("step_p95_seconds", "95th percentile of the time of a step.")
    for gpu, steps in zip(_gpu_labels(result), steps_of_gpus(result), strict=True):
        if steps:
            count.samples.append((gpu, steps.count))
            median.samples.append((gpu, steps.median_ns / NS))
            p95.samples.append((gpu, steps.p95_ns / NS))
    yield from (count, median, p95)


def _findings(result: Result) -> Iterator[Family]:
    severities = Counter(finding.severity for finding in result.findings)
    yield Family("findings", "Findings by severity.", [({"severity": s}, severities[s]) for s in SEVERITIES])
    recoverable: defaultdict[str, int] = defaultdict(int)
    for finding in result.findings:
        recoverable[finding.rule] += finding.saving.recoverable_ns or 0
    windows = sum(device.window_ns for device in result.devices)
    by_rule = sorted(recoverable.items())
    yield Family(
        "recoverable_seconds",
        "What is to be gained by rule, over all GPUs.",
        [({"rule": r}, ns / NS) for r, ns in by_rule],
    )
    shares = [({"rule": rule}, round(ns / windows, 9)) for rule, ns in by_rule] if windows else []
    yield Family("recoverable_ratio", "The same as a share of all GPUs' windows.", shares)


def _job(result: Result) -> Iterator[Family]:
    job = result.job
    if job is None:
        return
    yield Family("ranks", "Ranks that were recorded.", [({}, len(job.ranks))])
    yield Family("missing_ranks", "Ranks that were not recorded.", [({}, len(job.missing_ranks))])
    waited: defaultdict[tuple[str, str], int] = defaultdict(int)
    for late in job.late_ranks:
        waited[_text(late.rank), _text(late.device)] += late.waited_ns
    samples = [({"rank": rank, "device": device}, ns / NS) for (rank, device), ns in waited.items()]
    yield Family("late_wait_seconds", "What others waited for a rank that came late, with nothing else to do.", samples)


def _text(number: int | None) -> str:
    return "" if number is None else str(number)


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}" if labels else ""


def _escaped(value: str) -> str:
    return printable(value).replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.9f}".rstrip("0").rstrip(".")
