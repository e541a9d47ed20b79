"""The Grafana dashboard: as Grafana has them, over metrics that exist, and each of its queries gives data in a real Prometheus."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import combinations
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from tests.history.nights import host_longer, night
from tests.support.action import ROOT
from traceanalyzer.render.history.trend_prometheus import render_trend_metrics
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.result.history.trend import STATES, trend_of

DASHBOARD: dict[str, Any] = json.loads((ROOT / "docs/recipes/grafana-dashboard.json").read_text())
SCHEMA = json.loads((Path(__file__).parent / "dashboard.schema.json").read_text())
QUERIES = [(panel["title"], one["expr"]) for panel in DASHBOARD["panels"] for one in panel["targets"]]
VARIABLES = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
SAMPLE = re.compile(r"^(\w+)\{(.*)\} \S+$", re.M)


def entries() -> list[Entry]:
    """Two programs, of which one became slower, and a capture that could not be judged."""
    random = np.random.default_rng(1)
    found = []
    for number in range(20):
        for project in ("lamp", "sail"):
            entry = night(number, random)
            entry = replace(
                entry, id=f"{project}{entry.id}", labels={**entry.labels, "project": project, "config": "8gpu"}
            )
            entry = host_longer(entry, 0.1) if project == "sail" and number > 10 else entry
            found.append(replace(entry, unit_ns=sum(entry.lines.values())))
    return [*found, replace(found[-1], id="unjudged", unit=None, unit_ns=None, unjudged="no GPU work")]


METRICS = render_trend_metrics(trend_of(entries()), entries())
LABELS: dict[str, set[str]] = {}
for name, labels in SAMPLE.findall(METRICS):
    LABELS.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))


def test_it_is_a_dashboard():
    jsonschema.Draft202012Validator(SCHEMA).validate(DASHBOARD)
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in DASHBOARD["panels"]:
        refs = [one["refId"] for one in panel["targets"]]
        assert len(set(refs)) == len(refs)
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
        assert panel.get("repeat") is None or panel["repeat"] in VARIABLES
    for one, other in combinations((panel["gridPos"] for panel in DASHBOARD["panels"]), 2):
        assert any(
            a[at] + a[size] <= b[at] for at, size in (("x", "w"), ("y", "h")) for a, b in ((one, other), (other, one))
        ), "panels overlap"


def test_every_metric_and_label_is_one_that_is_written():
    asked = set()
    for _, query in [*QUERIES, *(("", one["definition"]) for one in VARIABLES.values() if "definition" in one)]:
        for name, matchers in re.findall(r"(traceanalyzer_\w+)(?:\{([^}]*)\})?", query):
            asked.add(name)
            assert set(re.findall(r"(\w+)=~?\"", matchers)) <= LABELS[name]
        for grouped in re.findall(r"by \(([^)]*)\)", query):
            assert {one.strip() for one in grouped.split(",")} <= set.union(*LABELS.values())
    assert asked == set(LABELS), "each metric is on the dashboard"
    for panel in DASHBOARD["panels"]:
        for one in panel["targets"]:
            names = set(re.findall(r"(traceanalyzer_\w+)", one["expr"]))
            assert set(re.findall(r"\{\{(\w+)\}\}", one["legendFormat"])) <= set.union(
                *(LABELS[name] for name in names)
            )


def test_variables_are_used_and_known():
    text = json.dumps(DASHBOARD["panels"])
    used = set(re.findall(r"\$\{?(\w+)", text))
    assert used == set(VARIABLES)
    assert VARIABLES["datasource"]["query"] == "prometheus"


def test_every_state_has_a_number_and_a_word():
    (panel,) = (one for one in DASHBOARD["panels"] if one["type"] == "state-timeline")
    numbers = dict(re.findall(r'(\d) \* max by [^{]*\{[^}]*state="(\w+)"', panel["targets"][0]["expr"]))
    (mapping,) = panel["fieldConfig"]["defaults"]["mappings"]
    assert sorted(numbers.values()) == sorted(STATES)
    assert {number: state.replace("_", " ") for number, state in numbers.items()} == {
        number: one["text"] for number, one in mapping["options"].items()
    }


class _Metrics(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = METRICS.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Be quiet."""


@contextmanager
def served() -> Iterator[int]:
    """The metrics on a port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Metrics)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def prometheus(binary: str, folder: Path, scraped: int) -> Iterator[str]:
    """A Prometheus that scrapes a port; its address."""
    config = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "nights", "static_configs": [{"targets": [f"127.0.0.1:{scraped}"]}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    address = f"127.0.0.1:{free_port()}"
    command = [
        binary,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as running:
        try:
            yield f"http://{address}"
        finally:
            running.terminate()


def asked(address: str, query: str) -> list[dict[str, Any]]:
    """What a query gives now."""
    url = f"{address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        said = json.load(answer)
    assert said["status"] == "success", said
    return list(said["data"]["result"])


def scraped_once(address: str) -> bool:
    with suppress(OSError):
        return bool(asked(address, "traceanalyzer_history_captures"))
    return False


def test_every_query_gives_data_in_a_real_prometheus(tmp_path):
    binary = shutil.which("prometheus")
    if binary is None:
        pytest.skip("no prometheus here")
    with served() as port, prometheus(binary, tmp_path, port) as address:
        patience = 240
        while not scraped_once(address) and patience:
            time.sleep(0.5)
            patience -= 1
        assert patience, (tmp_path / "log").read_text()
        for title, query in QUERIES:
            assert "$" in query
            everything = query.replace("$project", ".*").replace("$config", ".*")
            assert asked(address, everything), title
            assert not asked(address, query.replace("$project", "nobody").replace("$config", ".*")), title
        states = asked(address, QUERIES[0][1].replace("$project", ".*").replace("$config", ".*"))
        assert {one["metric"]["project"]: one["value"][1] for one in states} == {"lamp": "1", "sail": "6"}
        parts = [f"sum by (project) (traceanalyzer_history_{name}_seconds)" for name in ("ledger", "unit")]
        assert len(asked(address, f"abs({' - '.join(parts)}) < 1e-6")) == 2
