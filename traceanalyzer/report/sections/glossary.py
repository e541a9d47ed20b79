"""What the page's terms mean: one plain sentence each, shown as a tooltip wherever the term stands."""

from __future__ import annotations

from traceanalyzer.vocabulary.losses import BOUNDS

GLOSSARY: dict[str, str] = {
    "window": "What is judged: from the first GPU operation to the last, and over all marked steps that were recorded whole.",
    "busy": "The share of the window in which at least one GPU operation was running: a kernel, a copy or a memset.",
    "longest gap": "The longest single stretch of the window in which nothing ran on this GPU.",
    "GPU operations": "Kernels, copies, memsets and CUDA graphs recorded as a whole that ran on this GPU.",
    "kernels": "Functions that ran on this GPU; every launch counts.",
    "ledger": "Every nanosecond of the window is on exactly one line: computing comes first, then communication, copies and memsets "
    "that ran alone, and what is left is idle time by its cause. The lines add up to the window.",
    "points": "Percentage points of the window: 10 points of a window of one second are 100 milliseconds.",
    "steps": "One iteration of training, or one request of inference, as marked in the recording or found by repetition.",
    "median step": "Half of the steps are shorter than this and half are longer. One that the recording cuts off is left out.",
    "p95": "Of 100 steps, 95 are at most this long.",
    "spread": "How much longer slow steps are than the typical one: (p95 − median) / median.",
    "unprofiled": "About what a mean step takes without the profiler: the recorded timeline was played again without the time that "
    "recording operators, Python frames and API calls cost the host. What the GPU sets the pace of takes as long.",
    "predicted": "The recorded timeline was played again without this cause: the time it takes now, divided by the time it then "
    "takes. Dependencies and queues are kept. In a job each GPU is played by itself, as if those that it works with gained as much.",
    "estimated": "From the least to the most that other kernels may give on this GPU: by its peaks, the bytes that they need not move "
    "and how much of the GPU these kernels fill. The least also by playing the recorded timeline again.",
    "at most": "An upper limit: the window divided by the window without the claimed time. Something else may set the pace first.",
    "no gain": "The recorded timeline was played again without this cause, and came out as long as before.",
    "claimed": "The time that this finding accounts for, as a share of the GPU's window. No two findings account for the same time.",
    "claimed of several": "The time that this finding accounts for, summed over these GPUs, as a share of their windows together.",
    "severity": "How much of the time a fix saves, by the prediction where there is one: high from 25% of the window on, medium from "
    "10%, low from 3%, else info; a rule may set lower levels of its own.",
    "confidence": "How sure it is that this is the cause, and that the time can be won. High: read off the recording. Medium or low: "
    "in part an estimate, or the recording is in poor health.",
    "call stack": "What the host was in at a moment: Python frames, ranges, operators, calls, one within the other. A box is as wide "
    "as the time in which the stack had it. All of a GPU's boxes together are a line of its ledger, to the nanosecond.",
    "trace health": "What is missing from the recording or damaged in it, and so what the figures below cannot tell.",
}

COMPARISON: dict[str, str] = {
    "step ledger": "Every nanosecond of a step is on exactly one line: computing comes first, then communication, copies and memsets "
    "that ran alone, and what is left is idle time by its cause. So what the lines changed by adds up to what the step changed by.",
}
"""The same of terms that only the page of a comparison has."""

BOUND_BY: dict[str, str] = {bound.name: bound.meaning for bound in BOUNDS.values()}
"""What `bound_by` of the verdict means."""
