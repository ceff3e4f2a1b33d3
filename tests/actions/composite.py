"""A runner of a composite action's steps, as small as our action needs: bash, env, outputs, conditions, the summary."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import yaml

EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
NAME = re.compile(r"'[^']*'|[a-z]\w*(?:[.-]\w+)+")


@dataclass
class Done:
    """What a job with the action did."""

    codes: list[int] = field(default_factory=list)  # of the steps that ran bash
    uploads: list[dict[str, str]] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    log: str = ""
    summary: str = ""


def run_action(
    folder: Path, given: dict[str, str], github: dict[str, str], temporary: Path, **environment: str
) -> Done:
    """Run the action of a folder with inputs; `github` has the values of its context by their dotted names."""
    action, done = yaml.safe_load((folder / "action.yml").read_text(encoding="utf-8")), Done()
    known = dict(github)

    def value(expression: str) -> str:
        return known.get(expression, "")

    def filled(text: object) -> str:
        return EXPRESSION.sub(lambda match: value(match[1]), str(text))

    def applies(condition: str) -> bool:
        python = NAME.sub(lambda match: match[0] if match[0][0] == "'" else repr(value(match[0])), condition)
        always = "always()" in python
        return (always or not any(done.codes)) and bool(eval(python.replace("always()", "True").replace("&&", "and")))

    known |= {
        f"inputs.{name}": filled(given.get(name, table.get("default", ""))) for name, table in action["inputs"].items()
    }
    files = {name: temporary / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for step in action["runs"]["steps"]:
        if not applies(step.get("if", "True")):
            continue
        if "uses" in step:
            done.uploads.append({"uses": step["uses"]} | {name: filled(text) for name, text in step["with"].items()})
            continue
        assert step["shell"] == "bash"
        for file in files.values():
            file.touch()
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            env={**os.environ, **environment, **{name: filled(text) for name, text in step.get("env", {}).items()}}
            | {name: str(file) for name, file in files.items()}
            | {"GITHUB_ACTION_PATH": str(folder), "RUNNER_TEMP": str(temporary)},
            cwd=temporary / "repository",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        done.codes.append(ran.returncode)
        done.log += ran.stdout
        lines = [line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines()]
        known |= {f"steps.{step.get('id', '')}.outputs.{name}": text for name, text in lines}
    done.outputs = {name: filled(table["value"]) for name, table in action["outputs"].items()}
    done.summary = files["GITHUB_STEP_SUMMARY"].read_text()
    return done
