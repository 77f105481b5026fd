"""The table of `plugin.check`."""

from __future__ import annotations

from tritonsmith.build.plugins.check import PluginCheck
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid


def table(checked: PluginCheck) -> Grid:
    """Return a table with a row for each property."""
    rows = [[row.what, row.plugin, row.triton, row.verdict, row.why] for row in checked.rows]
    head = ["", checked.plugin.name, f"Triton {checked.version}", "verdict", "why"]
    return tables.plain(str(checked.plugin), head, rows)
