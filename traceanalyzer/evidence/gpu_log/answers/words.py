"""Figures of a GPU's load in words, for the sentences of rules and headlines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from traceanalyzer.units import format_bytes, format_count, format_duration, format_share

FULL_MEAN, FULL_MIDDLE = 0.8, 0.95
"""A GPU is fully used from this mean use over its load on, if the median is this too: pauses of a whole run are few."""
ENOUGH = 10
"""So many samples under load say how a GPU did; of fewer only that there are few."""
HELD = 0.5
"""What holds clocks down in at least half of the samples is said of the GPU."""
Row = Mapping[str, Any]


def sentences(row: Row) -> dict[str, str | None]:
    """The texts of `gpu_load` of its figures."""
    return {
        "said_processes": f"{row['processes']} processes use" if (row["processes"] or 0) > 1 else None,
        "said_power": power_words(row),
        "said_fault": fault_words(row),
        "said_other": other_words(row),
        "said_cost": cost_words(row),
        "said_link": link_words(row),
        "said_load": load_words(row),
        "said_clock": _clock_or_power(row),
    }


def number(value: float) -> str:
    """Without decimals."""
    return format_count(round(value))


def clock_words(row: Row) -> str | None:
    """The median clock of the highest: "a median of 1,395 of 1,980 MHz"."""
    if row["clock"] is None:
        return None
    if row["clock_max"] is None:
        return f"a median of {number(row['clock'])} MHz"
    seen = "" if row["clock_max_told"] else " (the highest in the log)"
    return f"a median of {number(row['clock'])} of {number(row['clock_max'])} MHz{seen}"


def power_at(row: Row) -> str:
    if row["power"] is None:
        return ""
    limit = "" if row["power_limit"] is None else f" of {number(row['power_limit'])}"
    return f" at {number(row['power'])}{limit} W"


def power_words(row: Row) -> str | None:
    clock = clock_words(row)
    if clock is None or not row["by_power"]:
        return None
    share = format_share(row["by_power"])
    verb = "falls to" if row["clock_max"] is not None else "is held at"
    said = f"{verb} {clock}{power_at(row)} with reason 0x4 (software power cap) in {share} of the samples under load"
    if lowered(row):
        default = number(row["power_limit_default"])
        return f"{said}: power-capped, by a limit below the {default} W that this GPU has unless another is set"
    return f"{said}: power-capped, which is normal for such load"


def lowered(row: Row) -> bool:
    limit, default = row["power_limit"], row["power_limit_default"]
    return limit is not None and default is not None and limit < 0.97 * default


def fault_words(row: Row) -> str | None:
    if not row["faults"]:
        return None
    causes = [
        (row["by_heat"], "heat (thermal slowdown, 0x20 or 0x40)"),
        (row["by_brake"], "the power brake of the hardware (0x80)"),
        (row["by_slowdown"], "a slowdown of the hardware (0x8)"),
    ]
    named = " and ".join(words for share, words in causes if share)
    then = (
        ""
        if row["fault_clock"] is None or not row["clock_max"]
        else f", at a median of {number(row['fault_clock'])} of {number(row['clock_max'])} MHz"
    )
    heat = "" if row["fault_temperature"] is None else f" and up to {number(row['fault_temperature'])} °C"
    return f"is held down by {named} in {format_share(row['faults'])} of the samples under load{then}{heat}"


def other_words(row: Row) -> str | None:
    clock = clock_words(row)
    if clock is None:
        return None
    if (row["by_setting"] or 0) >= HELD:
        return f"runs at {clock} under load because clocks are set, or kept alike on several GPUs (reasons 0x2, 0x10 or 0x100)"
    if row["reasons_known"]:
        return f"runs at {clock} under load, and the log names no reason"
    limit = row["power_limit"]
    if row["power"] is not None and limit and row["power"] >= 0.95 * limit:
        normal = "it is at its limit of power, which is normal for such load; the log has no reasons"
        return f"runs at {clock} under load{power_at(row)}: {normal}"
    return f"runs at {clock} under load{power_at(row)}; the log does not say what holds it down"


def cost_words(row: Row) -> str | None:
    if not row["faster"]:
        return None
    if row["step"] is not None and row["step_saving"]:
        step, saving = format_duration(row["step"]), format_duration(row["step_saving"])
        return (
            f"At the highest clock a step of {step} could take up to {saving} less "
            "where its compute is bound by this clock, and nothing less where it is bound by memory"
        )
    less = format_share(row["faster"])
    return f"At the highest clock, work that is bound by it would take up to {less} less time, and other work no less"


def link_words(row: Row) -> str | None:
    parts = []
    if row["link_gen"] is not None and row["link_gen_max"] is not None and row["link_gen"] < row["link_gen_max"]:
        parts.append(f"generation {number(row['link_gen'])} of {number(row['link_gen_max'])}")
    if (
        row["link_width"] is not None
        and row["link_width_max"] is not None
        and row["link_width"] < row["link_width_max"]
    ):
        parts.append(f"{number(row['link_width'])} of {number(row['link_width_max'])} lanes")
    if not parts:
        return None
    told = (row["link_gen_told"] or row["link_width_told"]) or None
    return f"runs at {' and '.join(parts)} under load" + ("" if told else ", less than it did at other times")


def load_words(row: Row) -> str:
    """ "is fully used (99%) …", without the name of the GPU before it and a stop behind it."""
    if row["samples"] == 1:
        now = (
            ""
            if row["utilization_whole"] is None
            else f" ({format_share(row['utilization_whole'])} of the time before)"
        )
        return f"{'was busy' if row['load_samples'] else 'was idle'}{now} at the only moment of its log"
    if not row["load_samples"]:
        return "is idle in the whole log: never busy for a tenth of a sample's time"
    if row["load_samples"] < ENOUGH:
        few = f"{row['load_samples']} {'sample' if row['load_samples'] == 1 else 'samples'} of {format_count(row['samples'])}"
        return f"is busy {format_share(row['utilization_whole'])} of the time of its log, and under load in {few}"
    mean, middle = row["utilization"], row["utilization_middle"]
    full = mean >= FULL_MEAN and middle >= FULL_MIDDLE
    used = (
        f"is fully used ({format_share(middle)})"
        if full
        else f"is busy {format_share(mean)} of the time while it has work"
    )
    return ", ".join([used, *_more(row)])


def _clock_or_power(row: Row) -> str | None:
    clock = clock_words(row)
    if clock is None:
        return None if row["power"] is None else f"power{power_at(row)}"
    normal = (row["by_power"] or 0) >= HELD and not lowered(row)
    return f"its SM clock at {clock}{power_at(row)}{' with the software power cap, which is normal' if normal else ''}"


def _more(row: Row) -> Iterator[str]:
    if (clock := _clock_or_power(row)) is not None:
        yield clock
    if row["memory_share"] is not None:
        yield f"{format_share(row['memory_share'])} of its memory in use ({format_bytes(row['memory_used'])})"
