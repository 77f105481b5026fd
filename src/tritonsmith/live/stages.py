"""Read a compiled kernel as texts and resources, while its files exist."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from tritonsmith.compiler import interpreter, report
from tritonsmith.compiler.manifest import Manifest, Point, Stage
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.measure import Measured
from tritonsmith.core import configs
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.core.plan import files
from tritonsmith.inspect.show import stage as show_stage

_ID = "live"


@dataclass(frozen=True)
class KernelStages:
    """One compiled kernel.

    Attributes:
        name: of the function.
        target: `cuda:90:32`.
        texts: stage to text, in the order of the pipeline.
        resources: one row.
        error: reason why it did not compile.
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
        metadata=json.loads(json.dumps(table, default=str)),
    )
    name = str(table.get("name") or getattr(compiled, "name", "kernel"))
    with files.scratch("live-") as folder:
        origin = _origin()
        stages = dict(_written(assembly, folder, origin))
        manifest = Manifest(folder, name, "", "", "", str(origin), "", "", (replace(point, stages=stages),))
        (kernel,) = of_manifest(manifest)
        return kernel


def of_manifest(made: Manifest) -> Iterator[KernelStages]:
    """Yield the points of an output folder."""
    for point in made.points:
        alone = replace(made, points=(point,))
        names = [name for name in report.stages(alone) if name not in show_stage.BINARY]
        texts = {name: show_stage.text(alone, point, name) for name in names}
        yield KernelStages(made.kernel, point.target, texts, measure.of_manifest(alone), point.error)


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
