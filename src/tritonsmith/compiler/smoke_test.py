"""Compile the bundled vector-add for NVIDIA and AMD: a proof, without a GPU, that an env's Triton works."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tritonsmith.compiler import call, run, source, targets
from tritonsmith.compiler.interpreter import HostPrograms, Interpreter, worker_variables
from tritonsmith.compiler.request import CompileRequest, expand_points
from tritonsmith.compiler.targets import Target
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.plan import MakeDir, Plan
from tritonsmith.worker.messages import CompiledRow, CompileHead

PHASE = "compile vector-add"
KERNEL = "vector_add"
FILE = Path(__file__).parent / "examples" / "vector_add.py"
SIGNATURE = "*fp32:16,*fp32:16,*fp32:16,i32,BLOCK=1024"
_TIMEOUT = 600  # seconds; a Debug build under load


def results_file(place: Path) -> Path:
    """Return the worker's results file."""
    return place / "kernels" / "results.jsonl"


def plan(place: Path, python: Path, test_targets: tuple[Target, ...], programs: HostPrograms) -> Plan:
    """Return steps that compile the kernel with a cache of its own; they fail if one of the targets does.

    Args:
        place: folder that gets the files, in `kernels`.
        python: interpreter that has Triton.
        test_targets: the targets.
        programs: of this machine; its disassemblers are not used, so that nothing else can fail.
    """
    folder = place / "kernels"
    request = CompileRequest(FILE, KERNEL, SIGNATURE, test_targets)
    kernel = source.find(source.read(FILE), KERNEL, FILE)
    needed = HostPrograms(linker=programs.linker)
    interpreter = Interpreter(
        python, Workspace(place), folder, max(1, len(test_targets)), _TIMEOUT, programs=needed
    )
    points = expand_points(request, kernel)
    out = folder / KERNEL
    question = run.worker_request(request, KERNEL, points, interpreter, out, folder, strict=True)
    stages = tuple(name for name in question.stages if name != "source")
    question = replace(question, stages=stages, gpus={})  # this file does not query the GPU
    file = folder / f"{KERNEL}.request.json"
    return Plan(
        "compile the bundled vector-add",
        (
            MakeDir(out, phase=PHASE),
            *call.steps(python, question, file, env=worker_variables(interpreter), phase=PHASE),
        ),
    )


def read_response(place: Path) -> dict[str, Any]:
    """Read the results: versions, and per target the stages with their files and sizes in bytes.

    Args:
        place: the folder that the plan was made for.
    """
    head, rows = call.headed_results(results_file(place), CompileHead, CompiledRow)
    order = [str(target) for target in (*targets.default(), *(targets.parse(row.target) for row in rows))]
    results = []
    for row in sorted(rows, key=lambda row: order.index(row.target)):
        stages = {
            name: {"path": str(place / "kernels" / KERNEL / stage.path), "bytes": stage.size}
            for name, stage in row.stages.items()
        }
        results.append({"target": row.target, "seconds": row.seconds, "stages": stages})
    return {"triton": head.triton, "python": head.python, "results": results}
