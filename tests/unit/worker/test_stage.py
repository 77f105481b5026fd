"""A single stage by a Triton that imports what is not installed, as 3.0's launcher does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tritonsmith import worker

pytestmark = pytest.mark.unit

FILES = {
    "__init__.py": "from triton.compiler import compiler",
    "compiler/__init__.py": "",
    "compiler/compiler.py": """
        import absent
        class Backend:
            def parse_options(self, given):
                return type("Options", (), given)()
            def add_stages(self, stages, options):
                stages["cubin"] = lambda source, metadata: f"cubin of {source}".encode()
            def load_dialects(self, context):
                pass
        def make_backend(target):
            return Backend()
    """,
    "backends/__init__.py": "",
    "backends/compiler.py": """
        import collections
        GPUTarget = collections.namedtuple("GPUTarget", ["backend", "arch", "warp_size"])
    """,
    "_C/__init__.py": "",
    "_C/libtriton.py": """
        class ir:
            context = load_dialects = lambda *_: None
        class llvm:
            init_targets = lambda: None
    """,
}


@pytest.mark.parametrize(
    ("names", "error"), [(["absent"], ""), ([], "ModuleNotFoundError: No module named 'absent'")]
)
def test_what_a_stage_can_do_without_has_a_stand_in(tmp_path: Path, names: list[str], error: str) -> None:
    for name, text in FILES.items():
        file = tmp_path / "triton" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text), encoding="utf-8")
    source, out, result = (tmp_path / name for name in ("k.ptx", "k.cubin", "k.json"))
    source.write_text("ptx", encoding="utf-8")
    request = {"target": ["cuda", 90, 32], "options": {}, "of": "ptx", "stage": "cubin", "stand_ins": names}
    files = {"file": source, "out": out, "result": result, "log": tmp_path / "log"}
    asked = tmp_path / "request.json"
    asked.write_text(
        json.dumps(request | {name: str(path) for name, path in files.items()}), encoding="utf-8"
    )
    argv = [sys.executable, str(worker.FOLDER), "stage", str(asked)]
    subprocess.run(argv, check=True, env={"PYTHONPATH": str(tmp_path)})
    assert json.loads(result.read_text(encoding="utf-8"))["error"] == error
    assert out.exists() != bool(error)
