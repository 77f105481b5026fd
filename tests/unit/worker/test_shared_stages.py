"""`SharedStages`: when the outputs of an earlier compile stand for stages that need not run again."""

from __future__ import annotations

import json
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tritonsmith.worker import compile_point
from tritonsmith.worker.compile_point import SharedStages, shared_stages
from tritonsmith.worker.messages import PointRequest, PointsRequest, SurgeryRequest
from tritonsmith.worker.stage import ASSEMBLED

POINT = PointRequest(("cuda", 90, 32))
HIP = PointRequest(("hip", "gfx942", 64))


class Compiler:
    """A Triton in a folder, and a memory beside it.

    Attributes:
        ran: the stages that ran.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.memory, self.ran = root / "triton", root / "memory", list[str]()
        for name in ("compiler/compiler.py", "backends/nvidia/compiler.py", "_C/libtriton.so", "ptxas"):
            self.write(name, name)
        self.write("backends/nvidia/lib/libdevice.10.bc", "the same")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(1, 1))
        compile_point.compiler_identity.cache_clear()

    def compile(
        self, ttir: str = "ttir", options: object = "options", point: PointRequest = POINT, **known: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Run the stages as `triton.compile` does; the outputs, and the metadata at the end."""
        self.ran.clear()
        ASSEMBLED.clear()
        last = "cubin" if point is POINT else "hsaco"

        def stage(name: str) -> Any:
            def make(source: Any, metadata: dict[str, Any]) -> Any:
                self.ran.append(name)
                metadata[f"of {name}"] = len(str(source))
                ASSEMBLED.extend(["ptxas said this"] if name == "cubin" else [])
                return b"\x7fELF" if name == last else f"{name} of {source}"

            return make

        stages = {name: stage(name) for name in ("ttir", "ttgir", "llir", "ptx", last)}
        shared = SharedStages(str(self.memory), point)
        shared.around(stages, options)
        metadata: dict[str, Any] = {"hash": os.urandom(4).hex(), **known}
        module: Any = ttir
        asm = {}
        for name, make in stages.items():
            module = asm[name] = make(module, metadata)
        shared.keep(asm, dict.fromkeys(stages, 1.5))
        self.seconds = shared.seconds
        return asm, metadata


@pytest.fixture
def triton(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiler]:
    made = Compiler(tmp_path)
    module = types.ModuleType("triton")
    module.__file__ = str(made.root / "__init__.py")
    monkeypatch.setitem(sys.modules, "triton", module)
    monkeypatch.setattr(compile_point, "ptxas_for", lambda _: str(made.root / "ptxas"))
    yield made
    ASSEMBLED.clear()
    compile_point.compiler_identity.cache_clear()


def test_the_same_ir_is_lowered_once(triton: Compiler) -> None:
    first, before = triton.compile()
    assert triton.ran == ["ttir", "ttgir", "llir", "ptx", "cubin"]
    assert triton.seconds == {}
    again, after = triton.compile()
    assert triton.ran == ["ttir"]
    assert again == first
    assert before.pop("hash") != after.pop("hash")
    assert after == before
    assert triton.seconds == {"ttgir": 1.5, "llir": 1.5, "ptx": 1.5, "cubin": 1.5}
    assert ASSEMBLED == ["ptxas said this"]


ALL, ASSEMBLES, NONE = 5, 4, 1  # stages that run


@pytest.mark.parametrize(
    ("file", "text", "runs"),
    [
        ("_C/libtriton.so", "another", ASSEMBLES),
        ("compiler/compiler.py", "another", ALL),
        ("backends/nvidia/compiler.py", "another", ALL),
        ("backends/nvidia/lib/libdevice.10.bc", "another", ASSEMBLES),
        ("backends/nvidia/lib/libdevice.10.bc", "as large", ASSEMBLES),
        ("ptxas", "another one", ALL),
        ("language/core.py", "another", NONE),
        ("compiler/code_generator.py", "another", NONE),
    ],
)
def test_what_another_compiler_shares(triton: Compiler, file: str, text: str, runs: int) -> None:
    triton.compile()
    triton.write(file, text)
    triton.compile()
    assert len(triton.ran) == runs, triton.ran


def test_a_backend_that_is_a_link_into_a_checkout(triton: Compiler, tmp_path: Path) -> None:
    # As an editable install, and each commit that is compiled with, has it.
    (triton.root / "backends" / "nvidia").rename(tmp_path / "backend")
    (triton.root / "backends" / "nvidia").symlink_to(tmp_path / "backend")
    triton.compile()
    triton.write("backends/nvidia/compiler.py", "another pipeline")
    triton.compile()
    assert len(triton.ran) == ALL


def test_another_library_of_the_same_size_and_time(triton: Compiler) -> None:
    triton.compile()
    library = triton.root / "_C" / "libtriton.so"
    library.rename(library.with_suffix(".old"))
    triton.write("_C/libtriton.so", "_C/libtritoN.so")
    library.with_suffix(".old").unlink()
    triton.compile()
    assert len(triton.ran) == ASSEMBLES


@pytest.mark.parametrize(
    "other",
    [
        {"ttir": "another"},
        {"options": "others"},
        {"point": HIP},
        {"num_warps": 8},
    ],
)
def test_what_a_compile_depends_on(triton: Compiler, other: dict[str, Any]) -> None:
    triton.compile()
    triton.compile(**other)
    assert len(triton.ran) == ALL
    triton.compile(**other)
    assert len(triton.ran) == NONE


def test_a_variable_that_steers_is_another_compile(triton: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    triton.compile()
    monkeypatch.setenv("TRITON_CACHE_DIR", "/elsewhere")  # set by the worker, for each run
    triton.compile()
    assert len(triton.ran) == NONE
    monkeypatch.setenv("DISABLE_LLVM_OPT", "1")
    triton.compile()
    assert len(triton.ran) == ALL


def test_a_triton_that_was_moved_is_the_same(
    triton: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def options() -> str:
        return f"extern_libs=('libdevice', '{triton.root}/backends/nvidia/lib/libdevice.10.bc')"

    triton.compile(options=options())
    triton.root = triton.root.rename(tmp_path / "moved")
    monkeypatch.setattr(sys.modules["triton"], "__file__", str(triton.root / "__init__.py"))
    compile_point.compiler_identity.cache_clear()
    triton.compile(options=options())
    assert len(triton.ran) == NONE


@pytest.mark.parametrize(
    ("sent", "file", "expected"),
    [
        ((), "{root}/language/standard.py", "triton/language/standard.py"),
        ((), "/home/me/kernel.py", "/home/me/kernel.py"),
        (("/scratch/12", "/home/me"), "/scratch/12/pack/kernel.py", "/home/me/pack/kernel.py"),
        (("/scratch/12", "/home/me"), "{root}/language/standard.py", "triton/language/standard.py"),
    ],
)
def test_debug_information_names_the_same_places_everywhere(
    triton: Compiler, sent: tuple[str, ...], file: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class CodeGenerator:
        def __init__(self, *, file_name: str) -> None:
            self.file_name = file_name

    for name in ("triton.compiler", "triton.compiler.code_generator"):
        monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(CodeGenerator=CodeGenerator))
    with compile_point.neutral_places(sent):
        assert CodeGenerator(file_name=file.format(root=triton.root)).file_name == expected
    assert CodeGenerator(file_name="/a").file_name == "/a"


def test_objects_and_damaged_files_are_not_taken(triton: Compiler) -> None:
    triton.compile(object_=object())  # before the first stage: told as text
    assert len(triton.ran) == ALL
    triton.compile()
    for path in triton.memory.iterdir():
        path.write_bytes(path.read_bytes()[:40] + b"damaged")
    triton.compile()
    assert len(triton.ran) == ALL
    for path in triton.memory.iterdir():
        path.unlink()
    triton.memory.rmdir()
    triton.memory.write_text("no folder")
    triton.compile()
    assert len(triton.ran) == ALL


def test_metadata_that_json_does_not_know_is_not_kept(triton: Compiler) -> None:
    shared = SharedStages(str(triton.memory), POINT)
    stages: dict[str, Any] = {
        "ttir": lambda source, _: source,
        "ttgir": lambda _, metadata: metadata.update(strange=json) or "ttgir",
    }
    shared.around(stages, "")
    asm = {"ttir": "a", "ttgir": stages["ttgir"]("a", {})}
    shared.keep(asm, {})
    assert not triton.memory.exists()


def test_compiles_that_are_changed_or_cut_have_no_memory() -> None:
    def asked(shared: str = "here", last: str = "", *, ir: bool = False) -> PointsRequest:
        around = {"stand_ins": (), "gpus": {}, "points": (POINT,)}
        return PointsRequest("k.py", "k", ir=ir, shared=shared, last=last, **around)  # type: ignore[arg-type]

    assert shared_stages(asked(), POINT)
    assert shared_stages(asked(), PointRequest(("cuda", 90, 32), surgery=SurgeryRequest())) is None
    for request in (asked(""), asked(last="ttgir"), asked(ir=True)):
        assert shared_stages(request, POINT) is None


def test_stages_that_a_hook_replaces_have_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    request = PointsRequest("k.py", "k", stand_ins=(), gpus={}, points=(POINT,), ir=False, shared="here")
    assert shared_stages(request, POINT)
    runtime = types.SimpleNamespace(add_stages_inspection_hook=print)
    monkeypatch.setitem(sys.modules, "triton.knobs", types.SimpleNamespace(runtime=runtime))
    assert shared_stages(request, POINT) is None


def test_a_package_beside_triton_keeps_its_place(triton: Compiler) -> None:
    assert compile_point._neutral(f"{triton.root}/language/core.py") == "triton/language/core.py"
    assert compile_point._neutral(f"{triton.root}_kernels/a.py") == f"{triton.root}_kernels/a.py"
