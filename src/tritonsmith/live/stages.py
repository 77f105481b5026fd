"""Read a compiled kernel as texts and resources, and show it: as HTML in a notebook, as text elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from tritonsmith.compiler import interpreter, report
from tritonsmith.compiler.manifest import Manifest, Point, Stage
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.measure import Measured, ResourceRow, Value
from tritonsmith.core import configs
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.core.plan import files
from tritonsmith.inspect import resources
from tritonsmith.inspect import show as show_stage

_ID = "live"


@dataclass(frozen=True)
class KernelStages:
    """One compiled kernel.

    Attributes:
        name: the function's name.
        target: the target: `cuda:90:32`.
        texts: stage to text, in the order of the pipeline.
        resources: a table of one row.
        error: the reason why it did not compile.
    """

    name: str
    target: str
    texts: Mapping[str, str]
    resources: Measured
    error: str = ""

    def text(self, stage: str) -> str:
        """Return the text of a stage.

        Raises:
            UsageError: there is none.
        """
        if stage not in self.texts:
            raise UsageError(f"{self.name} has no stage {stage!r}", hints=did_you_mean(stage, self.texts))
        return self.texts[stage]


def of_compiled(compiled: Any) -> KernelStages:
    """Return the stages of a kernel that Triton has compiled in this process.

    Raises:
        TypeError: it is not a compiled kernel.
    """
    # Duck typing, as the class has moved between Triton's versions.
    assembly, metadata = getattr(compiled, "asm", None), getattr(compiled, "metadata", ())
    if not isinstance(assembly, dict) or not hasattr(metadata, "_asdict"):
        what = f"a compiled kernel is what kernel[grid](...) returns, not {type(compiled).__name__}"
        raise TypeError(what)
    table: dict[str, Any] = metadata._asdict()
    target = table["target"]
    point = Point(
        id=_ID,
        target=f"{target.backend}:{target.arch}:{target.warp_size}",
        signature={},
        constexprs={},
        hints={},
        options={},
        status="ok",
        seconds=0.0,
        # As in Triton's NAME.json: readers of metadata expect lists and texts, not tuples and enums.
        metadata=json.loads(json.dumps(table, default=str)),
    )
    name = str(table.get("name") or getattr(compiled, "name", "kernel"))
    # The readers of stages, resources and disassemblies take files, so the kernel is written out for them
    # and gone afterwards; the texts stay.
    with files.scratch("live-") as folder:
        origin = _origin()
        stages = dict(_written(assembly, folder, origin))
        manifest = Manifest(folder, name, "", "", "", str(origin), "", "", (replace(point, stages=stages),))
        (kernel,) = of_manifest(manifest)
        return kernel


def of_manifest(manifest: Manifest) -> Iterator[KernelStages]:
    """Yield the points of an output folder."""
    for point in manifest.points:
        # A manifest for each point, as resources are measured per manifest and a view shows those of one
        # kernel.
        alone = replace(manifest, points=(point,))
        names = [name for name in report.stages(alone) if name not in show_stage.BINARY]
        texts = {name: show_stage.stage_text(alone, point, name) for name in names}
        yield KernelStages(manifest.kernel, point.target, texts, measure.of_manifest(alone), point.error)


def _written(assembly: dict[str, Any], folder: Path, origin: Path) -> Iterator[tuple[str, Stage]]:
    """Write the stages to files, and yield them with the disassembly of binary ones."""
    tools = {tool.binary: tool for tool in interpreter.locate_programs(workspace.default()).disassemblers}
    for stage in configs.load("kernels")["stages"]["compiler"]:
        content = assembly.get(stage)
        if content is None:
            continue
        path = folder / f"kernel.{stage}"
        yield stage, _write(path, content if isinstance(content, bytes) else str(content).encode())
        if stage in tools and (text := tools[stage].text(path, origin)):
            yield tools[stage].stage, _write(folder / f"kernel.{tools[stage].stage}", text.encode())


def _write(path: Path, content: bytes) -> Stage:
    files.write(path, content)
    return Stage(path.name, len(content), sha256(content).hexdigest())


def _origin() -> Path:
    file = getattr(sys.modules.get("triton"), "__file__", None)
    return Path(file).parent if file else Path()


_WIDTH = 100  # characters
_PRE = "max-height:32em;overflow:auto;font-size:12px;line-height:1.3"
_OPEN = "ttgir"  # the stage that is not folded: the one that kernel authors read first


class ResourcesView(Mapping[str, Value]):
    """The resources of a kernel: its values by the keys of `kernel.compile --resources --json`."""

    def __init__(self, measured: Measured) -> None:
        self._measured = measured
        # `of_manifest` measures each kernel alone, so there is one row.
        self._row: ResourceRow = measured.rows[0]

    def __getitem__(self, key: str) -> Value:
        return self._row.values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._row.values)

    def __len__(self) -> int:
        return len(self._row.values)

    def __repr__(self) -> str:
        lines = [
            line.plain
            for grid in resources.tables_of([self._row], cached=False)
            for line in grid.lines(_WIDTH)
        ]
        return "\n".join([*lines, *(f"warning: {text}" for text in self._measured.warnings)]).rstrip()

    def _repr_html_(self) -> str:
        # Everything is escaped: names and messages come from the kernel, and a notebook renders HTML.
        heads = {column.head.replace("\n", " "): column for column in measure.columns([self._row])}
        cells = "".join(
            f"<tr><td style='text-align:left'>{escape(f'{name} {column.unit}')}</td>"
            f"<td>{escape(resources.spelled(self._row.values[column.key]))}</td></tr>"
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
