"""Compiles one kernel for several targets, in an interpreter that has Triton: no GPU, no torch.

`python worker.py REQUEST RESPONSE`, both JSON files. Needs nothing but Triton (3.0 or later) and the
standard library, so that any env can run it; the tool itself never imports Triton.

Request: {"file", "kernel", "signature": {name: type}, "constexprs": {name: value},
          "targets": [[backend, arch, warp_size]], "output": folder}
Response: {"triton": version, "python": version, "results": [
          {"target", "seconds", "stages": {name: {"path", "bytes"}}} or {"target", "error"}]}
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import platform
import sys
import time
import traceback
from pathlib import Path
from typing import Any

STAGES = ("ttir", "ttgir", "llir", "ptx", "cubin", "amdgcn", "hsaco")


def load_kernel(path: str, name: str) -> Any:
    """The kernel object of a Python file."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def make_source(kernel: Any, signature: dict[str, str], constexprs: dict[str, Any]) -> Any:
    """An ASTSource, which took `constants` up to 3.2 and takes `constexprs` since 3.3 (triton#5220)."""
    from triton.compiler import ASTSource

    if "constexprs" in inspect.signature(ASTSource.__init__).parameters:
        full = signature | dict.fromkeys(constexprs, "constexpr")
        return ASTSource(fn=kernel, signature=full, constexprs=constexprs)
    return ASTSource(fn=kernel, signature=signature, constants=constexprs)


def compile_for(request: dict[str, Any], kernel: Any, target: list[Any]) -> dict[str, Any]:
    """Compile for one target and write every stage to a file."""
    import triton
    from triton.backends.compiler import GPUTarget

    backend, arch, warp_size = target
    name = f"{backend}:{arch}:{warp_size}"
    source = make_source(kernel, request["signature"], request["constexprs"])
    began = time.monotonic()
    compiled = triton.compile(source, target=GPUTarget(backend, arch, warp_size))
    seconds = time.monotonic() - began
    folder = Path(request["output"]) / name.replace(":", "-")
    folder.mkdir(parents=True, exist_ok=True)
    stages = {}
    for stage in STAGES:
        if stage not in compiled.asm:
            continue
        content = compiled.asm[stage]
        raw = content if isinstance(content, bytes) else content.encode()
        path = folder / f"{request['kernel']}.{stage}"
        path.write_bytes(raw)
        stages[stage] = {"path": str(path), "bytes": len(raw)}
    return {"target": name, "seconds": seconds, "stages": stages}


def main(request_path: str, response_path: str) -> int:
    """Compile for every target; one that fails does not keep the others from being tried."""
    import triton

    request = json.loads(Path(request_path).read_text(encoding="utf-8"))
    kernel = load_kernel(request["file"], request["kernel"])
    results = []
    for target in request["targets"]:
        try:
            results.append(compile_for(request, kernel, target))
        except Exception:  # noqa: BLE001 - a compiler's failure is an answer, of whatever kind
            traceback.print_exc()
            results.append({"target": ":".join(map(str, target)), "error": traceback.format_exc()})
    response = {"triton": triton.__version__, "python": platform.python_version(), "results": results}
    Path(response_path).write_text(json.dumps(response, indent=2) + "\n", encoding="utf-8")
    return 1 if any("error" in result for result in results) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
