"""What a URL does and does not: which kinds are opened, whom a server may lead to, and what messages say of it."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.test_cli import refused, run
from tests.support.kineto import steady
from traceanalyzer.errors import InputError
from traceanalyzer.ingest.bytes.remote import remote_files
from traceanalyzer.ingest.registry import registry
from traceanalyzer.urls import SCHEMES, RemoteFolder, shown_place

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "url",
    [
        *("zip://a.json::http://host/a.zip", "simplecache::http://host/a", "filecache::s3://b/a", "s3://b/a::http://host/b"),
        *("reference://x", "github://o:r@main/a", "sftp://host/a", "ssh://host/a", "ftp://host/a", "git:///x", "dask://w/a", "data://x"),
        *("jupyter://host/a", "smb://host/a", "generic://a", "dir://a", "simplecache://a", "libarchive://a", "asynclocal:///etc", "foo://x"),
    ],
)  # fmt: skip
def test_only_files_and_buckets_are_opened(capsysbinary, url):
    for command in (["analyze", url], ["compare", url, url]):
        said = refused(capsysbinary, *command)
        # What begins with two colons is a path like any other.
        assert "are not opened; name a local path" in said or "no such file" in said
    with pytest.raises(InputError, match="are not opened"):
        RemoteFolder(url).read("x")


def test_every_kind_that_is_opened_is_known_to_fsspec():
    known = pytest.importorskip("fsspec.registry").known_implementations
    assert {*SCHEMES} - {"abfss"} <= {*known}  # that one comes with the package that speaks to it


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://user:s3cr3t@host/a.json", "https://host/a.json"),
        ("https://host/a.json?X-Amz-Signature=s3cr3t&x=1", "https://host/a.json"),
        ("s3://key:s3cr3t@bucket/run", "s3://bucket/run"),
        ("s3://bucket/run?.json", "s3://bucket/run?.json"),
        ("/data/a?b=c", "/data/a?b=c"),
    ],
)
def test_messages_hold_no_credentials_of_urls(url, said):
    assert shown_place(url) == said and shown_place(Path(url)) == said


class Server(ThreadingHTTPServer):
    """Serves a trace at /run.json.gz, and redirects whatever else is asked for to `goal` and the path's end."""

    goal = ""

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.asked = content, []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        place = self.path.partition("?")[0]
        if place == "/run.json.gz":
            self.send_response(200)
            self.send_header("Content-Length", str(len(self.server.content)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(self.server.content)
        elif place.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", f"{self.server.goal}{place.removeprefix('/to')}")
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.send_error(404)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    pytest.importorskip("aiohttp")
    content = gzip.compress(steady(4).text().encode(), mtime=0)
    both = Server(content), Server(content)
    yield both
    for one in both:
        one.shutdown()
        one.server_close()


def url(server: Server, path: str, host: str = "127.0.0.1") -> str:
    return f"http://{host}:{server.server_port}{path}"


def test_a_trace_behind_a_url_is_read_and_its_query_told_to_nobody(capsysbinary, servers):
    there = url(servers[0], f"/run.json.gz?sig={SECRET}").replace("http://", f"http://me:{SECRET}@")
    for form in ("text", "json"):
        code, out, err = run(capsysbinary, "analyze", there, "-f", form)
        assert code == 0, err
        assert SECRET not in out and "run.json.gz" in out
    assert any(SECRET in asked for asked in servers[0].asked)


def test_a_server_may_lead_to_another_of_its_own_files(capsysbinary, servers):
    for goal in ("", url(servers[0], "")):
        servers[0].goal = goal
        assert run(capsysbinary, "analyze", url(servers[0], "/to/run.json.gz"))[0] == 0


@pytest.mark.parametrize("goal", ["another port", "another name", "another scheme", "the cloud's own"])
def test_a_server_leads_to_no_other(capsysbinary, servers, goal):
    first, second = servers
    first.goal = {
        "another port": url(second, ""),
        "another name": url(first, "", "localhost"),
        "another scheme": url(first, "").replace("http:", "https:"),
        "the cloud's own": "http://169.254.169.254/latest",
    }[goal]
    said = refused(capsysbinary, "analyze", url(first, f"/to/run.json.gz?sig={SECRET}"))
    assert "it redirects to" in said and "not followed" in said and SECRET not in said
    assert second.asked == []
    with pytest.raises(InputError, match="not followed"):
        remote_files(url(first, "/to/run.json.gz"), registry(), None)


def test_errors_of_a_server_hold_no_credentials(capsysbinary, servers):
    said = refused(
        capsysbinary, "analyze", url(servers[0], f"/none.json?sig={SECRET}").replace("//", f"//me:{SECRET}@")
    )
    assert SECRET not in said and "/none.json" in said


def test_refusals_of_inputs_and_stores_hold_no_credentials(capsysbinary, servers, tmp_path):
    trace = str(steady(4).write(tmp_path / "run.json"))
    there, store = (
        url(servers[0], path).replace("//", f"//me:{SECRET}@") for path in ("/run.json.gz?sig=s3cr3t", "/run.store")
    )
    for words in (
        ["analyze", there, there],
        ["ingest", there, there, "-o", str(tmp_path / "s")],
        ["ingest", trace, "-o", f"{store}?sig={SECRET}"],
        ["ingest", trace, "-o", f"{store}/../x"],
        ["ingest", there, "-o", there],
        ["analyze", there, "--store", store],
    ):
        said = refused(capsysbinary, *words)
        assert SECRET not in said and "://127.0.0.1" in said


@pytest.mark.parametrize("baseline", ["http://host/b.json", "http:/host/b.json", "s3://bucket/b.json", "memory://b"])
@pytest.mark.parametrize("suffix", ["yaml", "toml"])
def test_budgets_ask_no_server(capsysbinary, monkeypatch, tmp_path, baseline, suffix):
    """A budgets file may come with a pull request of anybody."""
    monkeypatch.chdir(tmp_path)
    steady(4).write(tmp_path / "run.json")
    text = f"baseline: {baseline}\nbudgets: ['window <= 1.1 * baseline']\n"
    if suffix == "toml":
        text = f'[tool.traceanalyzer.check]\nbaseline = "{baseline}"\n'
    Path(f"b.{suffix}").write_text(text)
    said = refused(capsysbinary, "check", "run.json", "--config", f"b.{suffix}")
    assert "must be a path on this machine" in said
