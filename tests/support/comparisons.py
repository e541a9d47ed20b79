"""Captures and comparisons made by hand: a loader that was fixed, and a kernel that got slower meanwhile."""

from __future__ import annotations

from traceanalyzer.result.captures.capture import Baseline, Capture, Problem, Samples, Shape, Unit, Value, Work
from traceanalyzer.result.comparing.comparison import Change, Comparison, Noise, Note, ProblemChange, Side

MS, US = 1_000_000, 1_000
TOOL = {"name": "traceanalyzer", "version": "0"}
GPU = "NVIDIA H100 80GB HBM3"


def change(
    name: str, base: int | None, new: int | None, direction: str | None = None, noise: float = 0.01, **counts: float
) -> Change:
    """A change from `base` to `new` ns, with an interval of `noise` around its ratio."""
    ratio = new / base if base and new else None
    low, high = (None, None) if ratio is None else (ratio * (1 - noise), ratio * (1 + noise))
    if direction is None:
        if base is None or new is None:
            direction = "new" if base is None else "vanished"
        else:
            direction = "same" if abs(new - base) <= noise * base else "slower" if new > base else "faster"
    return Change(name, base, new, (new or 0) - (base or 0), ratio, low, high, direction, **counts)


def side(name: str, unit_ns: int | None, count: int = 12, **other: object) -> Side:
    samples = [] if unit_ns is None else [unit_ns + (n % 3 - 1) * unit_ns // 100 for n in range(count)]
    given: dict[str, object] = {
        "name": name, "captures": 1, "gpu": GPU, "gpu_count": 1, "unit": "step", "method": "annotation", "unit_count": count,
        "unit_ns": unit_ns, "samples_ns": samples, "headline": f"GPU 0 of {name} is idle.",
    }  # fmt: skip
    return Side(**{**given, **other})  # type: ignore[arg-type]


def comparison(**other: object) -> Comparison:
    """18.4 ms a step before, 12.1 ms now; the lines add up to both."""
    given: dict[str, object] = {
        "tool": TOOL,
        "outcome": "faster",
        "headline": "A step is 1.52× faster: 12.1 ms instead of 18.4 ms.",
        "reason": None,
        "base": side("slow.json.gz", 18_400 * US),
        "new": side("fixed.json.gz", 12_100 * US),
        "notes": [Note("versions", "base ran on torch 2.5.0, new on torch 2.6.0")],
        "noise": Noise("steps", 0.008, 0.011, 0.02, 0.95),
        "step": change("step", 18_400 * US, 12_100 * US),
        "lines": [
            change("compute", 9_000 * US, 9_600 * US),
            change("exposed_memcpy", 300 * US, 301 * US),
            change("idle.input", 8_000 * US, None),
            change("idle.host_work", 1_000 * US, 1_005 * US),
            change("idle.launch_latency", 100 * US, 1_194 * US),
        ],
        "families": [change("matrix product", 6_000 * US, 6_600 * US), change("elementwise", 3_000 * US, 3_000 * US)],
        "kernels": [
            change("ampere_bf16_s16816gemm", 6_000 * US, 6_600 * US, base_count=24, new_count=24),
            change("add_kernel", 400 * US, None, base_count=2, new_count=0),
            change("fused_add_mul", None, 400 * US, base_count=0, new_count=1),
            change("relu", 2_600 * US, 2_600 * US, base_count=8, new_count=8),
        ],
        "operators": [change("aten::linear", 6_000 * US, 6_600 * US)],
        "collectives": [],
        "problems": [
            problem("INP001", "The GPU waits for the data loader", "fixed", 8_000 * US, None),
            problem("LCH001", "The GPU waits for kernel launches", "new", None, 1_100 * US),
            problem("KRN005", "Tensor cores are idle", "uncovered", 5_000 * US, 5_000 * US),
            problem("MEM004", "Memory grows", "unknown", None, None, reason="new has no memory events"),
            problem("HST001", "The host sets the pace", "same", 900 * US, 905 * US),
        ],
    }
    return Comparison(**{**given, **other})  # type: ignore[arg-type]


def problem(
    rule: str, title: str, state: str, base: int | None, new: int | None, reason: str | None = None
) -> ProblemChange:
    severities = ("high" if base else None, "medium" if new else None)
    return ProblemChange(rule, title, state, base, new, *severities, f"{title}, says {rule}.", reason)


def refused(**other: object) -> Comparison:
    """Another GPU on each side."""
    reason = "base ran on an NVIDIA H100, new on an NVIDIA A100"
    given: dict[str, object] = {
        "outcome": "could_not_judge", "headline": f"Could not judge: {reason}.", "reason": reason,
        "notes": [Note("gpu", reason, True)], "step": None, "lines": [], "families": [], "kernels": [], "operators": [],
        "problems": [], "noise": Noise(None, None, None, 0.02, 0.95),
    }  # fmt: skip
    return comparison(**{**given, **other})


def capture(name: str = "run.json.gz", step_ns: int = 18_400 * US, kernels: int = 40, **other: object) -> Capture:
    """One sound capture; `kernels` kernels and operators. Its lines add up to a step."""
    samples = [step_ns + (n % 5 - 2) * step_ns // 200 for n in range(10)]
    idle = [one // 2 for one in samples]
    given: dict[str, object] = {
        "name": name, "format": "kineto", "gpus": [GPU], "world_size": None, "ranks": [], "versions": {"torch": "2.6.0"},
        "damage": [], "unjudged": None, "headline": "GPU 0 is idle 50% of the time.",
        "metrics": {"step.mean": Value(step_ns, "ns"), "idle_share": Value(0.5, "share", "GPU 0")},
        "unit": Unit("step", "annotation", 10, Samples(step_ns, samples), step_ns * 2, float(kernels)),
        "no_unit": None,
        "lines": {
            "compute": Samples(step_ns - step_ns // 2, [one - half for one, half in zip(samples, idle, strict=True)]),
            "idle.input": Samples(step_ns // 2, idle),
        },
        "families": [Work("matrix product", 24.0, 6 * MS, 10 * US)],
        "kernels": [Work(f"void kernel_{n}<{n}, float>(int)", 2.5, 50 * US + n, 3 * US) for n in range(kernels)],
        "operators": [Work(f"aten::op_{n}", 1.0, 50 * US, None) for n in range(kernels)],
        "collectives": [],
        "shapes": [Shape("aten::mm", "[[64, 128], [128, 64]]", 4.0)],
        "problems": [
            Problem("INP001", "The GPU waits for the data loader", "high", "high", step_ns // 2, ["idle.input"], "GPU 0",
                    "The loader keeps the GPU waiting."),
        ],
        "outcomes": {"INP001": "fired", "LCH001": "clean", "MEM004": "not_applicable"},
        "reasons": {"MEM004": "the trace has no memory events"},
    }  # fmt: skip
    return Capture(**{**given, **other})  # type: ignore[arg-type]


def baseline(*captures: Capture) -> Baseline:
    return Baseline(TOOL, list(captures) or [capture()])
