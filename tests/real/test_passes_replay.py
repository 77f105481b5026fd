"""`passes.replay` with a build's `triton-opt`.

Needs TRITONSMITH_TRITON_BUILD: a build folder of Triton with `bin/triton-opt`, and the link `source` to its
checkout, as `build-triton` leaves them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import REAL_BUILD
from tritonsmith.compiler.dump.index import Dump, DumpedKernel, DumpIndex
from tritonsmith.compiler.replay import pass_chain, replayer, run
from tritonsmith.compiler.replay.replayer import Replayer
from tritonsmith.compiler.replay.run import ReplayResult
from tritonsmith.core.envs.workspace import Workspace

IR = """module {
  tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
    %c1 = arith.constant 1 : i32
    %a = arith.addi %n, %c1 : i32
    %b = arith.addi %n, %c1 : i32
    %c = arith.muli %a, %b : i32
    %x = arith.sitofp %c : i32 to f32
    tt.store %p, %x : !tt.ptr<f32>
    tt.return
  }
}
"""
PASSES = (
    ("inline", "inline{default-pipeline=canonicalize inlining-threshold=4294967295 max-iterations=4 }", ""),
    ("canonicalize", "canonicalize{  max-iterations=10 max-num-rewrites=-1 top-down=true}", "k"),
    ("cse", "cse", ""),
    ("tritongpu-coalesce", "tritongpu-coalesce", ""),
)


@pytest.fixture
def tool() -> Replayer:
    """The build."""
    folder = os.environ.get(REAL_BUILD)
    if not folder:
        pytest.skip(f"{REAL_BUILD} names no build folder of Triton")
    build = Path(folder).absolute()
    return Replayer(None, build / "bin" / "triton-opt", build, (build / "source").resolve())


def dumps(folder: Path, texts: list[str]) -> DumpIndex:
    """A dump's folder: before each pass one of the texts."""
    made = []
    (folder / "k").mkdir(parents=True, exist_ok=True)
    for number, ((argument, printed, function), text) in enumerate(zip(PASSES, texts, strict=True)):
        path = f"k/{number:03d}-{argument}.mlir"
        (folder / path).write_text(text)
        made.append(
            Dump(
                number=number,
                kernel="k",
                stage="ttir",
                name=argument,
                argument=argument,
                pipeline=printed,
                operation="tt.func" if function else "builtin.module",
                symbol=function,
                when="before",
                path=path,
                size=len(text),
                lines=text.count("\n"),
                sha256="",
                changed=None,
                seconds=None,
                whole=True,
            )
        )
    return DumpIndex(folder, "", "", "", 0, (DumpedKernel("k", "k", ""),), tuple(made))


def replayed(
    index: DumpIndex, number: int, tool: Replayer, root: Path, mlir: tuple[str, ...] = ()
) -> ReplayResult:
    space = Workspace(root)
    seen = run.look(index, index.kernels[0], tool, space, {})
    links = [link for link in seen.links if link.dump.number == number]
    debug = replayer.debug_output(links, tool, mlir, of_passes=False)
    (outcome,) = run.execute(run.prepare(seen, [links], tool, space, debug), space)
    return outcome


def test_what_a_pass_makes_is_the_next_dump_and_what_it_does_not_is_not(
    tool: Replayer, tmp_path: Path
) -> None:
    once = replayed(dumps(tmp_path / "a", [IR] * 4), 0, tool, tmp_path / "space")
    clean = once.job.out.read_text()
    first = replayed(dumps(tmp_path / "b", [IR, IR, clean, clean]), 0, tool, tmp_path / "space")
    assert first.verdict == "same"  # the text has no locations, so each file gives its own
    merged = replayed(dumps(tmp_path / "b", [IR, IR, clean, clean]), 2, tool, tmp_path / "space")
    assert merged.verdict == "differs"
    assert merged.job.out.read_text().count("arith.addi") == 1
    inside = replayed(dumps(tmp_path / "b", [IR, IR, clean, clean]), 1, tool, tmp_path / "space")
    assert inside.verdict == "inside"


def test_a_pass_that_fails_or_dies_is_an_outcome(tool: Replayer, tmp_path: Path) -> None:
    outcome = replayed(
        dumps(tmp_path / "a", [IR, IR, IR, IR.replace("muli", "mulli")]), 3, tool, tmp_path / "s"
    )
    assert outcome.verdict == "failed"
    assert "arith.mulli" in outcome.why


def test_debug_output_and_where_the_pass_is(tool: Replayer, tmp_path: Path) -> None:
    index = dumps(tmp_path / "a", [IR] * 4)
    if not tool.asserts():
        pytest.skip(f"{REAL_BUILD} has no assertions")
    outcome = replayed(index, 0, tool, tmp_path / "space", mlir=("greedy-rewriter",))
    assert "Processing operation" in outcome.job.log.read_text()
    (link,) = [one for one in pass_chain.of(index.dumps) if one.dump.argument == "tritongpu-coalesce"]
    found = replayer.source_of(link, tool)
    assert found.debug_type == "tritongpu-coalesce"
    assert found.file.name == "Coalesce.cpp"
    assert found.line is not None
    assert "runOnOperation" in found.file.read_text().splitlines()[found.line - 1]
