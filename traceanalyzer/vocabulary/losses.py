"""What time is lost to, in the verdict: the causes, each one row, and what bounds a run, which several causes may share.

The ledger's lines (`vocabulary.lines`) say where each nanosecond went; a rule that claims some of a line may know better, by its
category, which is the name of a cause here.
"""

from __future__ import annotations

from traceanalyzer.records import dataclass


@dataclass(frozen=True)
class Bound:
    """What bounds a run: its name in results, words for it where the name does not do, and what it means, as a clause."""

    name: str
    meaning: str
    words: str = ""


@dataclass(frozen=True)
class Cause:
    """A kind of lost time: its name, what `bound_by` calls it, what the sentence says, and whether the GPU stands idle meanwhile.

    For idle time `words` is the clause that says how much it costs; else it is what takes the time.
    """

    name: str
    bound: Bound
    words: str
    idle: bool = True

    @property
    def bound_by(self) -> str:
        return self.bound.name


BOUNDS: dict[str, Bound] = {}
"""By name, in the order in which people are told of them."""
CAUSES: dict[str, Cause] = {}
"""By name. Of several that are equal the first is named."""


def _bound(name: str, meaning: str, words: str = "") -> Bound:
    return BOUNDS.setdefault(name, Bound(name, meaning, words))


def _cause(name: str, bound: Bound, words: str, *, idle: bool = True) -> Cause:
    return CAUSES.setdefault(name, Cause(name, bound, words, idle))


BY_COMPUTE = _bound(
    "compute", "the GPU computes at least half of the time; faster kernels, or fewer of them, would help most"
)
BY_COMMUNICATION = _bound("communication", "the largest loss is communication between GPUs that no computation hides")
BY_IMBALANCE = _bound(
    "imbalance",
    "the largest loss is waiting for ranks that have more to compute; work dealt out equally would help most",
)
BY_MEMCPY = _bound("memcpy", "the largest loss is copying memory while the GPU computes nothing", "copies")
BY_INPUT = _bound("input", "the largest loss is waiting for the next batch of data")
BY_HOST = _bound("host", "the largest loss is waiting for work on the host between launches")
BY_LAUNCH = _bound("launch", "the largest loss is waiting for kernels to be launched, one by one")
BY_SYNCHRONIZATION = _bound("synchronization", "the largest loss follows waits of the host for the GPU")
BY_MEMORY = _bound(
    "memory_management", "the largest loss is waiting while memory is allocated or freed", "memory management"
)
BY_DEPENDENCY = _bound("dependency", "the largest loss is waiting for another stream or device")
BY_QUEUED = _bound("queued", "for the largest loss work was launched and did not run, and nothing recorded says why")
BY_MPI = _bound("mpi", "the largest loss is waiting in MPI calls", "MPI")
BY_OS = _bound(
    "os",
    "the largest loss is waiting for system calls of the launching thread: reading files, sleeping, locks",
    "system calls",
)
UNKNOWN = _bound(
    "unknown", "the ledger tells no cause of the largest loss that the program could change; a finding may"
)

INPUT = _cause("input", BY_INPUT, "the data loader costs {much}")
HOST = _cause("host", BY_HOST, "work on the host between launches costs {much}")
HOST_UNTRACED = _cause("host_untraced", BY_HOST, "host time without a recorded call or range costs {much}")
LAUNCH = _cause("launch", BY_LAUNCH, "launching kernels costs {much}")
LAUNCH_COPIES = _cause("launch_copies", BY_LAUNCH, "launching copies costs {much}")
SYNCHRONIZATION = _cause(
    "synchronization", BY_SYNCHRONIZATION, "the host waiting for the GPU before it goes on costs {much}"
)
MEMORY_MANAGEMENT = _cause("memory_management", BY_MEMORY, "allocating and freeing memory costs {much}")
DEPENDENCY = _cause("dependency", BY_DEPENDENCY, "waiting for another stream or device costs {much}")
QUEUED = _cause(
    "queued",
    BY_QUEUED,
    "for {much} nothing recorded says why work that was launched did not run, which could not be judged",
)
MPI = _cause("mpi", BY_MPI, "MPI calls cost {much}")
OS = _cause("os", BY_OS, "system calls of the launching thread cost {much}")
START_UP = _cause("start_up", BY_HOST, "start-up, which is paid once, costs {much}")
UNATTRIBUTED = _cause("unattributed", UNKNOWN, "for {much} the trace does not record what was launched when")
PROFILER = _cause("profiler", UNKNOWN, "the profiler itself costs {much}")
COMMUNICATION = _cause("communication", BY_COMMUNICATION, "communication that no computation covers", idle=False)
IMBALANCE = _cause("imbalance", BY_IMBALANCE, "waiting for ranks that have more to compute", idle=False)
MEMCPY = _cause("memcpy", BY_MEMCPY, "memory copies that no computation covers", idle=False)
MEMSET = _cause("memset", BY_MEMCPY, "memsets that no computation covers", idle=False)
TURNAROUND = _cause("turnaround", UNKNOWN, "the hardware's hand-over from one operation to the next", idle=False)

FAMILIES: dict[str, list[str]] = {}
"""The causes that `bound_by` calls the same, together; the unknown ones each for itself."""
for _one in CAUSES.values():
    FAMILIES.setdefault(_one.name if _one.bound is UNKNOWN else _one.bound_by, []).append(_one.name)

CATEGORIES = (
    *(
        BY_COMPUTE.name,
        COMMUNICATION.name,
        IMBALANCE.name,
        MEMCPY.name,
        INPUT.name,
        HOST.name,
        LAUNCH.name,
        SYNCHRONIZATION.name,
    ),
    *(MEMORY_MANAGEMENT.name, DEPENDENCY.name, QUEUED.name, MPI.name, OS.name, START_UP.name),
    *("gaps", "recording", "health"),
)
"""What the time that a rule claims was lost to; the last three say nothing of it."""


def bound_by_words(bound_by: str) -> str:
    """What bounds a run, in words; one that only a later version knows, by its name."""
    bound = BOUNDS.get(bound_by)
    return bound.words or bound.name if bound else bound_by
