"""airspeed velocity's results, which `asv publish` shows without benchmark code.

    results/benchmarks.json            what was measured: a benchmark for each group, its rows as values of a parameter
    results/MACHINE/machine.json
    results/MACHINE/COMMIT-ENV.json    the times

https://asv.readthedocs.io/en/latest/dev.html, versions 2, 1 and 2. Earlier exports into the same folder are
kept, but for the same groups at the same commit.
"""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from itertools import groupby
from typing import Any

import msgspec

from kit.errors import KitError
from kit.files import inside, name_of, read_limited
from kit.report.exports import FIGURES, Exported, json_bytes, named_rows

HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")  # whole: asv finds no commit by a part of its hash
COLUMNS = ("result", "params", "version", "started_at", "duration")
STEP = FIGURES[0]
# asv keeps the results of all commits in files of their own; benchmarks.json grows with the number of groups alone.
FILE_MAX_B = 64 << 20


def write(exported: Exported) -> dict[str, bytes]:
    """Return the files.

    Raises:
        KitError: the commit that was measured is not known.
    """
    commit = (exported.commit or "").lower()
    if not HASH.fullmatch(commit):
        wrong = (
            f"{exported.commit!r} is no commit" if commit else "asv shows results by commit, and this profile has none"
        )
        raise KitError(
            f"{exported.path}: {wrong}; give --commit HASH of what was measured, whole as `git rev-parse` prints it"
        )
    profile, identity = exported.profile, exported.profile.identity
    machine, environment = name_of(identity.host[:8] or identity.hardware_sha256[:8]), "steadykit"
    date_ms = round(1000 * datetime.fromisoformat(profile.created).timestamp())
    result_name = f"{machine}/{commit[:8]}-{environment}.json"
    benchmarks, earlier = _read(exported, "benchmarks.json") or {"version": 2}, _read(exported, result_name)
    results = dict(earlier.get("results", {}))
    for group, rows in groupby(named_rows(exported), lambda named: named[0]):
        listed = {name: row for _, name, row in rows}
        name = re.sub(r"[^A-Za-z0-9_]+", "_", group).strip("_")
        known = benchmarks.get(name, {}).get("params", [[]])[0]
        values = list(dict.fromkeys([*known, *map(repr, listed)]))
        version = hashlib.sha256(name.encode()).hexdigest()
        benchmarks[name] = {
            "code": group, "name": name, "param_names": ["row"], "params": [values], "pretty_name": group,
            "timeout": 60.0, "type": "time", "unit": "seconds", "version": version,
        }  # fmt: skip
        # What an export has no row of is null; asv shows nothing there.
        steps = [listed[row].value(STEP[1]) if (row := value[1:-1]) in listed else None for value in values]
        results[name] = [[None if ns is None else ns / 1e9 for ns in steps], [values], version, date_ms, None]
    facts = {
        "os": "os",
        "arch": "cpu.architecture",
        "cpu": "cpu.model",
        "num_cpu": "cpu.cores_logical",
        "ram": "memory_b",
    }
    about = {
        "machine": machine,
        "version": 1,
        **{key: str(identity.facts.get(fact) or "") for key, fact in facts.items()},
    }
    document = {
        "commit_hash": commit, "env_name": environment, "date": date_ms, "params": about, "python": "",
        "requirements": {}, "env_vars": {}, "result_columns": COLUMNS, "results": results, "durations": {},
        "version": 2,
    }  # fmt: skip
    files = {
        "benchmarks.json": benchmarks,
        f"{machine}/machine.json": about,
        result_name: document,
    }
    return {name: json_bytes(content) for name, content in files.items()}


def _read(exported: Exported, name: str) -> dict[str, Any]:
    """Return what an earlier export wrote into a file; nothing if there is none."""
    file = None if exported.into is None else inside(exported.into, name)
    if file is None or not file.exists():
        return {}
    try:
        return msgspec.json.decode(read_limited(file, FILE_MAX_B), type=dict[str, Any])
    except (OSError, msgspec.DecodeError) as error:
        raise KitError(f"{file} is no file of asv's: {error}; choose another --out") from None
