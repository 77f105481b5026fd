"""What a pass did, and where two runs part."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.compiler.dump import streams
from tests.unit.compiler.dump.streams import banner, split
from tritonsmith.compiler.dump.index import Dump, DumpedKernel, DumpIndex
from tritonsmith.core.errors import FactError
from tritonsmith.inspect import show_passes as show
from tritonsmith.inspect.show_passes import ComparedRun, IrChange
from tritonsmith.ir.normalize import diff as normalize_diff

WIDE = "#ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>"
NARROW = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>"


def module(*body: str, target: str = "cuda:90", layouts: Sequence[str] = (), names: str = "%x") -> str:
    aliases = "".join(f"#blocked{number or ''} = {one}\n" for number, one in enumerate(layouts))
    lines = "".join(f"    {line.replace('%x', names)}\n" for line in body)
    head = f'module attributes {{ttg.target = "{target}"}} {{\n  tt.func public @k(%arg0: i32) {{\n'
    return f"{aliases}{head}{lines}    tt.return\n  }}\n}}\n"


ADD = "%x0 = arith.addi %arg0, %arg0 : i32 loc(#loc1)"
MUL = "%x1 = arith.muli %x0, %x0 : i32 loc(#loc2)"
STORE = "tt.store %x1 : i32"


def run(folder: Path, steps: Sequence[tuple[str, str]], last: str, target: str = "cuda:90") -> ComparedRun:
    """A run of passes, each with its IR before it; and the IR after the last."""
    folder.mkdir()
    dumps = []
    texts = [text for _, text in steps] + [last]
    for number, (name, text) in enumerate([*steps, ("the-end", last)]):
        path = f"{number:03}-{name}.mlir"
        (folder / path).write_text(text)
        after = number + 1 if number < len(steps) else None
        dumps.append(
            Dump(
                number=number, kernel="k", stage="ttgir", name=name, argument=name, pipeline=name,
                operation="builtin.module", symbol="", when="before", path=path, size=len(text),
                lines=text.count("\n"), sha256=hashlib.sha256(text.encode()).hexdigest(),
                changed=None if after is None else texts[after] != text, seconds=None, whole=True,
                against=after,
            )
        )  # fmt: skip
    kernel = DumpedKernel("k", "k", target)
    return ComparedRun(DumpIndex(folder, "", "3.9.0", "", 0, (kernel,), tuple(dumps)), kernel)


def test_what_a_pass_did_is_its_input_against_the_next_dump(tmp_path: Path) -> None:
    made = run(tmp_path / "a", [("cse", module(ADD)), ("licm", module(ADD, MUL))], module(ADD, MUL))
    one, two = show.before_and_after(made.index, made.dumps[0])
    found = normalize_diff.of(made.index.text(one), made.index.text(two), "mlir")
    assert (found.removed, found.added) == (0, 1)
    assert any(line.startswith("+") and "arith.muli" in line for line in found.lines)


def test_what_the_last_pass_left_is_not_known(tmp_path: Path) -> None:
    made = run(tmp_path / "a", [("cse", module(ADD))], module(ADD))
    with pytest.raises(FactError, match="the output of the-end is not in this dump"):
        show.before_and_after(made.index, made.dumps[-1])


def test_operations_are_counted() -> None:
    found = show.operations(module(ADD, MUL), module(ADD, ADD, ADD), "mlir")
    assert found == (IrChange("arith.addi", 1, 3), IrChange("arith.muli", 1, 0))


def test_layouts_are_told_by_what_they_are() -> None:
    before = module("%x0 = a.b : tensor<1xi32, #blocked>", layouts=[WIDE])
    renamed = module("%x0 = a.b : tensor<1xi32, #blocked1>", layouts=[NARROW, WIDE])
    assert show.layouts(before, renamed) == ()
    swapped = module("%x0 = a.b : tensor<1xi32, #blocked>", layouts=[NARROW])
    assert show.layouts(before, swapped) == (IrChange(NARROW, 0, 1), IrChange(WIDE, 1, 0))


def test_a_layout_inside_a_layout_is_spelled_out() -> None:
    slice_ = "#ttg.slice<{dim = 0, parent = #blocked}>"
    ir = module("%x0 = a.b : tensor<1xi32, #blocked1>", layouts=[WIDE, slice_])
    (only,) = show.layouts(module(), ir)
    assert only.what == slice_.replace("#blocked", WIDE)


def test_runs_that_differ_in_names_and_locations_do_not_part(tmp_path: Path) -> None:
    one = run(tmp_path / "a", [("cse", module(ADD)), ("licm", module(ADD, MUL))], module(ADD, MUL))
    text = module(ADD, MUL, names="%y").replace("#loc1", "#loc77")
    two = run(tmp_path / "b", [("cse", module(ADD, names="%y")), ("licm", text)], text)
    found = show.divergence(one, two)
    assert (found.mine, found.theirs) == (None, None)
    assert show.describe(found) == "no difference: 3 passes have equal results in both"


def test_the_pass_that_left_something_else_is_the_first(tmp_path: Path) -> None:
    one = run(tmp_path / "a", [("cse", module(ADD)), ("licm", module(ADD)), ("dce", module(ADD, MUL))], "x")
    two = run(tmp_path / "b", [("cse", module(ADD)), ("licm", module(ADD)), ("dce", module(MUL))], "y")
    found = show.divergence(one, two)
    assert (found.same, found.mine, found.theirs) == (1, one.dumps[1], two.dumps[1])
    assert "the first difference is at licm (1 here, 1 there)" in show.describe(found)


def test_runs_that_meet_again_part_for_good_at_a_later_pass(tmp_path: Path) -> None:
    one = run(tmp_path / "a", [("cse", module(ADD)), ("licm", module(ADD)), ("dce", module(MUL))], "x")
    two = run(tmp_path / "b", [("cse", module(ADD)), ("licm", module(MUL)), ("dce", module(MUL))], "y")
    assert show.divergence(one, two).mine == one.dumps[0]
    found = show.divergence(one, two, lasting=True)
    assert (found.mine, found.theirs) == (one.dumps[2], two.dumps[2])


def test_passes_that_show_nothing_in_both_do_not_make_runs_meet(tmp_path: Path) -> None:
    runs = [
        run(tmp_path / name, [("cse", module(ADD)), ("dce", left)], left)
        for name, left in (("a", module(ADD)), ("b", module(MUL)))
    ]
    found = show.divergence(runs[0], runs[1], lasting=True)
    assert (found.mine, found.theirs) == (runs[0].dumps[0], runs[1].dumps[0])


def test_a_pass_that_only_one_has_parts_them_if_it_changes_something(tmp_path: Path) -> None:
    same = [("cse", module(ADD)), ("dce", module(ADD))]
    plain = run(tmp_path / "a", same, module(ADD))
    idle = run(tmp_path / "b", [same[0], ("more", module(ADD)), same[1]], module(ADD))
    assert show.divergence(plain, idle).theirs is None
    busy = run(tmp_path / "c", [same[0], ("more", module(ADD)), ("dce", module(MUL))], module(MUL))
    found = show.divergence(plain, busy)
    assert (found.mine, found.theirs) == (None, busy.dumps[1])
    assert "more (1) changes the IR only there" in show.describe(found)


def test_the_name_of_the_target_parts_nothing(tmp_path: Path) -> None:
    one = run(tmp_path / "a", [("cse", module(ADD)), ("mma", module(ADD))], module(MUL))
    old = module(ADD, target="cuda:80")
    two = run(tmp_path / "b", [("cse", old), ("mma", old)], module(ADD, target="cuda:80"), "cuda:80")
    found = show.divergence(one, two)
    assert found.mine is not None
    assert (found.same, found.mine.name) == (1, "mma")


def test_kernels_that_are_not_the_same_are_said_to_be(tmp_path: Path) -> None:
    one = run(tmp_path / "a", [("cse", module(ADD))], module(ADD))
    two = run(tmp_path / "b", [("cse", module(MUL))], module(MUL))
    assert show.divergence(one, two).already


LLVM_IR = "define void @add() {{\n  {}\n}}\n"


def llvm_run(folder: Path, *lines: str, backend: bool = False) -> ComparedRun:
    """One pass of MLIR's, then LLVM's, each with the line that it left; then PTX with the last line."""
    stream = banner("Last", "last") + streams.module("%0 = x")
    stream += "".join(
        f"; *** IR Dump After P{number} on add ***\n{LLVM_IR.format(line)}"
        for number, line in enumerate(lines)
    )
    more = f"// -----// NVPTX Dump //----- //\n.version 8.4\n.entry add(\n)\n{{\n\t{lines[-1]};\n}}\n"
    index = split(stream + more * backend, folder)
    return ComparedRun(index, index.kernels[0])


def test_runs_part_in_llvms_passes_too(tmp_path: Path) -> None:
    one, other = llvm_run(tmp_path / "a", "fmul", "fma"), llvm_run(tmp_path / "b", "fmul", "fadd")
    found = show.divergence(one, other)
    assert found.mine is not None
    assert (found.same, found.mine.name) == (2, "P1")
    assert show.after_pass(one.index, found.mine) == found.mine
    assert show.divergence(one, llvm_run(tmp_path / "c", "fmul", "fma")).mine is None


def test_runs_part_in_assembly_if_nothing_else_was_printed(tmp_path: Path) -> None:
    one, other = (llvm_run(tmp_path / word, "x", word, backend=True) for word in ("fma", "mul"))
    only = [replace(run.index, dumps=run.dumps[:1] + run.dumps[-1:]) for run in (one, other)]
    found = show.divergence(*(ComparedRun(index, index.kernels[0]) for index in only))
    assert found.mine is not None
    assert (found.mine.stage, show.language(found.mine)) == ("ptx", "ptx")


def test_what_only_one_run_printed_is_no_difference(tmp_path: Path) -> None:
    one, other = (
        llvm_run(tmp_path / "a", "fmul", "fma"),
        llvm_run(tmp_path / "b", "fmul", "fma", backend=True),
    )
    assert show.divergence(one, other).mine is None
    mlir = replace(one.index, dumps=one.dumps[:1])
    found = show.divergence(one, ComparedRun(mlir, mlir.kernels[0]))
    assert (found.mine, found.theirs, found.same) == (None, None, 1)


def test_a_run_that_ends_parts_from_one_that_goes_on(tmp_path: Path) -> None:
    one = run(tmp_path / "a", [("cse", module(ADD)), ("licm", module(ADD))], "x")
    short = replace(one.index, dumps=(replace(one.dumps[0], against=None),))
    found = show.divergence(one, ComparedRun(short, short.kernels[0]))
    assert "difference is at cse (0 here, 0 there): its output was not printed there" in show.describe(found)


def test_what_llvms_first_pass_was_given_is_not_known(tmp_path: Path) -> None:
    made = llvm_run(tmp_path / "a", "fmul")
    with pytest.raises(FactError, match="the input of P0 is not in this dump"):
        show.before_and_after(made.index, made.dumps[1])
