"""Show a kernel and its resources: as HTML in a notebook, as text elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

from tritonsmith.compiler.resources import table
from tritonsmith.compiler.resources.measure import Measured
from tritonsmith.compiler.resources.table import ResourceRow, Value
from tritonsmith.inspect.resources import report
from tritonsmith.live.stages import KernelStages

_WIDTH = 100  # characters
_PRE = "max-height:32em;overflow:auto;font-size:12px;line-height:1.3"
_OPEN = "ttgir"  # the stage that is not folded


class ResourcesView(Mapping[str, Value]):
    """The resources of a kernel: its values by the keys of `kernel.compile --resources --json`."""

    def __init__(self, measured: Measured) -> None:
        self._measured = measured
        self._row: ResourceRow = measured.rows[0]

    def __getitem__(self, key: str) -> Value:
        return self._row.values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._row.values)

    def __len__(self) -> int:
        return len(self._row.values)

    def __repr__(self) -> str:
        lines = [
            line.plain for grid in report.tables_of([self._row], cached=False) for line in grid.lines(_WIDTH)
        ]
        return "\n".join([*lines, *(f"warning: {text}" for text in self._measured.warnings)]).rstrip()

    def _repr_html_(self) -> str:
        heads = {column.head.replace("\n", " "): column for column in table.columns([self._row])}
        cells = "".join(
            f"<tr><td style='text-align:left'>{escape(f'{name} {column.unit}')}</td>"
            f"<td>{escape(report.spelled(self._row.values[column.key]))}</td></tr>"
            for name, column in heads.items()
        )
        warnings = "".join(f"<p><b>warning:</b> {escape(text)}</p>" for text in self._measured.warnings)
        return f"<table>{cells}</table>{warnings}"


class KernelView:
    """A kernel with its resources and its stages."""

    def __init__(self, kernel: KernelStages) -> None:
        self._kernel = kernel

    def __repr__(self) -> str:
        kernel = self._kernel
        sizes = ", ".join(f"{stage} {len(text.splitlines())} lines" for stage, text in kernel.texts.items())
        content = kernel.error or f"{sizes}\n{ResourcesView(kernel.resources)!r}"
        return f"{kernel.name}, {kernel.target}\n{content}"

    def _repr_html_(self) -> str:
        kernel = self._kernel
        parts = [f"<h4>{escape(kernel.name)}, {escape(kernel.target)}</h4>"]
        if kernel.error:
            parts.append(f"<pre style='{_PRE}'>{escape(kernel.error)}</pre>")
        else:
            parts.append(ResourcesView(kernel.resources)._repr_html_())
        for stage, text in kernel.texts.items():
            summary = f"<summary>{escape(stage)}, {len(text.splitlines())} lines</summary>"
            folded = " open" if stage == _OPEN else ""
            parts.append(f"<details{folded}>{summary}<pre style='{_PRE}'>{escape(text)}</pre></details>")
        return "".join(parts)
