"""A watcher under test judges in this process, which is quicker; the test in which it is killed is another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.watch.scene import Scene
from traceanalyzer.watch import watching


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    def here(work: Callable[..., Any], *arguments: Any) -> Any:
        return work(*arguments)

    monkeypatch.setattr(watching, "in_own_process", here)
    return Scene(tmp_path)
