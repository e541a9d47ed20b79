"""Renews all that is made of code and held by a test: `make generated`, or one with `python -m MODULE`."""

from __future__ import annotations

import runpy

from tests.support.places import CORPUS

MODULES = (
    "tests.house.test_rooms",  # docs/rooms.md, the rooms in docs/architecture.md
    "tests.result.test_schema",  # docs/*.schema.json of result, baseline, comparison and check
    "tests.engine.test_rule_schema",  # docs/rule.schema.json
    "tests.engine.test_rules_page",  # the lists in docs/rules.md
    "tests.budgets.test_check_page",  # the tables in docs/budgets.md
    "tests.ingest.test_kinds_table",  # the kinds of files in docs/formats.md
    "tests.analysis.test_findings",  # tests/golden
)
OF_THE_CORPUS = (
    "tests.ingest.test_formats_table",  # what is read of files of others, in docs/formats.md
    "tests.result.test_pairs_table",  # what comparing pairs gives, in docs/compare.md
    "tests.engine.test_savings_table",  # predictions, in docs/savings.md
    "tests.engine.test_unprofiled_table",  # steps without the profiler, in docs/savings.md
)

if __name__ == "__main__":
    for module in (*MODULES, *(OF_THE_CORPUS if CORPUS.exists() else ())):
        print(module)
        runpy.run_module(module, run_name="__main__")
    if not CORPUS.exists():
        print(f"left as they are, for want of the corpus: {', '.join(OF_THE_CORPUS)}")
