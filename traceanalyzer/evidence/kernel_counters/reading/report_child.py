"""Runs alone: a report of Nsight Compute to one line of JSON a launch, through NVIDIA's package ncu-report.

Arguments: the folder of the package, the report, and the most bytes of memory, seconds of CPU, and bytes of output. A library in
another language reads a file of anybody's here, so it is kept from what it does not need.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

WANTED = re.compile(
    r"(gpu__time_duration|gpu__dram_throughput|dram__|sm__|smsp__|lts__|l1tex__throughput|l1tex__t_sector_hit_rate|launch__|derived__local"
    r"|gpu__compute_memory_throughput|device__attribute_(display_name|multiprocessor_count|compute_capability))"
)
KINDS = {1: "INF", 2: "OPT", 3: "WRN", 4: "ERR"}
SCOPES = {1: "local", 2: "global"}


def limit(memory: int, seconds: int, output: int) -> None:
    """Keep this process from more than that, where the system can."""
    try:
        import resource
    except ImportError:
        return
    for which, most in (("RLIMIT_AS", memory), ("RLIMIT_CPU", seconds), ("RLIMIT_FSIZE", output), ("RLIMIT_CORE", 0)):
        resource.setrlimit(getattr(resource, which), (most, most))


def metrics_of(action: Any) -> dict[str, tuple[float | str, str]]:
    """Value and unit of each metric that is a number, or a name."""
    found = {}
    for name in action.metric_names():
        if not WANTED.match(name) or (metric := action.metric_by_name(name)) is None:
            continue
        try:
            value = metric.value()
        except Exception:
            continue
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            found[name] = (value, metric.unit() or "")
    return found


def rules_of(action: Any) -> list[dict[str, object]]:
    """What the rules say of a launch, as far as this release of the package tells."""
    try:
        results = action.rule_results_as_dicts()
    except Exception:
        return []
    found = []
    for rule in results:
        message, gain = rule.get("rule_message") or {}, rule.get("speedup_estimation") or {}
        if not message.get("message"):
            continue
        kind = message.get("type")
        scope = gain.get("type")
        found.append(
            {
                "section": rule.get("section_identifier"),
                "name": rule.get("rule_identifier"),
                "kind": KINDS.get(int(kind) if kind is not None else 0, ""),
                "message": message["message"],
                "scope": SCOPES.get(int(scope), "") if scope is not None else "",
                "estimate": gain.get("speedup", ""),
            }
        )
    return found


def main() -> None:
    """Print every launch of the report."""
    folder, report, *limits = sys.argv[1:]
    memory, seconds, output = map(int, limits)
    limit(memory, seconds, output)
    sys.path.append(folder)
    import ncu_report  # type: ignore[import-not-found]

    context = ncu_report.load_report(report)
    if context is None:
        raise SystemExit("no report")
    for number in range(context.num_ranges()):
        part = context.range_by_idx(number)
        for place in range(part.num_actions()):
            action = part.action_by_idx(place)
            try:
                name = action.name(action.NameBase_DEMANGLED)
            except Exception:
                name = action.name()
            line = {"name": name, "metrics": metrics_of(action), "rules": rules_of(action)}
            sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
