"""What the matrix work of a GPU reaches of what the GPU gives, in the result document, and in words."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.records import dataclass
from traceanalyzer.units import format_share


@dataclass(frozen=True)
class Roofline:
    """Matrix products, convolutions and fused attention of one GPU, whose recorded shapes tell their floating-point operations.

    `gpu` is the GPU's name, `peak_tflops` what it gives in `precision`, in which most of that time is spent (`precision_share` of
    it), `memory_bytes_per_s` what its memory gives; null where the table of peaks does not have it. `matrix_share` is the part of its
    compute time that does matrix work, `known_share` the part of matrix work launched in the recording whose operations are known,
    and `judged_share` the part of that whose precision has a known peak.

    `flops` were launched in all, and run at `tflops` (10^12 per second of their kernels' time). `peak_share` is the least time that
    the peaks allow for them over that time, `roof_share` the same where the memory's least time counts too, and `memory_bound_share`
    the part of that time in which the memory is what takes longest.

    `steps` are compared with each other (0: without any, `step_flops` are those of the window, and `mfu` is of the window). A step has
    `step_flops`; at `step_tflops` per second of it, it uses the share `mfu` of what the GPU gives (model FLOPs utilization). `mfu` and
    `step_tflops` are null where what is not known would change them; `note` says what is not known, null for nothing.
    """

    rank: int | None
    device: int
    gpu: str | None
    precision: str | None
    precision_share: float | None
    peak_tflops: float | None
    memory_bytes_per_s: float | None
    matrix_share: float
    known_share: float
    judged_share: float
    flops: int
    tflops: float
    peak_share: float | None
    roof_share: float | None
    memory_bound_share: float | None
    steps: int
    step_flops: int
    step_tflops: float | None
    mfu: float | None
    note: str | None = None


@dataclass(frozen=True)
class Rate:
    """What the matrix work of a GPU, or of several together, reaches: what is judged of it takes `ns`, and as fast as its
    `roof` (in words) allows it would take `least_ns`. It is about `matrix_ns` of `compute_ns` computing; that is more than `ns` where
    work from before the recording runs."""

    roof: str
    ns: int
    least_ns: int
    matrix_ns: int
    compute_ns: int

    @property
    def share(self) -> float:
        return self.least_ns / self.ns

    def words(self, whose: str) -> str:
        """ "its matrix products reach 9% of the peak of 989 TFLOP/s in bf16"."""
        part = self.matrix_ns / self.compute_ns
        of = "" if part >= NEARLY else f", {format_share(part)} of {whose} compute time,"
        return f"{whose} matrix products{of} reach {format_share(self.share)} of {self.roof}"


NEARLY = 0.9
"""Matrix work that is this much of computing stands for all of it."""
MAINLY = 0.5
"""And this much for most of it."""
WORTH_A_WORD = 0.1
"""And below this one it says nothing of it."""
KNOWN = 0.9
"""So much of it must be known for a figure of all of it."""
MOSTLY = 0.75
"""And so much for a sentence, which says of how much it speaks."""
LEAST_NS = 1_000_000
"""Of less time nothing is said in a sentence: clocks and caches of the first kernels are not those of a run."""
POSSIBLE = 1.15
"""A higher share than this has another reason than clocks above the stated ones (8 % on an H100): the table does not fit, or a cache
holds what is multiplied."""
IDLING = 0.5
"""Below this share of what the GPU gives, "nothing worth fixing" would not be true."""


def added(rates: Sequence[Rate]) -> Rate | None:
    """Of several GPUs together; None where they are not of one kind."""
    if not rates or len({one.roof for one in rates}) > 1:
        return None
    sums = (sum(getattr(one, name) for one in rates) for name in ("ns", "least_ns", "matrix_ns", "compute_ns"))
    return Rate(rates[0].roof, *sums)


def leaves_room(rooflines: Sequence[Roofline]) -> bool:
    """Whether the matrix work that a GPU mainly does is far from what the GPU gives: then "nothing worth fixing" would not be true."""
    return any(
        one.matrix_share >= MAINLY and one.roof_share is not None and one.roof_share < IDLING for one in rooflines
    )


def why_unjudged(rooflines: Sequence[Roofline]) -> str | None:
    """Why nobody can say how near the kernels of a GPU that computes come to what it gives; None where that is said."""
    if not rooflines:
        return "no shapes of operators were recorded"
    return next((one.note for one in rooflines if one.mfu is None and one.note), None)


def near_peak_unjudged(rooflines: Sequence[Roofline]) -> str:
    """The same as a sentence, "" where that is said."""
    why = why_unjudged(rooflines)
    return f"How near its kernels come to the GPU's peak could not be judged: {why}." if why else ""
