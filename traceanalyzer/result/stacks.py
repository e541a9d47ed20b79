"""The heaviest paths of calls, beside the result document: where time went by the stack of what the host did."""

from __future__ import annotations

from traceanalyzer.records import dataclass


@dataclass(frozen=True)
class HeavyPath:
    """One path, from the outermost call to the innermost, and the ns that no other path has."""

    names: tuple[str, ...]
    ns: int


@dataclass(frozen=True)
class HeavyPaths:
    """Of one tree of calls the heaviest paths, that first. `paths` and `rest_ns` are all of `total_ns`.

    `tree` is one of `call_trees`; `rank` is the job's, None when it is not known, `device` None for the time of host threads.
    `window_ns` is what shares are of, for threads that of one. `step_ns` is how long a step takes, None where none are known.
    """

    rank: int | None
    device: int | None
    tree: str
    total_ns: int
    window_ns: int
    step_ns: int | None
    paths: tuple[HeavyPath, ...]

    @property
    def rest_ns(self) -> int:
        """What lies in smaller paths."""
        return self.total_ns - sum(path.ns for path in self.paths)
