"""Settings for the whole suite."""

import os

import pytest
from hypothesis import settings

from tests.support import results

# Speed is measured by benchmarks, never by a test: a slow machine must not fail one.
settings.register_profile("traceanalyzer", deadline=None)
settings.load_profile("traceanalyzer")


@pytest.fixture(scope="session", autouse=True)
def _shared_results(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The workers of one run share the results of traces: the folder of each lies in the run's own."""
    base = tmp_path_factory.getbasetemp()
    results.share((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "results")
