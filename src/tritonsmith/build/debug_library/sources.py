"""The location of an LLVM's sources, or the steps that fetch them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tritonsmith.build.llvm import source as llvm_source
from tritonsmith.build.llvm.request import LlvmRequest
from tritonsmith.build.llvm.source import LlvmSource, SourceTree
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.core.envs import receipts
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Plan
from tritonsmith.facts import llvm_tree
from tritonsmith.facts.checkout import LlvmPin


def of(inputs: Inputs) -> SourceTree:
    """Return the LLVM's sources: those given, those it was built from, or those used last time.

    Raises:
        FactError: the sources cannot be located.
    """
    settings, tree = inputs.settings, inputs.llvm
    if settings.llvm.source:
        source = llvm_source.locate(settings.llvm.source)
        if source.kind == "checkout":
            return SourceTree(Path(source.location), source.commit, ())
        return _obtained(source, inputs)
    last = (receipts.read(inputs.env.receipt("debug-library")) or {}).get("sources")
    for path in (llvm_tree.source_of(tree.prefix), Path(last) if last else None):
        if path is not None and (path / "llvm" / "CMakeLists.txt").is_file():
            return SourceTree(path, llvm_tree.source_commit(path), ())
    if tree.commit:
        return _obtained(llvm_source.locate(""), inputs)
    raise FactError(
        f"cannot locate the sources of LLVM {tree.version}",
        where=tree.prefix,
        why="this LLVM does not record its commit and was not built here",
        hints=[
            "give the sources: --llvm-source PATH_OR_URL (a checkout, or a tarball of that release)",
            f"Debian and Ubuntu: apt source llvm-toolchain-{tree.major}, then --llvm-source with that folder",
        ],
    )


def _obtained(source: LlvmSource, inputs: Inputs) -> SourceTree:
    """Fetch the LLVM's own commit instead of Triton's pin; no steps if all of them are done."""
    settings, llvm = replace(inputs.settings.llvm, any_commit=True), inputs.llvm
    pin = LlvmPin(llvm.commit, str(llvm.prefix)) if llvm.commit else None
    tree = llvm_source.obtain(source, LlvmRequest(pin, frozenset(), "", settings), inputs.workspace)
    done = all(step.stamp and step.stamp.holds() for step in tree.steps)
    return replace(tree, steps=()) if done else tree


def fetching(tree: SourceTree) -> Plan:
    """Return the plan that fetches the sources."""
    return Plan("LLVM's sources", tree.steps)
