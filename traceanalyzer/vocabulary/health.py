"""The codes of the trace's health: what can be the matter with a recording. Its severity says how grave a note of one code is."""

from __future__ import annotations

from typing import Final, Literal

HealthCode = Literal["TRC001", "TRC002", "TRC003", "TRC004", "TRC005", "TRC006", "TRC007", "TRC008", "TRC009", "TRC010"]

NOT_ALL_READ: Final = "TRC001"
GPU_WORK_MISSING: Final = "TRC002"
PROFILER_ERRORS: Final = "TRC003"
PROFILER_COST: Final = "TRC004"
CLOCKS_DISAGREE: Final = "TRC005"
RANKS_IN_DOUBT: Final = "TRC006"
IMPOSSIBLE_TIMES: Final = "TRC007"
GRAPHS_HIDDEN: Final = "TRC008"
NOT_RECORDED: Final = "TRC009"
TOO_LITTLE: Final = "TRC010"

MEANING: dict[HealthCode, str] = {
    NOT_ALL_READ: "a part of the file is damaged, was mended, or was not read",
    GPU_WORK_MISSING: "work was launched, and its operations on the GPU are not in the recording",
    PROFILER_ERRORS: "the profiler reports that it lost records, or errors of its own",
    PROFILER_COST: "recording took so much of the host's time that the host looks slower than it is",
    CLOCKS_DISAGREE: "clocks disagree, of the host and its GPU or of two ranks",
    RANKS_IN_DOUBT: "files, ranks, processes or GPUs are missing, there twice, or cannot be told apart",
    IMPOSSIBLE_TIMES: "times that cannot be; these operations are kept and are not on the ledger",
    GRAPHS_HIDDEN: "what ran inside of CUDA graphs was recorded as a whole or not at all",
    NOT_RECORDED: "a kind of event was not recorded, left out at export, or cannot be used",
    TOO_LITTLE: "the recording holds too little of the run, or began or ended in the middle of its work",
}
