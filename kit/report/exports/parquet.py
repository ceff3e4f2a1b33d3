"""Parquet: a row for each cell, launch, block or step, as `to_dataframe` has them."""

from __future__ import annotations

import io

from kit.extras import need
from kit.report.exports import Exported
from kit.report.records import columns_of


def write(exported: Exported) -> dict[str, bytes]:
    """Return one file.

    Raises:
        KitError: pyarrow is not installed.
    """
    need("pyarrow", "notebook")
    import pyarrow
    import pyarrow.parquet

    columns = columns_of([(exported.label, exported.path, exported.profile)], exported.level)  # type: ignore[arg-type]
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(dict(columns)), stream)
    return {"": stream.getvalue()}
