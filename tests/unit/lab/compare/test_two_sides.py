"""Two sides: where their output folders come from, and what a comparison that was stopped has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lab.compare import compiler
from tritonsmith.compiler import targets, tritons
from tritonsmith.compiler.kernels import kernel_list
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import InterruptedRunError, SmithError, UsageError
from tritonsmith.lab.batch.run import BatchOptions
from tritonsmith.lab.compare import matching, thresholds, two_sides
from tritonsmith.lab.compare.matching import Comparison
from tritonsmith.lab.compare.two_sides import ComparedKernel, ComparisonInputs
from tritonsmith.lab.experiment import Rules
from tritonsmith.lab.journal import Journal, Verdict

FILE = "import triton\n\n@triton.jit\ndef add(x):\n    pass\n"
LIST = """
[[kernel]]
file = "k.py"
signature = "*fp32"
options = { num_warps = 2, maxnreg = 64 }

[[kernel]]
file = "k.py"
name = "a new one"
signature = "*fp32"
versions = ">=3.6"
"""
H100 = targets.parse_all(["h100"])
OLD, NEW = (Triton(version, version=version) for version in ("3.4.0", "3.9.0"))
WHEEL = Triton("wheel", env="wheel")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with one kernel, in a folder with a list of it, beside a workspace."""
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    (tmp_path / "list.toml").write_text(LIST)
    path = tmp_path / "k.py"
    path.write_text(FILE)
    return path


def listed(path: Path, options: Mapping[str, Any] | None = None) -> tuple[ComparedKernel, ...]:
    """The kernels of a list, with flags."""
    flags = CompileRequest(Path(), "", "", H100, options or {})
    return two_sides.listed_kernels(kernel_list.read(path), path, flags)


def test_both_sides_compile_into_folders_of_one_name(file: Path, tmp_path: Path) -> None:
    kernels = two_sides.single_kernel(CompileRequest(file, "", "*fp32", H100))
    found = two_sides.prepare(OLD, WHEEL, kernels, tmp_path / "o")
    assert [job.out for job in found.jobs] == [tmp_path / "o" / "a" / "add", tmp_path / "o" / "b" / "add"]
    assert [job.request.kernel for job in found.jobs] == ["add", "add"]
    assert not found.own


def test_a_side_that_is_a_folder_compiles_nothing(file: Path, tmp_path: Path) -> None:
    kernels = two_sides.single_kernel(CompileRequest(file, "", "*fp32", H100))
    found = two_sides.prepare(Triton("out", folder=tmp_path), WHEEL, kernels, None)
    assert found.jobs_a == ()
    assert len(found.jobs_b) == 1
    assert found.own
    assert found.out.is_relative_to(tmp_path / "home")


def test_a_list_of_kernels(file: Path) -> None:
    kernels = listed(file.with_name("list.toml"), {"num_warps": 8})
    assert [kernel.name for kernel in kernels] == ["k", "a_new_one"]
    assert kernels[0].asked.options == {"num_warps": 8, "maxnreg": 64}  # flags win
    assert {kernel.asked.kernel for kernel in kernels} == {"add"}
    found = two_sides.prepare(OLD, NEW, kernels, None)
    assert [job.out.name for job in found.jobs_a] == ["k"]
    assert [job.out.name for job in found.jobs_b] == ["k", "a_new_one"]


@pytest.mark.parametrize(
    ("first", "second"),
    [('name = "a b"', 'name = "a_b"'), ('name = "k"\nversions = ">=3.2"', 'name = "k"\nversions = ">=3.4"')],
)
def test_two_kernels_never_share_a_folder(file: Path, first: str, second: str) -> None:
    one = '[[kernel]]\nfile = "k.py"\nsignature = "*fp32"\n'
    file.with_name("list.toml").write_text(f"{one}{first}\n{one}{second}\n")
    kernels = listed(file.with_name("list.toml"))
    with pytest.raises(UsageError, match="two kernels of the list would use the same folder"):
        two_sides.prepare(OLD, NEW, kernels, None)


def test_a_list_with_nothing_for_a_side(file: Path) -> None:
    file.with_name("list.toml").write_text(
        '[[kernel]]\nfile = "k.py"\nsignature = "*fp32"\nversions = ">=3.6"\n'
    )
    kernels = listed(file.with_name("list.toml"))
    with pytest.raises(UsageError, match=r"no kernel in the list is for Triton 3\.4\.0"):
        two_sides.prepare(OLD, NEW, kernels, None)


def test_a_file_where_the_folder_goes_is_said_before_anything_is_compiled(file: Path) -> None:
    kernels = two_sides.single_kernel(CompileRequest(file, "", "*fp32", H100))
    for out in (file, file / "below"):
        with pytest.raises(UsageError, match="the output folder is a file") as caught:
            two_sides.prepare(OLD, WHEEL, kernels, out)
        assert caught.value.where == str(file)


def test_what_contradicts_itself(file: Path, tmp_path: Path) -> None:
    kernels = two_sides.single_kernel(CompileRequest(file, "", "*fp32", H100))
    folder = Triton("out", folder=tmp_path)
    with pytest.raises(UsageError, match="a kernel cannot be given"):
        two_sides.prepare(folder, folder, kernels, None)
    with pytest.raises(UsageError, match="no kernel is given"):
        two_sides.prepare(folder, OLD, (), None)
    with pytest.raises(UsageError, match=r"'3\.4\.0' and '3\.4\.0'"):
        two_sides.prepare(OLD, OLD, (), None)
    with pytest.raises(SmithError, match="no such file"):
        two_sides.single_kernel(CompileRequest(file.with_name("kk.py"), "", "*fp32", H100))


def test_only_a_folder_of_the_workspace_is_removed(file: Path, tmp_path: Path) -> None:
    kernels = two_sides.single_kernel(CompileRequest(file, "", "*fp32", H100))
    own, users = (two_sides.prepare(OLD, NEW, kernels, place) for place in (None, tmp_path / "o"))
    assert f"rm -rf -- {own.out}" in two_sides.plan(own, "wheel").shell()
    assert f"rm -rf -- {users.out}" not in two_sides.plan(users, "wheel").shell()


@pytest.fixture
def compiled_sides(tmp_path: Path) -> tuple[ComparisonInputs, Path, Path]:
    """Two interpreters and two kernels, with a folder for the comparison."""
    old, new = (compiler.make(tmp_path / version, version) for version in ("3.4.0", "3.6.0"))
    for name in ("one", "two"):
        compiler.kernel(tmp_path, name)
    text = "".join(f'[[kernel]]\nfile = "{name}.py"\nsignature = "*fp32,64"\n' for name in ("one", "two"))
    (tmp_path / "kernels.toml").write_text(text)
    a, b = (tritons.parse(str(python)) for python in (old, new))
    kernels = two_sides.listed_kernels(
        kernel_list.read(tmp_path / "kernels.toml"), tmp_path / "k.toml", CompileRequest(Path(), "", "", H100)
    )
    return two_sides.prepare(a, b, kernels, tmp_path / "out"), old, new


def execute(
    sides: ComparisonInputs, rules: Rules | None = None, fail_on: str | None = None
) -> tuple[Comparison, Journal]:
    options = BatchOptions(count=1, silent=True)
    with two_sides.held(sides):
        return two_sides.execute(sides, thresholds.parse(fail_on), options, rules or Rules())


def stop(sides: ComparisonInputs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile both sides; ^C comes before they are compared."""

    def stopped(*_: object, **__: object) -> None:
        raise InterruptedRunError("interrupted")

    with monkeypatch.context() as patch:
        patch.setattr(matching, "compare", stopped)
        with pytest.raises(InterruptedRunError):
            execute(sides)


@pytest.mark.slow
@pytest.mark.usefixtures("in_threads")
def test_a_comparison_compiles_anew_unless_the_last_one_was_stopped(
    compiled_sides: tuple[ComparisonInputs, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    sides, old, new = compiled_sides
    comparison, journal = execute(sides)
    assert [pair.pair.kernel for pair in comparison.compared] == ["one", "two"]
    assert journal.answer == "0 of 2 pairs differ"
    assert [name.split()[0] for name in journal.observations] == ["one", "two", "one", "two"]
    execute(sides)
    assert (len(compiler.compiled(old)), len(compiler.compiled(new))) == (4, 4)
    stop(sides, monkeypatch)
    assert (len(compiler.compiled(old)), len(compiler.compiled(new))) == (6, 6)
    again, _ = execute(sides)
    assert (len(compiler.compiled(old)), len(compiler.compiled(new))) == (6, 6)
    assert len(again.compared) == 2
    execute(sides)
    assert len(compiler.compiled(old)) == 8


@pytest.mark.usefixtures("in_threads")
def test_a_kernel_that_is_skipped_is_noted_and_not_compared(
    compiled_sides: tuple[ComparisonInputs, Path, Path],
) -> None:
    sides, old, _ = compiled_sides
    comparison, journal = execute(sides, Rules(skip=("two",)))
    assert [pair.pair.kernel for pair in comparison.compared] == ["one"]
    assert [note.split()[0] for note in comparison.notes if note.endswith("skipped by hand")] == ["two"] * 2
    assert compiler.compiled(old) == ["one cuda-90-32"]
    assert len(journal.skipped) == 2


@pytest.mark.usefixtures("in_threads")
def test_a_kernel_that_is_skipped_is_not_compared_with_results_of_a_run_that_was_stopped(
    compiled_sides: tuple[ComparisonInputs, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    sides, old, _ = compiled_sides
    stop(sides, monkeypatch)
    comparison, _ = execute(sides, Rules(skip=("two",)))
    assert [pair.pair.kernel for pair in comparison.compared] == ["one"]
    assert len(compiler.compiled(old)) == 2


@pytest.fixture
def two_vendors(compiled_sides: tuple[ComparisonInputs, Path, Path], tmp_path: Path) -> ComparisonInputs:
    """A kernel by two Tritons, for two targets of NVIDIA and two of AMD."""
    _, old, new = compiled_sides
    a, b = tritons.parse(f"{old},cuda:80,cuda:90"), tritons.parse(f"{new},gfx90a,gfx942")
    kernels = two_sides.single_kernel(CompileRequest(tmp_path / "one.py", "", "*fp32,64", H100))
    return two_sides.prepare(a, b, kernels, tmp_path / "vendors")


@pytest.mark.usefixtures("in_threads")
def test_a_target_whose_baseline_is_skipped_is_not_compared_with_another(
    two_vendors: ComparisonInputs,
) -> None:
    first, second, *ours = two_vendors.cells
    comparison, journal = execute(two_vendors, Rules(skip=(first.name,)))
    assert [(pair.pair.a.point.target, pair.pair.b.point.target) for pair in comparison.compared] == [
        (second.target, ours[1].target)
    ]
    assert {cell.target: journal.observations[cell.name][0].why for cell in ours} == {
        ours[0].target: "its baseline was not tested", ours[1].target: "",
    }  # fmt: skip


@pytest.mark.usefixtures("in_threads")
def test_targets_that_are_compiled_again_are_compared_with_the_same_ones(
    two_vendors: ComparisonInputs,
) -> None:
    comparison, journal = execute(two_vendors, Rules(confirm=2), "ptx>1")
    verdicts = [[row.verdict for row in journal.observations[cell.name]] for cell in two_vendors.cells]
    assert verdicts == [[Verdict.GOOD] * 2] * 2 + [[Verdict.BAD] * 2] * 2
    assert not [note for note in comparison.notes if "flaky" in note]


@pytest.mark.usefixtures("in_threads")
def test_compiled_kernels_are_a_baseline_that_is_left_as_it_is(
    compiled_sides: tuple[ComparisonInputs, Path, Path], tmp_path: Path
) -> None:
    sides, old, _ = compiled_sides
    execute(sides)
    before = {path: path.read_bytes() for path in (tmp_path / "out" / "a").rglob("*") if path.is_file()}
    given = Triton("a", folder=tmp_path / "out" / "a")
    kernels = two_sides.single_kernel(CompileRequest(tmp_path / "one.py", "", "*fp32,64", H100))
    comparison, journal = execute(two_sides.prepare(given, sides.b, kernels, None))
    assert [pair.pair.kernel for pair in comparison.compared] == ["one"]
    assert len(compiler.compiled(old)) == 2
    assert {row.verdict for tests in journal.observations.values() for row in tests} == {Verdict.GOOD}
    assert {path: path.read_bytes() for path in before} == before
    assert set(before) == {path for path in (tmp_path / "out" / "a").rglob("*") if path.is_file()}
