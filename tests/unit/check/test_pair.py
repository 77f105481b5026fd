"""Two versions of a kernel: right refactorings, planted bugs, and what nobody can decide."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.unit.check.refactored import PLANTED, RIGHT, family, version
from tests.unit.repositories import Made
from tritonsmith.check.against import (
    ComparedVersions,
    answer_lines,
    as_json,
    assignments,
    at_commit,
    failure,
    outcome,
    renames_of,
)
from tritonsmith.check.answer import compare_memory
from tritonsmith.check.limited import LimitedChecks
from tritonsmith.check.memory import GlobalMemory, base
from tritonsmith.check.pair import compare_versions
from tritonsmith.check.versions import KernelVersion, PairRequest, PairResult
from tritonsmith.compiler.signature import evaluated
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import EXIT_UNDECIDED, UsageError

pytestmark = pytest.mark.unit


def compared(first: KernelVersion, second: KernelVersion, **more: object) -> PairResult:
    return compare_versions(PairRequest((first, second), **more))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [name for names in RIGHT.values() for name in names])
def test_a_right_refactoring_is_the_same(name: str) -> None:
    answer = compared(version(family(name)), version(name))
    assert answer.status in ("equal", "close"), answer
    assert answer.inputs > 8
    assert sum(answer.elements.values()) > 300
    assert not answer.notes or "not tried in" in " ".join(answer.notes)


@pytest.mark.parametrize("name", [name for names in PLANTED.values() for name in names])
def test_a_planted_bug_is_found(name: str) -> None:
    answer = compared(version(family(name)), version(name))
    assert answer.status == "differs", answer
    assert answer.witness
    assert answer.witness.element
    assert answer.witness.element.argument in ("OUT", "X")


def test_a_lost_tile_is_found_by_its_grid() -> None:
    whole = version("subtract")
    answer = compared(whole, version("subtract", "n // BLOCK"))
    assert answer.status == "differs"
    assert answer.witness
    assert answer.witness.element
    assert answer.witness.element.after is None


def test_code_of_one_version_that_no_input_reaches_leaves_it_open() -> None:
    whole = version("subtract")
    store = '    "tt.store"(%1, %2, %x_5)'
    rare = """    %many = "arith.constant"() <{value = 60000 : i32}> : () -> i32
    %three = "arith.constant"() <{value = 3 : i32}> : () -> i32
    %more = "arith.muli"(%n, %three) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %far = "arith.cmpi"(%more, %many) <{predicate = 4 : i64}> : (i32, i32) -> i1
    "scf.if"(%far) ({
      "tt.store"(%1, %x_8, %x_5) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
      "scf.yield"() : () -> ()
    }, {
    }) : (i1) -> ()
"""
    assert store in whole.text
    second = replace(whole, label="with a branch", text=whole.text.replace(store, rare + store))
    answer = compared(whole, second)
    assert answer.status == "unknown", answer
    assert answer.why == "no input reached code that only one version has (tt.store)"


def test_a_kernel_is_the_same_as_itself_without_a_run() -> None:
    answer = compared(version("norm"), version("norm"))
    assert (answer.status, answer.inputs) == ("equal", 0)


@pytest.mark.parametrize(
    "grids", [("", ""), ("", "cdiv(n, BLOCK)"), ("lambda META: (triton.cdiv(n, META['BLOCK']),)", "")]
)
def test_a_grid_that_the_masks_bound_is_found(grids: tuple[str, str]) -> None:
    first, second = version("subtract", grids[0]), version("subtract_in_a_loop", grids[1])
    answer = compared(first, second)
    assert answer.status == "equal", answer
    assert not answer.guessed


def test_rows_that_nothing_bounds_are_a_guess() -> None:
    answer = compared(version("norm", ""), version("norm_by_rsqrt", ""))
    assert answer.status == "close"
    assert answer.guessed
    fewer = compared(version("norm", ""), version("norm_by_rsqrt", "2"))
    assert fewer.status == "unknown"
    assert "--grid" in fewer.why


def test_a_program_beyond_the_launch_is_no_difference() -> None:
    """Where n is two blocks, only one of them has a third program that writes: nobody launches it."""
    values = (("n", "128"),)
    answer = compared(version("subtract", ""), version("subtract_one_more", ""), values=values)
    assert answer.status == "unknown"
    assert "--grid" in answer.why
    known = compared(version("subtract"), version("subtract_one_more", "cdiv(n + 1, BLOCK)"), values=values)
    assert known.status == "differs"


def test_programs_are_found_that_have_work_only_off_the_axes() -> None:
    answer = compared(version("causal"), version("causal_off_the_diagonal"))
    assert answer.status == "differs", answer
    assert answer.witness
    assert min(answer.witness.grids[0][:2]) > 1


def test_a_sum_that_is_no_longer_atomic_is_not_the_same() -> None:
    answer = compared(version("total"), version("total_by_a_store"))
    assert answer.status == "unknown", answer
    assert answer.why == "a program of total_by_a_store reads, without atomics, what another one writes"


def test_memory_with_fractions_says_nothing_about_multiples_of_blocks() -> None:
    answer = compared(version("norm"), version("norm_in_fp16"))
    assert answer.status == "differs"
    assert "multiples of the blocks" not in " ".join(answer.notes)


def test_arguments_have_to_correspond() -> None:
    other = replace(version("subtract_in_a_loop"), names=("A", "Y", "OUT", "n"))
    renamed = replace(version("subtract_in_a_loop"), aliases={"A": "X"})
    assert compared(version("subtract"), other).status == "differs"  # a pointer of its own has other numbers
    assert compared(version("subtract"), renamed).status == "equal"
    swapped = replace(version("subtract_in_a_loop"), names=("X", "Y", "n", "OUT"))
    answer = compared(version("subtract"), swapped)
    assert answer.status == "unknown"
    assert "a pointer in one version" in answer.why


def test_an_output_that_nothing_writes_is_not_the_same() -> None:
    answer = compared(version("subtract"), version("subtract_in_a_loop"), outputs=("Y",))
    assert (answer.status, answer.why) == ("unknown", "nothing is written to Y under these inputs")


def test_a_sign_of_zero_is_another_bit_and_one_of_nan_is_not() -> None:
    """`-(y - x)` is -0 where `x - y` is 0."""
    answer = compared(version("subtract"), version("subtract_negated"))
    assert answer.status == "close"
    assert answer.unclear["OUT"] > 0
    assert answer.largest
    assert (answer.largest.before, answer.largest.after, answer.largest.apart) == (0, 0, 0)
    finite = compared(version("subtract"), version("subtract_in_a_loop"), finite=True)
    assert finite.status == "equal"
    assert finite.unclear["OUT"] == 0


def test_the_same_text_of_other_warps_may_sum_in_another_order() -> None:
    norm, subtract = version("norm"), version("subtract")
    assert compared(norm, replace(norm, options="num_warps 8")).status == "close"
    assert compared(subtract, replace(subtract, options="num_warps 8")).status == "equal"
    other = compared(subtract, replace(subtract, compiler="3.6.0"))
    assert other.status == "close"
    assert "what the two compilers make of this IR is not compared" in other.why


def test_masked_elements_that_a_kernel_takes_for_zero_are_noted() -> None:
    text = version("norm").text
    masked = re.sub(
        r'("tt.load"\(%\S+, %\S+), %\S+\) (<.*1, 1), 1>(.*, tensor<64xi1>), tensor<64xf16>\)',
        r"\1) \2, 0>\3)",
        text,
    )
    assert masked.count("1, 1, 0>") == 2
    answer = compared(version("norm"), replace(version("norm"), label="lazy", text=masked))
    assert answer.status == "close"
    assert "lazy takes 0 for masked elements of a load without other=" in answer.notes


def test_a_constant_of_one_version_is_the_value_of_the_other() -> None:
    fixed = replace(version("subtract_in_a_loop"), constants={"BLOCK": 64, "X": None})
    answer = compared(version("subtract"), fixed)
    assert (answer.status, answer.why) == (
        "unknown",
        "X is None in one version, and an argument of the other",
    )
    first = replace(version("subtract"), constants={"BLOCK": 64, "n": 100})
    assert compared(first, version("subtract_in_a_loop")).sizes == {"n": [100]}


def test_values_follow_from_others() -> None:
    values = (("stride", "n + 16 - n % 16"), ("eps", "1 / 8"))
    answer = compared(version("norm"), version("norm_by_rsqrt"), values=values)
    assert answer.status == "close"
    assert answer.sizes["stride"][0] == -(-(answer.sizes["n"][0] + 1) // 16) * 16
    unknown = compared(version("norm"), version("norm_by_rsqrt"), values=(("rows", "3"),))
    assert unknown.why == "--set rows: neither version has such a parameter at run time"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("cdiv(n, BLOCK)", (3,)),
        ("(n + BLOCK - 1) / BLOCK, 2", (3, 2)),
        ("lambda META: (triton.cdiv(n, META['BLOCK']) * min(n, 2), -1 + 2)", (6, 1)),
    ],
)
def test_a_grid_is_an_expression(text: str, size: tuple[int, ...]) -> None:
    assert evaluated(text, {"n": 130, "BLOCK": 64}, "--grid") == size


@pytest.mark.parametrize(
    "text",
    [
        "rows",
        "n.bit_length()",
        "n +",
        "__import__('os')",
        "n // 0",
        "[x for x in n]",
        "1e400",
        "next_power_of_2(4.5)",
    ],
)
def test_a_grid_is_no_program(text: str) -> None:
    with pytest.raises(UsageError, match="--grid cannot be"):
        evaluated(text, {"n": 130}, "--grid")


def test_the_answer_of_another_process_and_its_words() -> None:
    request = PairRequest((version("subtract"), version("subtract_one_more")))
    with LimitedChecks() as checks:
        answer = checks.compare(request)
    assert answer == compare_versions(request)
    row = ComparedVersions("subtract", "subtract_one_more", answer)
    lines = list(answer_lines(row))
    assert lines[0] == "subtract and subtract_one_more are different"
    assert lines[1].startswith("  first: OUT[15]: not written and ")
    assert lines[3] == "  with n=15; grid 1x1x1; seed 0"
    error = failure([row])
    assert error
    assert error.exit_code == 1
    assert as_json([row])["outcome"] == "different"


def test_an_undecided_answer_has_its_own_exit_code() -> None:
    row = ComparedVersions("a", "b", PairResult("unknown", "the reason"))
    assert list(answer_lines(row)) == ["a and b: undecided", "  the reason"]
    error = failure([row, ComparedVersions("a", "c", PairResult("equal"))])
    assert error
    assert (error.what, error.exit_code) == ("1 of 2 are undecided", EXIT_UNDECIDED)
    assert failure([ComparedVersions("a", "c", PairResult("equal"))]) is None


def test_a_version_that_no_longer_compiles_fails() -> None:
    row = ComparedVersions("k@1", "k", PairResult("broken", "NameError('x')"))
    assert list(answer_lines(row)) == ["k does not compile, and k@1 does", "  NameError('x')"]
    error = failure([row])
    assert error
    assert (outcome([row, ComparedVersions("a", "b", PairResult("equal"))]), error.exit_code) == ("broken", 1)


def test_no_comparison_is_not_the_same() -> None:
    assert outcome([]) == as_json([])["outcome"] == "nothing was compared"


def test_a_kernel_of_a_commit_has_the_files_of_its_package(tmp_path: Path) -> None:
    repository = Made(tmp_path / "clone")
    repository.commit("one", {"pack/__init__.py": "", "pack/k.py": "import pack.h\n", "pack/h.py": "A = 1\n"})
    repository.commit("two", {"pack/h.py": "A = 2\n"})
    space = Workspace(tmp_path / "home")
    kernel, label = at_commit(f"{repository.path}/pack/k.py@HEAD~1:k", space)
    file = Path(kernel.removesuffix(":k"))
    assert label == "@HEAD~1"
    assert (file.parent / "h.py").read_text() == "A = 1\n"
    assert at_commit("k.py:k", space) == ("k.py:k", "")
    with pytest.raises(UsageError, match="no commit, tag or branch"):
        at_commit(f"{repository.path}/pack/k.py@gone:k", space)


def test_a_file_of_a_commit_has_what_it_imports_from_the_folder_beside_it(tmp_path: Path) -> None:
    repository = Made(tmp_path / "clone")
    first = {
        "x/k.py": "import os\nimport helpers, tools.deep\n",
        "x/helpers.py": "from other import B\n",
        "x/other.py": "B = 1\n",
        "x/tools/__init__.py": "",
        "x/tools/deep.py": "",
        "x/stranger.py": "",
        "helpers.py": "",
    }
    repository.commit("one", first)
    repository.commit("two", {"x/other.py": "B = 2\n"})
    kernel, _ = at_commit(f"{repository.path}/x/k.py@HEAD~1:k", Workspace(tmp_path / "home"))
    folder = Path(kernel.removesuffix(":k")).parent
    assert (folder / "other.py").read_text() == "B = 1\n"
    names = sorted(path.relative_to(folder.parent).as_posix() for path in folder.parent.rglob("*.py"))
    assert names == ["x/helpers.py", "x/k.py", "x/other.py", "x/tools/__init__.py", "x/tools/deep.py"]


def test_a_fraction_is_no_value_of_an_integer() -> None:
    first, second = version("norm"), version("norm_by_rsqrt")
    for text, why in (("2.5", "gives 2.5, and n is an integer"), ("n / 2 + 0.25", "is an integer")):
        with pytest.raises(UsageError, match=why):
            compared(first, second, values=(("n", text),))
    with pytest.raises(UsageError, match="--set n cannot be '2, 3'"):
        compared(first, second, values=(("n", "2, 3"),))
    assert compared(first, second, values=(("n", "70.0"), ("eps", "0.5"))).status == "close"


def test_a_name_is_given_once() -> None:
    assert renames_of(("x=X", "y=Y")) == {"X": "x", "Y": "y"}
    with pytest.raises(UsageError, match="--rename has x twice: x=X and x=Y"):
        renames_of(("x=X", "x=Y"))
    with pytest.raises(UsageError, match="--rename gives X of B two names: x and y"):
        renames_of(("x=X", "y=X"))
    with pytest.raises(UsageError, match="--set has n twice"):
        assignments(("n=1", "n=2"), "--set")


def test_where_a_search_for_programs_ends_is_noted() -> None:
    note = "the grid was taken to end where 3 programs in a row write nothing (--grid)"
    assert note in compared(version("subtract", ""), version("subtract_negated", "")).notes
    assert note not in compared(version("subtract"), version("subtract_negated")).notes


def test_the_smallest_numbers_of_fp16_are_equally_far_apart() -> None:
    small = np.array([-3.6e-7], np.float16), np.array([-3e-7], np.float16)
    memories = []
    for values in small:
        memory = GlobalMemory(1)
        memory.store(np.asarray([base(0)]), values)
        memories.append(memory)
    apart, difference = compare_memory(memories[0], memories[1])
    assert difference is None
    assert 0 < apart < 1e-3


_LAST = "depends on which thread comes last"


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ("halves", "halves_of_the_last", f"OUT[0] of halves {_LAST}"),
        ("halves_of_the_last", "halves", f"OUT[0] of halves {_LAST}"),
        ("pairs", "pairs_read_too_early", f"what is read of X[9] of pairs_read_too_early {_LAST}"),
        ("exchange", "exchange_by_a_multiple", f"OUT[0] of exchange {_LAST}"),
        # The first and the last program agree, so that the reverse order leaves the same.
        (
            "alternating",
            "alternating_by_a_multiple",
            "OUT[0] of alternating depends on which program comes last",
        ),
    ],
)
def test_different_values_in_one_place_leave_it_open(first: str, second: str, why: str) -> None:
    answer = compared(version(first), version(second))
    assert (answer.status, answer.why) == ("unknown", why), answer


def test_equal_values_in_one_place_are_no_race() -> None:
    line = '    "tt.return"() : () -> ()\n'
    first = version("pairs")
    other = first.text.replace(
        line, f'    %unused = "tt.get_num_programs"() <{{axis = 0 : i32}}> : () -> i32\n{line}'
    )
    answer = compared(first, replace(first, label="other", text=other))
    assert (answer.status, answer.inputs > 8) == ("equal", True), answer


def test_a_difference_beside_a_race_is_found() -> None:
    answer = compared(version("halves"), version("halves_doubled"))
    assert answer.status == "differs", answer
    assert answer.witness
    assert answer.witness.element
    assert answer.witness.element.offset == 4  # of nine elements the last one has a place of its own


def test_the_same_text_of_other_options_may_have_another_thread_last() -> None:
    halves, pairs = version("halves"), version("pairs")
    answer = compared(halves, replace(halves, options="num_warps=8"))
    assert (answer.status, answer.why) == ("unknown", f"OUT[0] of halves {_LAST}"), answer
    assert compared(pairs, replace(pairs, options="num_warps=8")).status == "equal"
    assert compared(halves, halves).status == "equal"  # one binary


def test_indices_of_a_scatter_do_not_repeat() -> None:
    same = compared(version("scatter"), version("scatter_by_a_multiple"))
    assert same.status == "equal", same
    assert "integers in memory ascend: where they repeat, the order of writes decides" in same.notes
    wrong = compared(version("scatter"), version("scatter_of_one_less"))
    assert wrong.status == "differs", wrong


def test_a_race_among_arguments_that_are_not_compared_is_none() -> None:
    first, second = version("halves"), version("halves_of_the_last")
    assert compared(first, second, outputs=("X",)).why == "nothing is written to X under these inputs"
