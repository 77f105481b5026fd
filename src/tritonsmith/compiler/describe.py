"""Facts about a kernel that only the environment's interpreter can report, and its error reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith import worker
from tritonsmith.compiler import disassemblers, gpu_models
from tritonsmith.compiler.points import Config
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.source import KernelParameter, KernelSource
from tritonsmith.compiler.targets import Target
from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError, did_you_mean
from tritonsmith.core.plan.process import query
from tritonsmith.core.plan.steps.base import CommandFailedError


@dataclass(frozen=True)
class Described:
    """A kernel as Triton sees it.

    Attributes:
        kernel: the kernel and its parameters.
        configs: the configs of its autotuner.
        asked_gpu: the file queried the GPU at import, so that the kernel may differ for another target.
    """

    kernel: KernelSource
    configs: tuple[Config, ...]
    asked_gpu: bool


def described(
    asked: CompileRequest, target: Target, kernel: str, python: Path, space: Workspace
) -> Described:
    """Return the facts about a kernel that are known only by running its file.

    Args:
        asked: names the file.
        target: the GPU that the file sees.
        kernel: name of the function.
        python: an interpreter that has Triton.
        space: the workspace.

    Raises:
        SmithError: the file cannot be run, or has no such kernel.
    """
    table = configs.load("kernels")
    content = {
        "file": str(asked.file),
        "kernel": kernel,
        "ir": False,
        "points": [{"target": [target.backend, target.arch, target.warp_size]}],
        "stand-ins": table["stand-ins"]["modules"],
        "gpus": gpu_models.all_facts([target]),
        "disassemblers": {},
        "lent": dict(disassemblers.lent()),
    }
    change = {"TRITON_INTERPRET": None, "TRITON_HOME": str(space.root / "kernels")}
    argv = (str(python), str(worker.FOLDER), "describe", json.dumps(content))
    answer = query(argv, change=change, timeout=table["jobs"]["start"])
    try:
        report: dict[str, Any] = json.loads(answer.out.splitlines()[-1]) if answer else {}
    except (ValueError, IndexError):
        report = {}
    if "refused" in report:
        raise _error(report["refused"], asked, python)
    if not answer or "parameters" not in report:
        raise FactError(
            "cannot inspect the kernel's file",
            where=asked.file,
            why=answer.err[-2000:] if answer else f"{python} did not respond in time",
            hints=[f"check that this works: {python} -c 'import triton'"],
        )
    parameters = tuple(KernelParameter(**row) for row in report["parameters"])
    source = KernelSource(kernel, parameters, tuple(report["heuristics"]), bool(report["configs"]))
    return Described(source, tuple(Config(**row) for row in report["configs"]), report["asked"])


def provided(module: str) -> tuple[str, ...]:
    """Return hints for a missing module; a package is named only if it is known to be the right one."""
    packages: dict[str, str] = configs.load("kernels")["packages"]
    own = f"if it is your own module: PYTHONPATH=/folder/that/has/{module}"
    if package := packages.get(module):
        return f"install it into the environment: pip install {package}", own
    return own, f"a package named {module} may be unrelated: check the requirements of the kernel's project"


def refused(results: Path, asked: CompileRequest, python: Path, failure: CommandFailedError) -> SmithError:
    """Return the error for a worker run that produced nothing."""
    try:
        lines = results.read_text(encoding="utf-8").splitlines()
        report = json.loads(lines[-1]) if lines else {}
    except (OSError, ValueError):
        lines, report = ["cannot be read"], {}
    if "refused" in report:
        return _error(report["refused"], asked, python)
    hints = ["the log contains the full command and its output"]
    if not lines:
        hints = [f"it ended before compiling anything, perhaps while importing {asked.file}", *hints]
    return SmithError(
        f"the compiler process failed with exit code {failure.code}",
        where=failure.log,
        why="\n".join(failure.output[-8:]) or None,
        hints=hints,
    )


def _error(about: Mapping[str, Any], asked: CompileRequest, python: Path) -> SmithError:
    """Turn the worker's report into one error with hints."""
    what, why, module = about["what"], about.get("why") or None, about.get("module", "")
    kind: type[SmithError] = FactError
    where: Path | None = asked.file
    hints: tuple[str, ...] = ()
    if about["kind"] == "kernel":
        names = about["names"]
        hints = did_you_mean(asked.kernel, names) if names else ("a kernel is a function with @triton.jit",)
        kind = UsageError
    elif about["kind"] == "option":
        name, names = about["name"], about["names"]
        if name in {sweep.name for sweep in asked.sweeps}:
            what = f"{name!r} is neither a parameter of the kernel nor an option of a backend"
            names = [*about["parameters"], *names]
        kind, where, hints = UsageError, None, did_you_mean(name, names)
    elif module == "triton":
        what, hints = (
            f"the kernel imports something that this Triton lacks: {what}",
            ("use a newer Triton: --env, --python",),
        )
    elif module:
        what = f"the kernel needs a module that is not installed: {what}"
        hints = provided(module)
    elif about["kind"] == "unknown":
        package = about.get("package", "")
        hints = (
            provided(package)
            if package
            else ("use a constant in the file instead of a value computed at import",)
        )
    elif about["kind"] == "triton":
        where, hints = python, ("invoke up creates an environment with a Triton release",)
    elif about["kind"] == "file":
        hints = ("only what the kernel needs is run from the file: its definition and the names in it",)
    return kind(what, where=where, why=why, hints=hints)
