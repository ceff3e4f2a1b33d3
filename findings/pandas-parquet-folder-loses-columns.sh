#!/usr/bin/env bash
# pandas.read_parquet of a folder takes the columns of its first file and leaves out those that only later files have,
# without a word (pyarrow makes the schema from the first file). Results of benchmark runs, one file a run, lose every
# figure that the first run did not have, such as joules of a machine with a sensor; which figures depends on the names of
# the files. pandas.concat over the files keeps all columns.
#
# Seen: pandas 3.1.1, pyarrow 26.0.1, Python 3.11: column "step_ns" alone; with concat also "energy_j".
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check pandas==3.1.1 pyarrow==26.0.1
"$work/env/bin/python" - "$work" <<'PYTHON'
import pathlib
import sys

import pandas as pd

folder = pathlib.Path(sys.argv[1], "runs")
folder.mkdir()
pd.DataFrame({"step_ns": [1.0]}).to_parquet(folder / "1.parquet")
pd.DataFrame({"step_ns": [2.0], "energy_j": [3.0]}).to_parquet(folder / "2.parquet")
together = pd.read_parquet(folder)
apart = pd.concat(map(pd.read_parquet, sorted(folder.iterdir())))
print(f"read as a folder: {[*together.columns]}, file by file: {[*apart.columns]}")
assert [*apart.columns] == ["step_ns", "energy_j"]
assert [*together.columns] == ["step_ns"], "changed: a folder has the columns of all files"
PYTHON
echo "as described"
