"""The steps that build a scope of LLVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.build import made
from tests.unit.build.conftest import Golden
from tritonsmith.build.llvm import prebuilt
from tritonsmith.build.llvm.prebuilt import Consumer
from tritonsmith.core.plan import MakeDir, Plan, Step
from tritonsmith.facts.llvm_tree import LlvmTree

PREFIX, PROBE = Path("/work/llvm/a66376b0dc3b"), Path("/work/envs/dev/llvm-closure")
CONFIGURE = MakeDir(PROBE, phase=prebuilt.PHASE_PROBE)


class Triton:
    """Remembers which LLVM it was configured against."""

    def __init__(self) -> None:
        self.against: list[LlvmTree] = []

    def __call__(self, tree: LlvmTree) -> tuple[tuple[Step, ...], Path]:
        self.against.append(tree)
        return (CONFIGURE,), PROBE


def steps(*features: str, consumer: Consumer | None = None, **llvm: Any) -> tuple[Step, ...]:
    given = consumer or Consumer(Triton(), ("FileCheck", "opt"))
    return prebuilt.build(PREFIX, made.request(made.PIN, *features, **llvm), made.means(), given)


BUILT: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "closure": ((), {}),
    "python-module": ((), {"scope": "python-module"}),
    "all": ((), {"scope": "all"}),
    "named-targets": ((), {"ninja_targets": ("opt", "llc")}),
    # What Triton's configure runs is built before it.
    "filecheck-first": (("needs-filecheck",), {}),
    "filecheck-and-clang-first": (("needs-filecheck", "needs-clang"), {}),
}


@pytest.mark.parametrize("kind", BUILT)
def test_what_is_built_and_that_its_graph_is_kept(kind: str, golden: Golden) -> None:
    """The closure is what all of Triton and its tests take; the Python module takes less, and no tests."""
    features, llvm = BUILT[kind]
    golden(
        f"llvm-build-{kind}.sh", made.shell(Plan("LLVM", steps(*features, **llvm))), "llvm-build-closure.sh"
    )


def test_without_a_checkout_all_is_built(golden: Golden) -> None:
    built = prebuilt.build(PREFIX, made.request(), made.means(), None)
    golden("llvm-build-all.sh", made.shell(Plan("LLVM", built)))


def test_triton_is_configured_against_the_llvm_that_will_be() -> None:
    triton = Triton()
    steps("needs-lld", consumer=Consumer(triton, ()), targets=("X86", "NVPTX"), assertions=False)
    (tree,) = triton.against
    assert (tree.prefix, tree.build_tree, tree.static, tree.dylib) == (PREFIX, True, True, False)
    assert tree.packages >= {"mlir", "lld"}
    assert tree.targets == {"X86", "NVPTX"}
