"""What only the env's interpreter can tell of a kernel, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith import configs, worker
from tritonsmith.envs.workspace import Workspace
from tritonsmith.errors import FactError, SmithError, UsageError, did_you_mean
from tritonsmith.kernels.compile import gpu_models
from tritonsmith.kernels.compile.points import Config
from tritonsmith.kernels.compile.request import CompileRequest
from tritonsmith.kernels.compile.source import KernelParameter, KernelSource
from tritonsmith.kernels.compile.targets import Target
from tritonsmith.plan.process import query
from tritonsmith.plan.runner import CommandFailedError


@dataclass(frozen=True)
class Described:
    """A kernel as Triton sees it.

    Attributes:
        kernel: its parameters.
        configs: of its autotuner.
        asked_gpu: its file asked which GPU is here: for another target it may be another kernel.
    """

    kernel: KernelSource
    configs: tuple[Config, ...]
    asked_gpu: bool


def described(
    asked: CompileRequest, target: Target, kernel: str, python: Path, space: Workspace
) -> Described:
    """What only running a kernel's file tells.

    Args:
        asked: names the file.
        target: the GPU that the file is told of.
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
    }
    change = {"TRITON_INTERPRET": None, "TRITON_HOME": str(space.root / "kernels")}
    argv = (str(python), str(worker.FOLDER), "describe", json.dumps(content))
    answer = query(argv, change=change, timeout=table["jobs"]["start"])
    try:
        seen: dict[str, Any] = json.loads(answer.out.splitlines()[-1]) if answer else {}
    except (ValueError, IndexError):
        seen = {}
    if "refused" in seen:
        raise _error(seen["refused"], asked, python)
    if not answer or "parameters" not in seen:
        raise FactError(
            "the kernel's file could not be looked at",
            where=asked.file,
            why=answer.err[-2000:] if answer else f"{python} did not answer in time",
            hints=[f"{python} -c 'import triton' has to work"],
        )
    parameters = tuple(KernelParameter(**one) for one in seen["parameters"])
    found = KernelSource(kernel, parameters, tuple(seen["heuristics"]), bool(seen["configs"]))
    return Described(found, tuple(Config(**one) for one in seen["configs"]), seen["asked"])


def provided(module: str) -> tuple[str, ...]:
    """What to do where a module is missing: a package is named only if it is known to be what is meant."""
    packages: dict[str, str] = configs.load("kernels")["packages"]
    own = f"a module of your own: PYTHONPATH=/folder/that/has/{module}"
    if package := packages.get(module):
        return f"install it into the environment: pip install {package}", own
    return own, f"a package called {module} may be a stranger's: see what the kernel's own project requires"


def refused(results: Path, asked: CompileRequest, python: Path, failure: CommandFailedError) -> SmithError:
    """The error about a run of the worker that did nothing."""
    try:
        lines = results.read_text(encoding="utf-8").splitlines()
        seen = json.loads(lines[-1]) if lines else {}
    except (OSError, ValueError):
        lines, seen = ["cannot be read"], {}
    if "refused" in seen:
        return _error(seen["refused"], asked, python)
    hints = ["the log has the whole command and its output"]
    if not lines:
        hints = [f"it ended before it compiled anything: perhaps by what {asked.file} does on import", *hints]
    return SmithError(
        f"the compiler's process ended with exit code {failure.code}",
        where=failure.log,
        why="\n".join(failure.output[-8:]) or None,
        hints=hints,
    )


def _error(about: Mapping[str, Any], asked: CompileRequest, python: Path) -> SmithError:
    """One clear error from what the worker says."""
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
            f"this Triton lacks what the kernel imports: {what}",
            ("take a newer one: --env, --python",),
        )
    elif module:
        what = f"the kernel needs a module that is not installed: {what}"
        hints = provided(module)
    elif about["kind"] == "unknown":
        package = about.get("package", "")
        hints = provided(package) if package else ("a constant in the file instead of what is asked here",)
    elif about["kind"] == "triton":
        where, hints = python, ("invoke up makes an environment with a release of Triton",)
    elif about["kind"] == "file":
        hints = ("of the file only what the kernel needs is run: its definition and the names in it",)
    return kind(what, where=where, why=why, hints=hints)
