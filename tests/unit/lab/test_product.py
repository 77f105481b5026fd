"""Every kernel by every Triton for every target: what is tested again, what is not, and what is skipped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.lab.compare import compiler
from tests.unit.lab.fake_subject import FakeSubject
from tritonsmith.compiler import targets, tritons
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import InterruptedRunError
from tritonsmith.lab import experiment, product
from tritonsmith.lab.batch import kept
from tritonsmith.lab.batch.kept import CompileJob
from tritonsmith.lab.batch.run import BatchOptions
from tritonsmith.lab.experiment import Rules
from tritonsmith.lab.journal import Observation, Verdict
from tritonsmith.lab.product import Cell, CompiledKernels

BOTH = targets.parse_all(["a100", "mi300x"])
NAMES = ["one 3.4.0 cuda:80:32", "one 3.4.0 hip:gfx942:64", "two 3.4.0 cuda:80:32", "two 3.4.0 hip:gfx942:64"]
pytestmark = pytest.mark.usefixtures("in_threads")


@pytest.fixture
def python(tmp_path: Path) -> Path:
    return compiler.make(tmp_path / "venv")


@pytest.fixture
def cells(tmp_path: Path, python: Path) -> tuple[Cell, ...]:
    """Two kernels for two targets; the second one's compile is compared with the first one's."""
    jobs = []
    for name in ("one", "two"):
        request = CompileRequest(compiler.kernel(tmp_path, name), name, "*fp32,64", BOTH)
        jobs.append(CompileJob(request, tritons.parse(str(python)), tmp_path / "out" / name))
    first, second = jobs
    return (*product.cells("two", "3.4.0", second, first), *product.cells("one", "3.4.0", first))


def yes(lives: int = -1) -> FakeSubject[Verdict]:
    """Yes to every question; ^C comes after so many."""
    return FakeSubject(lambda _: Verdict.GOOD, lives=lives, killed=InterruptedRunError("interrupted"))


def run(
    folder: Path, cells: tuple[Cell, ...], asked: FakeSubject[Verdict], rules: Rules | None = None
) -> Mapping[str, Observation]:
    def question(cell: Cell, manifests: Mapping[Path, Manifest]) -> Observation:
        assert cell.job
        assert cell.job.out in manifests
        assert not cell.baseline or cell.baseline.out in manifests, "it has to wait for its baseline"
        verdict = asked.ask(cell.name)
        points = [point for point in manifests[cell.job.out].points if point.target == cell.target]
        return product.observation(points, verdict, f"test {asked.tested.count(cell.name)}")

    workspace.default().claim()
    subject = CompiledKernels(question, BatchOptions(count=2, resume=True, silent=True))
    with product.recorded(folder, "test", cells, "", rules or Rules()) as (journal, earlier):
        observations = product.execute(cells, subject, journal, earlier)
        journal.end("over")
    return observations


def test_a_cell_waits_for_its_baseline_and_each_is_observed(
    cells: tuple[Cell, ...], tmp_path: Path, python: Path
) -> None:
    question = yes()
    observations = run(tmp_path, cells, question)
    assert sorted(question.tested) == NAMES
    assert sorted(observations) == NAMES
    assert all(row.verdict is Verdict.GOOD and row.seconds for row in observations.values())
    assert len(compiler.compiled(python)) == 4
    journal = experiment.status(tmp_path)
    assert journal
    assert (sorted(journal.observations), journal.ended, journal.answer) == (NAMES, True, "over")


def test_a_run_that_was_stopped_goes_on_with_its_observations(
    cells: tuple[Cell, ...], tmp_path: Path, python: Path
) -> None:
    first = yes(2)
    with pytest.raises(InterruptedRunError, match="what was tested is kept") as caught:
        run(tmp_path, cells, first)
    assert caught.value.hints == ("run the same command again to continue",)
    journal = experiment.status(tmp_path)
    assert journal
    assert (sorted(journal.observations), journal.ended) == (sorted(first.tested), False)
    compiled = len(compiler.compiled(python))
    second = yes()
    observations = run(tmp_path, cells, second)
    assert sorted(observations) == NAMES
    assert sorted(second.tested) == sorted(set(NAMES) - set(first.tested))
    assert len(compiler.compiled(python)) == max(compiled, 4)


def test_an_observation_goes_with_its_result(cells: tuple[Cell, ...], tmp_path: Path, python: Path) -> None:
    with pytest.raises(InterruptedRunError):
        run(tmp_path, cells, yes(3))
    compiler.kernel(tmp_path, "one", "edited")  # the baseline of `two`, too
    question = yes()
    run(tmp_path, cells, question)
    assert sorted(question.tested) == NAMES
    assert [line.split()[0] for line in compiler.compiled(python)].count("one") == 4
    assert [line.split()[0] for line in compiler.compiled(python)].count("two") == 2


def test_what_is_skipped_is_not_compiled_until_a_run_goes_on_without_that_skip(
    cells: tuple[Cell, ...], tmp_path: Path, python: Path
) -> None:
    with pytest.raises(InterruptedRunError):
        run(tmp_path, cells, yes(0), Rules(skip=(NAMES[1], "two")))
    assert set(compiler.compiled(python)) == {"one cuda-80-32"}
    with pytest.raises(InterruptedRunError):
        run(tmp_path, cells, yes(0), Rules())  # a gate that passed over three of four would pass
    assert len(compiler.compiled(python)) > 1
    observations = run(tmp_path, cells, yes(), Rules(skip=(NAMES[1], "two")))
    assert {name: row.why for name, row in observations.items()} == {
        NAMES[0]: "", NAMES[1]: "skipped by hand", NAMES[2]: "skipped by hand", NAMES[3]: "skipped by hand",
    }  # fmt: skip
    assert sorted(product.doubts(observations)) == [f"{name}: skipped by hand" for name in NAMES[1:]]


@pytest.fixture
def importing(tmp_path: Path, cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """The same kernels; the file of the first one imports another."""
    (tmp_path / "helper.py").write_text("def twice(x):\n    return 2 * x\n")
    text = "from helper import twice\n\n@triton.jit\ndef one(p, N: tl.constexpr):\n    twice(p)\n"
    (tmp_path / "one.py").write_text(text)
    return cells


def test_an_edited_import_is_compiled_again(
    importing: tuple[Cell, ...], tmp_path: Path, python: Path
) -> None:
    run(tmp_path, importing, yes())
    run(tmp_path, importing, yes())
    assert len(compiler.compiled(python)) == 4
    (tmp_path / "helper.py").write_text("def twice(x):\n    return x + x\n")
    run(tmp_path, importing, yes())
    assert [line.split()[0] for line in compiler.compiled(python)[4:]] == ["one", "one"]
    run(tmp_path, importing, yes())
    assert len(compiler.compiled(python)) == 6


def test_a_manifest_without_a_digest_of_the_imports_counts_for_a_file_without_any(
    importing: tuple[Cell, ...], tmp_path: Path, python: Path
) -> None:
    run(tmp_path, importing, yes())
    for path in (tmp_path / "out").glob("*/manifest.json"):
        content = json.loads(path.read_text())
        assert content.pop("sources")
        path.write_text(json.dumps(content))
    run(tmp_path, importing, yes())
    assert [line.split()[0] for line in compiler.compiled(python)[4:]] == ["one", "one"]


def test_a_run_that_was_stopped_has_no_observation_of_an_edited_import(
    importing: tuple[Cell, ...], tmp_path: Path
) -> None:
    with pytest.raises(InterruptedRunError):
        run(tmp_path, importing, yes(3))
    (tmp_path / "helper.py").write_text("def twice(x):\n    return x + x\n")
    question = yes()
    run(tmp_path, importing, question)
    assert sorted(question.tested) == NAMES


def test_an_observation_of_another_version_of_the_file_is_not_taken(tmp_path: Path, python: Path) -> None:
    def of(remark: str) -> tuple[Cell, ...]:
        request = CompileRequest(compiler.kernel(tmp_path, "one", remark), "one", "*fp32,64", BOTH)
        return tuple(product.cells("one", "3.4.0", kept.KeyedJobs().job(request, tritons.parse(str(python)))))

    run(tmp_path, of("first"), yes())
    with pytest.raises(InterruptedRunError):
        run(tmp_path, of("second"), yes(1))
    question = yes()
    run(tmp_path, of("first"), question)
    assert sorted(question.tested) == NAMES[:2]
    assert len(compiler.compiled(python)) == 4


def test_a_run_that_goes_on_has_rows_for_what_is_refused_as_a_whole_one_has(
    cells: tuple[Cell, ...], tmp_path: Path
) -> None:
    compiler.kernel(tmp_path, "two", "refuse")
    with pytest.raises(InterruptedRunError):
        run(tmp_path, cells, yes(3))
    observations = run(tmp_path, cells, yes())
    assert {name: row.figures.partition(":")[0] for name, row in observations.items()} == dict.fromkeys(
        NAMES, "test 1"
    )


def test_a_misspelt_name_is_told(
    cells: tuple[Cell, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, cells, yes(), Rules(skip=("three",)))
    assert "nothing is tested under this name" in capsys.readouterr().err


def test_each_cell_is_compiled_as_often_as_it_is_to_be_confirmed(
    cells: tuple[Cell, ...], tmp_path: Path, python: Path
) -> None:
    question = yes()
    observations = run(tmp_path, cells, question, Rules(confirm=3))
    assert sorted(question.tested) == sorted(NAMES * 3)
    assert len(compiler.compiled(python)) == 12
    assert {row.figures for row in observations.values()} == {"test 3"}
    assert not any((workspace.default().root / "kernels" / "confirm").iterdir())


def test_a_kernel_that_cannot_be_asked_for_has_its_reason(cells: tuple[Cell, ...], tmp_path: Path) -> None:
    lost = Cell("gone", "3.4.0", "cuda:80:32", None, why="no such file")
    observations = run(tmp_path, (lost, *cells), yes())
    assert (observations[lost.name].verdict, observations[lost.name].why) == (Verdict.SKIP, "no such file")
    assert len(observations) == 5


def test_kernels_that_share_a_folder_are_compiled_for_the_targets_of_both(
    cells: tuple[Cell, ...], tmp_path: Path, python: Path
) -> None:
    nvidia, amd = (cell for cell in cells if cell.kernel == "one")
    shared = (nvidia, replace(amd, kernel="the same"))
    assert sorted(run(tmp_path, shared, yes())) == [nvidia.name, "the same 3.4.0 hip:gfx942:64"]
    assert sorted(compiler.compiled(python)) == ["one cuda-80-32", "one hip-gfx942-64"]
