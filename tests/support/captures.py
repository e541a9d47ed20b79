"""Captures made by hand, for what is held against them."""

from __future__ import annotations

from traceanalyzer.result.captures.capture import Capture, Problem, Samples, Unit, Value
from traceanalyzer.result.captures.metrics import figure


def capture(name: str = "run.json", *, steps: int = 5, rules: dict[str, str] | None = None, **more: object) -> Capture:
    """A sound capture of one GPU, with `metrics` by name and the outcomes of its rules; any other field by its name."""
    metrics = dict(more.pop("metrics", {}))  # type: ignore[call-overload]
    outcomes = rules or {"INP001": "clean"}
    values = {one: Value(value, known.unit) for one, value in metrics.items() if (known := figure(one, outcomes))}
    assert len(values) == len(metrics)
    plain: dict[str, object] = {
        "name": name,
        "format": "kineto",
        "gpus": ["Test GPU"],
        "world_size": None,
        "ranks": [],
        "versions": {},
        "damage": [],
        "unjudged": None,
        "headline": "GPU 0 computes half of the time.",
        "metrics": values,
        "unit": Unit("step", "annotation", steps, Samples(10_000_000, [10_000_000]), None, 100.0) if steps else None,
        "no_unit": None if steps else "no steps are marked",
        "lines": {},
        **{key: [] for key in ("families", "kernels", "operators", "collectives", "shapes", "problems")},
        "outcomes": outcomes,
        "reasons": {},
    }
    return Capture(**{**plain, **more})  # type: ignore[arg-type]


def problem(rule: str, message: str) -> Problem:
    return Problem(rule, "A title", "high", "high", 1_000_000, [], "GPU 0", message)
