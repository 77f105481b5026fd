"""A console that hides secrets and control sequences in everything printed on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from tritonsmith.core import redact
from tritonsmith.core.redact import printable

_OF_OURS = "\r"  # a line that is written again and again ends with it


class Screen(Console):
    """Rich's console, whose texts and JSON are without secrets; cells of tables are handled by `ui.tables`.

    A terminal gets no control characters except Rich's own.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if self.is_terminal:
            self.push_render_hook(_Cleaning())

    def print(self, *objects: Any, **options: Any) -> None:
        """Print; see Rich."""
        shown = (redact.hidden(item) if isinstance(item, str) else item for item in objects)
        super().print(*shown, **options)

    def print_json(self, json: str | None = None, *, data: Any = None, **options: Any) -> None:
        """Print JSON; see Rich."""
        super().print_json(json, data=redact.data(data), **options)


class _Cleaning(RenderHook):
    """The last filter before the terminal."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Clean what is printed."""
        return [_Clean(renderable) for renderable in renderables]


@dataclass(frozen=True)
class _Clean:
    inner: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self.inner, options):
            shown = text if control or text == _OF_OURS else printable(text)
            yield Segment(shown, style, control)
