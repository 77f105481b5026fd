"""A console that shows no secret, whoever prints on it."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from tritonsmith.ui import secrets


class Screen(Console):
    """Rich's console, whose texts and JSON are without secrets; cells of tables are `ui.tables`' business."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print; see Rich."""
        shown = (secrets.hidden(one) if isinstance(one, str) else one for one in objects)
        super().print(*shown, **options)

    def print_json(self, json: str | None = None, *, data: Any = None, **options: Any) -> None:
        """Print JSON; see Rich."""
        super().print_json(json, data=secrets.data(data), **options)
