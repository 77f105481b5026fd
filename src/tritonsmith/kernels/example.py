"""The bundled vector-add, compiled for NVIDIA and AMD: proof that an env's Triton works, without a GPU."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith import configs
from tritonsmith.envs.workspace import EnvDir
from tritonsmith.errors import FactError, did_you_mean
from tritonsmith.plan import MakeDir, Plan, Run, Write

PHASE = "compile vector-add"
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Target:
    """What a kernel is compiled for.

    Attributes:
        backend: `cuda` or `hip`.
        arch: an int for CUDA (90), a name for HIP (`gfx942`).
        warp_size: threads per warp: 32, or 64 on CDNA.
    """

    backend: str
    arch: int | str
    warp_size: int

    def __str__(self) -> str:
        return f"{self.backend}:{self.arch}:{self.warp_size}"


def parse_target(text: str) -> Target:
    """A target from `cuda:90`, `hip:gfx942:64` or the name of a GPU (`h100`).

    Raises:
        FactError: neither of these.
    """
    names = configs.load("gpu-targets")["targets"]
    backend, _, rest = names.get(text.lower(), text).partition(":")
    arch, _, warp = rest.partition(":")
    known_warp = not warp or warp.isdecimal()
    if backend == "cuda" and arch.isdecimal() and known_warp:
        return Target(backend, int(arch), int(warp or 32))
    if backend == "hip" and arch.startswith("gfx") and known_warp:
        return Target(backend, arch, int(warp or (64 if arch.startswith("gfx9") else 32)))
    raise FactError(
        f"{text!r} is no target", hints=["write cuda:90 or hip:gfx942", *did_you_mean(text, names)]
    )


def default_targets() -> tuple[Target, ...]:
    """One NVIDIA and one AMD target (`configs/gpu-targets.toml`)."""
    table = configs.load("gpu-targets")["up"]
    return parse_target(table["nvidia"]), parse_target(table["amd"])


def proof_targets(backends: tuple[str, ...]) -> tuple[Target, ...]:
    """One target that shows that a build works: NVIDIA's, because AMD's wants ROCm's linker before 3.5.

    Args:
        backends: that were built.
    """
    known = configs.load("gpu-targets")["proof"]
    return tuple(parse_target(known[name]) for name in ("nvidia", "amd") if name in backends)[:1]


def response_file(place: Path) -> Path:
    """Where the worker leaves its answer."""
    return place / "kernels" / "vector_add.json"


def plan(env: EnvDir, targets: tuple[Target, ...]) -> Plan:
    """Steps that compile the kernel in the env's interpreter.

    Args:
        env: has Triton installed.
        targets: what for.
    """
    return plan_in(env.path, env.python, targets)


def plan_in(place: Path, python: Path, targets: tuple[Target, ...]) -> Plan:
    """Steps that compile the kernel, with a cache of its own.

    Args:
        place: folder that gets the files, in `kernels`, and the cache.
        python: interpreter that has Triton.
        targets: what for.
    """
    folder = place / "kernels"
    request = {
        "file": str(_HERE / "examples" / "vector_add.py"),
        "kernel": "vector_add",
        "signature": {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n_elements": "i32"},
        "constexprs": {"BLOCK": 1024},
        "targets": [[target.backend, target.arch, target.warp_size] for target in targets],
        "output": str(folder / "vector_add"),
    }
    asked = folder / "vector_add.request.json"
    argv = (str(python), str(_HERE / "worker.py"), str(asked), str(response_file(place)))
    environ = (("TRITON_CACHE_DIR", str(place / "triton-cache")), ("PYTHONPATH", None))
    return Plan(
        "compile the bundled vector-add",
        (
            MakeDir(folder, phase=PHASE),
            Write(asked, json.dumps(request, indent=2) + "\n", phase=PHASE),
            Run(argv, cwd=folder, env=environ, phase=PHASE),
        ),
    )


def read_response(place: Path) -> dict[str, Any]:
    """The worker's answer.

    Args:
        place: the folder that the plan was made for.
    """
    answer: dict[str, Any] = json.loads(response_file(place).read_text(encoding="utf-8"))
    return answer
