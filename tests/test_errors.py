"""An error is one line that a terminal shows, whatever it quotes."""

import json
import subprocess
import sys

import profile_builder as b

from kit.errors import LENGTH_MAX, KitError
from kit.profile.store import canonical_json, profile_digest


def test_a_long_error_keeps_what_was_wrong_and_the_remedy():
    line = str(KitError(f"no suite {'x' * 100_000}; choose from a, b"))
    assert len(line) == LENGTH_MAX
    assert line.startswith("no suite xxx")
    assert "…" in line
    assert line.endswith("xxx; choose from a, b")


def test_a_short_error_stays_as_it_is():
    assert str(KitError("no suite 'a'; choose from b")) == "no suite 'a'; choose from b"


def test_a_profile_with_a_long_value_is_refused_in_a_line(tmp_path):
    path = b.write(tmp_path / "long.json", b.profile(b.group("g", b.member("torch", 2.0)), rounds=1))
    plain = json.loads(path.read_text("utf-8"))
    plain["cells"][0]["cell"]["task"] = "x" * 100_000
    path.write_bytes(canonical_json(plain | {"digest": profile_digest(plain)}))
    command = [sys.executable, "-m", "kit", "compare", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("kit: ")
    assert len(done.stderr) <= LENGTH_MAX + len("kit: \n")
