"""A fleet as plain text: what costs most GPU hours, and which hosts and GPUs are slow."""

from __future__ import annotations

from traceanalyzer.render.lines import page, wrap
from traceanalyzer.result.history.fleet import Cost, Fleet
from traceanalyzer.result.history.slow import SlowGpu
from traceanalyzer.units import format_count, format_share

MOST = 20


def render_fleet(fleet: Fleet) -> str:
    """The costs, the largest first, then the slow hosts and GPUs."""
    lines = wrap(headline(fleet), "", "")
    if fleet.costs:
        lines += ["", f"  {'GPU hours':>10}  {'share':>6}  {'captures':>8}  {'project':<20}{'host':<16}finding"]
        lines += [_row(one, fleet) for one in fleet.costs[:MOST]]
        left = len(fleet.costs) - MOST
        lines += [f"  and {left} more"] if left > 0 else []
    lines += ["", "SLOW HOSTS" if fleet.slow_hosts else "SLOW HOSTS: none stands out"]
    for slow in fleet.slow_hosts:
        said = (
            f"{slow.host} takes {format_share(slow.share)} more time for {slow.series} ({slow.captures} captures) than other "
            f"hosts do ({slow.others})"
        )
        lines += wrap(said, "  ", "    ")
    lines += ["", "SLOW GPUS" if fleet.slow_gpus else "SLOW GPUS: none stands out"]
    for gpu in fleet.slow_gpus:
        lines += wrap(_slow_gpu(gpu), "  ", "    ")
    return page(lines)


def _slow_gpu(slow: SlowGpu) -> str:
    number = "" if slow.device is None else f" {slow.device}"
    called = f"GPU{number} of {slow.host}" if slow.host else f"GPU{number}"
    named = f"{called} ({slow.uuid})" if slow.uuid else called
    more = f"{named} takes {format_share(slow.share)} more time for"
    captures = f"({format_count(slow.captures)} captures)"
    if slow.beside:
        return f"{more} the same kernels of {slow.series} {captures} than the GPUs beside it"
    return f"{more} {slow.series} {captures} than other GPUs do ({format_count(slow.others)})"


def headline(fleet: Fleet) -> str:
    """What costs most, and of what the hours are."""
    if not fleet.captures:
        return "No capture of that time could be judged."
    of = f"{_hours(fleet.gpu_hours)} GPU hours of {format_count(fleet.captures)} captures"
    if fleet.told_by_label < fleet.captures:
        of += " (of jobs that are not labelled with gpu_hours only what was recorded)"
    if not fleet.costs:
        return f"Of {of} no finding costs any."
    rules: dict[str, float] = {}
    for one in fleet.costs:
        rules[one.rule] = rules.get(one.rule, 0.0) + one.gpu_hours
    most = max(sorted(rules), key=rules.__getitem__)
    title = next(one.title for one in fleet.costs if one.rule == most)
    return f"{title} ({most}) costs {_hours(rules[most])} of {of}."


def _hours(hours: float) -> str:
    return f"{hours:,.3g}"


def _row(one: Cost, fleet: Fleet) -> str:
    share = format_share(one.gpu_hours / fleet.gpu_hours) if fleet.gpu_hours else "-"
    where = f"{(one.project or '-')[:19]:<20}{(one.host or '-')[:15]:<16}"
    return f"  {_hours(one.gpu_hours):>10}  {share:>6}  {one.captures:>8}  {where}{one.rule} {one.title}"
