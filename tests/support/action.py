"""A stand-in for a GitHub runner: runs the shell of action.yml as its steps would, and reads what the runner reads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "ci" / "action.sh"
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
TOOLS = Path(sys.executable).parent
_INPUT = re.compile(r"\$\{\{ inputs\.([\w-]+) \}\}")
_ISSUED = re.compile(r"::(?P<name>[\w-]+)[^:]*::(?P<text>.*)")


def check_valid(path: Path, schema: str, *options: str) -> None:
    """Hold a file against one of the schemas that check-jsonschema brings along."""
    done = CliRunner().invoke(check_jsonschema, ["--builtin-schema", f"vendor.{schema}", *options, str(path)])
    assert done.exit_code == 0, done.output


def step(command: str) -> dict[str, Any]:
    """The step of action.yml that calls the script with `command`."""
    (found,) = [one for one in ACTION["runs"]["steps"] if one.get("run", "").endswith(f'action.sh" {command}')]
    return found


@dataclass(frozen=True)
class Ran:
    """One run: what it ended with, what it printed, and what the runner would make of it."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str
    commands: list[tuple[str, str]]
    """The workflow commands (name, text) that the runner obeys; those within stop-commands are text."""


class Runner:
    """A workspace under `folder`, with the files and folders of a job."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "work space"
        self.temp = folder / "temp"
        self.summary, self.outputs = folder / "summary", folder / "outputs"
        for place in (self.workspace, self.temp):
            place.mkdir(parents=True, exist_ok=True)

    def run(self, command: str, env: Mapping[str, str], path: str | None = None) -> Ran:
        """Run one command of the script; `path` is the PATH, with the tool under test on it unless said otherwise."""
        self.outputs.write_text("")
        whole = {
            "PATH": path or f"{TOOLS}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.temp),
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_OUTPUT": str(self.outputs),
            **env,
        }
        done = subprocess.run(
            ["bash", str(SCRIPT), command], check=False, capture_output=True, text=True, env=whole, cwd=self.workspace
        )
        log = done.stdout + done.stderr
        said = self.summary.read_text() if self.summary.exists() else ""
        return Ran(done.returncode, log, read_outputs(self.outputs.read_text()), said, obeyed(done.stdout))

    def analyse(self, path: str | None = None, **inputs: str) -> Ran:
        """Run the step that analyses, with inputs by name (`fail_on`), all others as action.yml has them; nothing is installed."""
        given = {name: str(declared.get("default", "")) for name, declared in ACTION["inputs"].items()}
        given |= {"install": "false"} | {name.replace("_", "-"): value for name, value in inputs.items()}
        env = {name: _INPUT.sub(lambda found: given[found[1]], value) for name, value in step("analyse")["env"].items()}
        return self.run("analyse", env, path)

    def gate(self, ran: Ran) -> int:
        """What the last step of the action ends with."""
        return self.run("gate", {"EXIT_CODE": ran.outputs["exit-code"]}).code


def read_outputs(text: str) -> dict[str, str]:
    """GITHUB_OUTPUT as the runner reads it: NAME<<END, lines, END; or NAME=VALUE."""
    found, lines = {}, iter(text.split("\n"))
    for line in lines:
        name, heredoc, end = line.partition("<<")
        if heredoc and "=" not in name:
            value: list[str] = []
            for part in lines:
                if part == end:
                    break
                value.append(part)
            found[name] = "\n".join(value)
        elif line:
            name, _, text = line.partition("=")
            found[name] = text
    return found


def obeyed(log: str) -> list[tuple[str, str]]:
    """The commands in a log that the runner carries out."""
    stopped, found = None, []
    for line in log.splitlines():
        command = _ISSUED.match(line.lstrip())
        if command is None or (stopped and command["name"] != stopped):
            continue
        if command["name"] == stopped:
            stopped = None
        elif command["name"] == "stop-commands":
            stopped = command["text"]
        else:
            found.append((command["name"], command["text"]))
    return found
