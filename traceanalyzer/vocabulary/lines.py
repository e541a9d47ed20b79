"""The ledger's lines: what each nanosecond of a GPU's window may be on, each one row with all its words.

Their order here is that of the tables and of precedence: what computes is never on a later line, and what is idle is on the line of its
cause.
"""

from __future__ import annotations

from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary import losses
from traceanalyzer.vocabulary.losses import Cause

IDLE_PREFIX = "idle."


@dataclass(frozen=True)
class Line:
    """One line of the ledger.

    `name` is what tables and results call it; `words` what labels do, `meaning` is a clause that explains it, `share` what the time on
    it is, as sentences have it. `step` is what a slow step has more of, where `words` do not say it; `doing` what a rank does
    meanwhile that others wait for, with {more} for how much; none where that says nothing. `loss` is what takes the time as long as no
    rule knows better: a cause of the verdict; none where nothing is lost.
    """

    name: str
    words: str
    meaning: str
    loss: Cause | None
    share: str
    doing: str | None = None
    step: str | None = None

    @property
    def is_idle(self) -> bool:
        return self.name.startswith(IDLE_PREFIX)

    @property
    def cause(self) -> str:
        """The name without what tells that it is idle: why a GPU is idle, in the tables of gaps."""
        return self.name.removeprefix(IDLE_PREFIX)

    @property
    def column(self) -> str:
        """Its column in tables that have one a line, in ns."""
        return column(self.name)

    @property
    def lost_to(self) -> str:
        """What takes its time, in the verdict: the name of a cause, or "compute"."""
        return self.loss.name if self.loss else self.name


LINES: dict[str, Line] = {}
"""By name, in their order."""


def _line(
    name: str,
    words: str,
    meaning: str,
    loss: Cause | None,
    share: str,
    doing: str | None = None,
    step: str | None = None,
) -> Line:
    return LINES.setdefault(name, Line(name, words, meaning, loss, share, doing, step))


def _idle(
    cause: str, words: str, meaning: str, loss: Cause, share: str, doing: str | None = None, step: str | None = None
) -> Line:
    return _line(IDLE_PREFIX + cause, words, meaning, loss, share, doing, step)


COMPUTE = _line("compute", "compute", "a compute kernel was running", None, "kernels compute", "computes {more}")
EXPOSED_COMMUNICATION = _line(
    "exposed_communication",
    "exposed communication",
    "communication that no compute hid",
    losses.COMMUNICATION,
    "only communication runs",
    "is busy {more} with other communication",
    "communication",
)
EXPOSED_MEMCPY = _line(
    "exposed_memcpy",
    "exposed copies",
    "copies that nothing else hid",
    losses.MEMCPY,
    "only copies run",
    "copies memory {more}",
    "copies",
)
EXPOSED_MEMSET = _line(
    "exposed_memset",
    "exposed memsets",
    "memsets that nothing else hid",
    losses.MEMSET,
    "only memsets run",
    "sets memory {more}",
    "memsets",
)
TURNAROUND = _idle(
    "turnaround",
    "turnaround",
    "the hardware's hand-over between operations",
    losses.TURNAROUND,
    "the hardware's hand-over between operations",
)
DEPENDENCY = _idle(
    "dependency",
    "dependency",
    "launched, but waiting for another stream or device",
    losses.DEPENDENCY,
    "waiting for another stream or device",
    "stands idle {more} waiting for another stream or device",
)
QUEUED = _idle(
    "queued",
    "queued",
    "launched, and nothing recorded says why it did not run",
    losses.QUEUED,
    "launched work that did not run, with nothing recorded that says why",
    "stands idle {more} with work launched, for reasons not recorded",
    "launched work that did not run, for reasons not recorded",
)
LAUNCH_LATENCY = _idle(
    "launch_latency",
    "launch latency",
    "from the launch call to the kernel's start",
    losses.LAUNCH,
    "launches that arrive late",
    "stands idle {more} while kernels are launched",
)
INPUT = _idle(
    "input",
    "input",
    "the launching thread waited for the data loader",
    losses.INPUT,
    "the data loader",
    "stands idle {more} because its next batch is not ready",
    "waiting for input",
)
MEMORY_MANAGEMENT = _idle(
    "memory_management",
    "memory management",
    "memory was being allocated or freed",
    losses.MEMORY_MANAGEMENT,
    "allocating and freeing memory",
    "stands idle {more} while its host allocates memory",
)
SYNCHRONIZATION = _idle(
    "synchronization",
    "synchronization",
    "the host had waited for the GPU",
    losses.SYNCHRONIZATION,
    "the host waiting for the GPU before it goes on",
    "stands idle {more} after its host waited for it",
)
MPI = _idle(
    "mpi",
    "MPI",
    "the launching thread was in an MPI call",
    losses.MPI,
    "waiting in MPI calls",
    "stands idle {more} while its host is in MPI calls",
    "MPI calls",
)
OS = _idle(
    "os",
    "system calls",
    "the launching thread was in a system call",
    losses.OS,
    "system calls of the launching thread",
    "stands idle {more} while its host is in system calls",
    "system calls",
)
HOST_WORK = _idle(
    "host_work",
    "host work",
    "the launching thread was busy elsewhere",
    losses.HOST,
    "work on the host between launches",
    "stands idle {more} while its host is at work",
)
HOST_UNTRACED = _idle(
    "host_untraced",
    "host untraced",
    "no call or range was recorded on the launching thread",
    losses.HOST_UNTRACED,
    "host time in which no call or range was recorded",
    "stands idle {more} while its host is in no call or range that was recorded",
    "host time without a recorded call or range",
)
PROFILER = _idle(
    "profiler",
    "profiler",
    "the profiler's own overhead",
    losses.PROFILER,
    "the profiler itself",
    "stands idle {more} while the profiler itself is at work",
)
UNATTRIBUTED = _idle(
    "unattributed",
    "unattributed",
    "no launch record says why",
    losses.UNATTRIBUTED,
    "launches that were not recorded",
    step="idle time without a launch record",
)

LEDGER_LINES = tuple(LINES)
EXPOSED_WAIT = Line(
    "exposed_wait",
    "exposed waiting",
    "communication that no compute hid, in which another rank had not arrived yet",
    losses.COMMUNICATION,
    "only communication runs that waits for another rank",
)
EXPOSED_TRANSFER = Line(
    "exposed_transfer",
    "exposed transfer",
    "the rest of the communication that no compute hid; what has no counterpart on other ranks counts as that",
    losses.COMMUNICATION,
    "only communication runs that does not wait",
)
PARTS = {EXPOSED_COMMUNICATION.name: (EXPOSED_WAIT, EXPOSED_TRANSFER)}
"""What a line is made of where that is told, which takes the traces of several ranks. The parts add up to the line."""
_PARTS = {part.name: part for parts in PARTS.values() for part in parts}
BUSY_LINES = tuple(line.name for line in LINES.values() if not line.is_idle)
IDLE = {line.cause: line for line in LINES.values() if line.is_idle}
"""The idle lines by cause, in their order."""
IDLE_CAUSES = tuple(IDLE)


def column(line: str) -> str:
    """The column of a ledger line in tables that have one a line."""
    return line.replace(".", "_")


def idle_line(cause: str | None) -> str:
    """The name of the ledger line of an idle cause."""
    return f"{IDLE_PREFIX}{cause}"


def is_idle(line: str) -> bool:
    """Whether nothing runs on the GPU on this line, which may be one of a later version."""
    return line.startswith(IDLE_PREFIX)


def cause_of_line(line: str) -> str:
    """Why the GPU is idle on this line; any other keeps its name."""
    return line.removeprefix(IDLE_PREFIX)


def line_words(line: str) -> str:
    """A line of the ledger in words; one that only a later version knows, nearly so."""
    words = cause_words(cause_of_line(line))
    return f"idle: {words}" if is_idle(line) else words


def cause_words(cause: str) -> str:
    """A cause of idle time, or any other line, in words."""
    known = IDLE.get(cause) or LINES.get(cause) or _PARTS.get(cause)
    return known.words if known else cause.replace("_", " ")


def step_words(line: str) -> str:
    """What a step has more of that is longer by this line."""
    known = LINES.get(line)
    return known.step if known and known.step else cause_of_line(line).replace("_", " ")
