"""The steps that build a scope of LLVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.build import made
from tritonsmith.build.llvm import prebuilt
from tritonsmith.build.llvm.prebuilt import Consumer
from tritonsmith.core.plan import BuildUsed, Copy, MakeDir, Run, Step
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


def used(built: tuple[Step, ...]) -> BuildUsed:
    (step,) = (step for step in built if isinstance(step, BuildUsed))
    return step


def test_the_closure_is_what_all_of_triton_and_its_tests_take() -> None:
    built = steps()
    assert built[0] == CONFIGURE
    assert (used(built).tree, used(built).user) == (PREFIX, PROBE)
    assert (used(built).of, used(built).programs, used(built).jobs) == ((), ("FileCheck", "opt"), 16)


def test_the_graph_is_kept_once_it_is_built() -> None:
    *_, built, rules = steps()
    assert isinstance(built, Copy)
    assert isinstance(rules, Copy)
    assert (built.source, rules.source.name) == (PREFIX / "build.ninja", "rules.ninja")


def test_the_python_module_takes_less_and_runs_no_tests() -> None:
    built = used(steps(scope="python-module"))
    assert (built.of, built.programs) == (("triton",), ())


def test_triton_is_configured_against_the_llvm_that_will_be() -> None:
    triton = Triton()
    steps("needs-lld", consumer=Consumer(triton, ()), targets=("X86", "NVPTX"), assertions=False)
    (tree,) = triton.against
    assert (tree.prefix, tree.build_tree, tree.static, tree.dylib) == (PREFIX, True, True, False)
    assert tree.packages >= {"mlir", "lld"}
    assert tree.targets == {"X86", "NVPTX"}


@pytest.mark.parametrize(
    ("features", "first"),
    [
        ((), ()),
        (("needs-filecheck",), ("FileCheck",)),
        (("needs-filecheck", "needs-clang"), ("FileCheck", "clang")),
    ],
)
def test_what_tritons_configure_runs_is_built_before_it(
    features: tuple[str, ...], first: tuple[str, ...]
) -> None:
    built = steps(*features)
    before = [step for step in built[: built.index(CONFIGURE)] if isinstance(step, Run)]
    assert [step.argv[4:] for step in before] == ([first] if first else [])


@pytest.mark.parametrize(
    ("llvm", "targets"), [({"scope": "all"}, ()), ({"ninja_targets": ("opt", "llc")}, ("opt", "llc"))]
)
def test_all_and_named_targets_need_no_triton(llvm: dict[str, Any], targets: tuple[str, ...]) -> None:
    step, *kept = steps(consumer=None, **llvm)
    assert all(isinstance(copy, Copy) for copy in kept)
    assert isinstance(step, Run)
    assert step.argv[3:] == ("-j16", *targets)


def test_without_a_checkout_all_is_built() -> None:
    request = made.request()
    step, *_ = prebuilt.build(PREFIX, request, made.means(), None)
    assert isinstance(step, Run)
    assert step.argv[3:] == ("-j16",)
