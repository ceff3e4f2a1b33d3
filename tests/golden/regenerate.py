"""Writes every golden output and the table of refusals anew: `make golden`; `git diff` shows what users see change."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).parents[1]
# This checkout's kit and the builder of its tests, whatever is installed.
sys.path[:0] = [str(TESTS.parent), str(TESTS)]

from golden_outputs import CASES, OUTPUTS, agree, output_path, run_case  # noqa: E402
from golden_profiles import make_profiles  # noqa: E402
from golden_refusals import REFUSALS, make_inputs, rewritten  # noqa: E402


def main() -> None:
    """Run all cases; write the outputs that differ, and remove those without a case."""
    OUTPUTS.mkdir(exist_ok=True)
    paths = {output_path(name): name for name in CASES}
    for path in set(OUTPUTS.iterdir()) - set(paths):
        path.unlink()
        print(f"removed {path.name}")
    with tempfile.TemporaryDirectory() as made:
        folder = make_profiles(Path(made))
        for path, name in paths.items():
            after = run_case(name, folder)
            if not path.exists() or not agree(path, path.read_text(encoding="utf-8"), after):
                path.write_text(after, encoding="utf-8")
                print(f"wrote {path.name}")
        if (after := rewritten(make_inputs(Path(made) / "refused"))) != REFUSALS.read_text(encoding="utf-8"):
            REFUSALS.write_text(after, encoding="utf-8")
            print(f"wrote {REFUSALS.name}")


if __name__ == "__main__":
    main()
