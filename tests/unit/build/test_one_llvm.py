"""A distribution's MLIR that links the shared libLLVM: Triton must not link the static libraries as well."""

from __future__ import annotations

from pathlib import Path

from tests.unit.build import made
from tritonsmith.build.triton import recipe


def test_only_such_an_llvm_gets_the_hook() -> None:
    shared = recipe.cache_variables(made.inputs(tree=made.llvm(dylib=True)))
    hook = Path(shared["CMAKE_PROJECT_triton_INCLUDE"])
    assert hook.is_file()
    assert "set_target_properties" in hook.read_text(encoding="utf-8")
    assert "CMAKE_PROJECT_triton_INCLUDE" not in recipe.cache_variables(made.inputs())
