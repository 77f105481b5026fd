"""Rehearsals: what is compiled, what is kept, and what is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from invoke.context import Context
from invoke.exceptions import Exit

from tests.unit.lab.compare import compiler
from tests.unit.lab.compare.making import point, written
from tritonsmith.cli.tasks import cache
from tritonsmith.cli.tasks.compare import rehearse
from tritonsmith.compiler import targets, tritons
from tritonsmith.compiler.kernels import kernel_list
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import CommitSource, Triton
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.lab.batch import kept, kept_files
from tritonsmith.lab.batch.run import BatchOptions
from tritonsmith.lab.compare import rehearsal
from tritonsmith.lab.compare.rehearsal import RehearsalResult, UpgradeRehearsal
from tritonsmith.lab.experiment import Rules

LIST = """
[[kernel]]
file = "one.py"
signature = "*fp32,64"
targets = ["a100", "mi300x"]

[[kernel]]
file = "two.py"
name = "the second"
signature = "*fp32,64"

[[kernel]]
file = "two.py"
name = "old"
signature = "*fp32,64"
versions = "<3.6"
"""
pytestmark = pytest.mark.usefixtures("in_threads")


@pytest.fixture
def pythons(tmp_path: Path) -> tuple[Path, Path]:
    """Two interpreters."""
    return compiler.make(tmp_path / "old", "3.4.0"), compiler.make(tmp_path / "new", "3.6.0")


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A list of three kernels, the last of which is not for the new one."""
    for name in ("one", "two"):
        compiler.kernel(tmp_path, name)
    path = tmp_path / "kernels.toml"
    path.write_text(LIST)
    return path


Prepare = Callable[..., UpgradeRehearsal]


@pytest.fixture
def prepared(listed: Path, pythons: tuple[Path, Path]) -> Prepare:
    def prepare(file: Path = listed, **more: object) -> UpgradeRehearsal:
        flags = CompileRequest(Path(), "", "", targets.parse_all(["h100"]), **more)  # type: ignore[arg-type]
        sides = (rehearsal.parse_side(str(python), "--from") for python in pythons)
        return rehearsal.prepare(kernel_list.read(file), file, flags, *sides)

    return prepare


def run(wanted: UpgradeRehearsal) -> RehearsalResult:
    options = BatchOptions(count=2, env="", resume=True, silent=True)
    result, _ = rehearsal.execute(wanted, rehearsal.parse_limits(None), options, Rules())
    return result


def counts(pythons: tuple[Path, Path]) -> list[int]:
    return [len(compiler.compiled(python)) for python in pythons]


@pytest.mark.slow
def test_what_did_not_change_is_not_compiled_again(
    prepared: Prepare, listed: Path, pythons: tuple[Path, Path], tmp_path: Path
) -> None:
    made = run(prepared())
    assert [(one.pair.kernel, one.pair.point) for one in made.comparison.compared] == [
        ("one", "cuda-80-32"),
        ("one", "hip-gfx942-64"),
        ("the second", "cuda-90-32"),
    ]
    assert (made.compiled, made.kept, made.skipped) == (4, 0, ("old",))
    assert counts(pythons) == [3, 3]
    assert (run(prepared()).kept, counts(pythons)) == (4, [3, 3])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("one", "two"):
        compiler.kernel(elsewhere, name)
    (elsewhere / "list.toml").write_text(LIST)
    assert (run(prepared(elsewhere / "list.toml")).kept, counts(pythons)) == (4, [3, 3])  # the content counts
    listed.write_text(LIST.replace('"a100", "mi300x"', '"a100", "mi300x", "h100"'))
    assert (run(prepared()).kept, counts(pythons)) == (2, [4, 4])  # the target that is new
    compiler.kernel(tmp_path, "two", "edited")
    assert (run(prepared()).kept, counts(pythons)) == (2, [5, 5])
    run(prepared(options={"num_warps": 8}))
    assert counts(pythons) == [9, 9]


def test_a_change_of_what_a_kernel_imports_counts(
    prepared: Prepare, pythons: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "one.py").write_text("import near\n\n@triton.jit\ndef one(p, N):\n    near.f(p)\n")
    (tmp_path / "near.py").write_text("f = 1\n")
    run(prepared())
    (tmp_path / "near.py").write_text("f = 2\n")
    assert (run(prepared()).kept, counts(pythons)) == (2, [5, 5])


def test_a_refused_kernel_is_refused_once_and_a_crash_is_tried_again(
    prepared: Prepare, pythons: tuple[Path, Path], tmp_path: Path
) -> None:
    compiler.kernel(tmp_path, "one", "refuse")
    compiler.kernel(tmp_path, "two", "crash")
    assert (run(prepared()).kept, counts(pythons)) == (0, [3, 3])
    made = run(prepared())
    assert (made.kept, counts(pythons)) == (2, [4, 4])
    assert [one.pair.b.point.status for one in made.comparison.compared] == ["failed", "failed", "crashed"]


@pytest.mark.slow
def test_variables_that_change_what_is_compiled_leave_nothing_behind(
    prepared: Prepare, pythons: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(prepared())
    monkeypatch.setenv("DISABLE_LLVM_OPT", "1")
    assert (run(prepared()).kept, counts(pythons)) == (0, [6, 6])


def test_entries_that_ask_for_the_same_share_a_compile(
    prepared: Prepare, listed: Path, pythons: tuple[Path, Path]
) -> None:
    listed.write_text(LIST.replace('versions = "<3.6"', ""))
    made = run(prepared())
    assert [one.pair.kernel for one in made.comparison.compared] == ["one", "one", "the second", "old"]
    assert counts(pythons) == [3, 3]


@pytest.mark.slow
def test_what_is_kept_is_listed_and_cleared(
    prepared: Prepare, pythons: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    run(prepared())
    cache.listing(Context(), json=True)
    listed = json.loads(capsys.readouterr().out)["rehearsed"]
    folders = {job.out.parent for job in prepared().jobs}
    assert [(Path(one["path"]), one["kernels"]) for one in listed] == [
        (folder, 2) for folder in sorted(folders)
    ]
    cache.clear_cache(Context(), rehearsed=True, dry_run=True)
    assert "results.db 'DELETE FROM result;" in capsys.readouterr().out
    with pytest.raises(Exit, match="--rehearsed clears everything"):
        cache.clear_cache(Context(), rehearsed=True, kernel="one")
    cache.clear_cache(Context(), rehearsed=True, yes=True)
    assert not any(folder.exists() for folder in folders)
    cache.clear_cache(Context(), rehearsed=True, yes=True)
    assert capsys.readouterr().out.endswith("nothing to clear\n")
    assert (run(prepared()).kept, counts(pythons)) == (0, [6, 6])


def test_sides(listed: Path) -> None:
    for text in ("3.6.0,h100", "3.6.0,num_warps=8", "h100"):
        with pytest.raises(UsageError, match="--to cannot be"):
            rehearsal.parse_side(text, "--to")
    with pytest.raises(UsageError, match="--from is missing"):
        rehearsal.parse_side("", "--from")
    with pytest.raises(UsageError, match=r"'3\.9\.O' is not a Triton") as error:
        rehearsal.parse_side("3.9.O", "--to")
    # A side has no target, so no GPU is suggested.
    assert "h100" not in str(error.value.hints)
    release = tritons.parse("3.6")
    flags = CompileRequest(Path(), "", "", ())
    with pytest.raises(UsageError, match="are the same Triton"):
        rehearsal.prepare(kernel_list.read(listed), listed, flags, release, release)
    with pytest.raises(UsageError, match=r"no kernel in the list is for both 3\.6 and 3\.9"):
        rehearsal.prepare(kernel_list.read(listed)[2:], listed, flags, release, tritons.parse("3.9"))
    made = rehearsal.prepare(kernel_list.read(listed), listed, flags, release, tritons.parse("3.9"))
    place = workspace.default().root / "kernels" / "releases" / "3.9.0"
    assert [one.b.out.parent for one in made.kernels] == [place, place]
    script = made.plan().shell()
    assert script.index("triton==3.6.0") < script.index("kernel.compile")


def test_a_list_of_files_in_a_checkout_wants_that_checkout(listed: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "a checkout"
    checkout.mkdir()
    kernels, flags = kernel_list.read(listed), CompileRequest(Path(), "", "", ())
    sides = (tritons.parse("3.6.0"), tritons.parse("3.9.0"))
    for path in listed.parent.glob("*.py"):
        path.rename(checkout / path.name)
    with pytest.raises(FactError, match="no such file") as failure:
        rehearsal.prepare(kernels, listed, flags, *sides)
    assert failure.value.hints[-1].endswith("--source DIR")
    assert rehearsal.prepare(kernels, listed, flags, *sides, base=checkout).kernels


def test_metrics_are_kept_as_long_as_the_compile_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "out"
    one = written(folder, [point(), point("hip:gfx942:64", status="failed")])
    made = kept_files.metrics_of(one)
    assert made.points["cuda-90-32"]["registers_per_thread"]
    assert made.points["hip-gfx942-64"] == {}
    (folder / "cuda-90-32" / "k.cubin").unlink()
    assert kept_files.metrics_of(one) == made
    (folder / kept_files.METRICS).write_text("{")
    again = written(folder, [point()])
    assert list(kept_files.metrics_of(again).points) == ["cuda-90-32"]
    more = written(folder, [point(seconds=2.0)])
    assert kept_files.metrics_of(more).points["cuda-90-32"]["compile_seconds"] == 2.0
    (folder / "cuda-90-32" / "k.sass").unlink()
    monkeypatch.setattr(kept_files, "_SCHEMA", 99)
    assert kept_files.metrics_of(more).points["cuda-90-32"]["instructions all"] is None


@pytest.mark.slow
def test_the_task(
    listed: Path, pythons: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = {"from_": str(pythons[0]), "to": str(pythons[1]), "kernels": str(listed), "jobs": "2"}
    rehearse(Context(), **flags)
    assert (
        "warning: not sure: 2 kernels have unknown values" in capsys.readouterr().err
    )  # nobody disassembles
    flags["fail_on"] = "ptx>+10%"
    rehearse(Context(), out=f"{tmp_path}/", **flags)
    said = capsys.readouterr()
    assert "no finding by these terms in 4 compiles of 2 kernels" in said.out
    assert "excluded by the list for one of the Tritons: old" in said.out
    (page,) = tmp_path.glob("*.html")
    assert page.name in said.err.replace("\n", "")
    assert "no finding by these terms in 4 compiles of 2 kernels" in page.read_text()
    compiler.kernel(tmp_path, "two", "crash")
    rehearse(Context(), json=True, **flags)
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["sure"]) == ("not sure: 1 kernel compiles by neither", False)
    assert [one["kernel"] for one in told["kernels"]] == ["one", "one", "the second", "the second"]
    rehearse(Context(), dry_run=True, **flags)
    assert capsys.readouterr().out.count("kernel.compile") == 4


def test_the_task_has_the_flags_of_every_experiment(
    listed: Path, pythons: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = {"from_": str(pythons[0]), "to": str(pythons[1]), "kernels": str(listed), "jobs": "2"}
    flags["fail_on"] = "ptx>+10%"
    rehearse(Context(), status=True, **flags)
    assert "there is no run to show" in capsys.readouterr().err
    rehearse(Context(), skip=["the second"], page=f"{tmp_path / 'tests.html'}", **flags)
    shown = capsys.readouterr()
    assert "2 compiles of 1 kernel" in shown.out
    assert counts(pythons) == [2, 2]
    assert "the second" in (tmp_path / "tests.html").read_text()
    rehearse(Context(), status=True, json=True, **flags)
    told = json.loads(capsys.readouterr().out)
    assert [(row["change"].split()[0], row["verdict"]) for row in told["tests"]] == [("one", "no worse")] * 4
    assert (told["ended"], told["answer"]) == (True, "no finding by these terms in 2 compiles of 1 kernel")
    assert [name.split()[:2] for name in told["skipped"]] == [["the", "second"]] * 4


@pytest.mark.slow
def test_what_does_not_come_out_alike_is_not_sure(
    listed: Path, pythons: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed.write_text(LIST.partition('[[kernel]]\nfile = "two.py"')[0].replace(', "mi300x"', ""))
    compiler.kernel(tmp_path, "one", "flaky 3.6.0")
    flags = {"from_": str(pythons[0]), "to": str(pythons[1]), "kernels": str(listed), "jobs": "1"}
    with pytest.raises(Exit, match="1 finding"):
        rehearse(Context(), **flags)
    (pythons[1].parents[1] / "log.flaky").unlink()
    capsys.readouterr()
    rehearse(Context(), confirm="2", **flags)
    told = " ".join(capsys.readouterr().err.split())
    assert "not sure: 1 kernel has unknown values" in told


def test_what_only_the_second_compiles_is_told_where_nothing_compiles_by_both(
    listed: Path, pythons: tuple[Path, Path], tmp_path: Path
) -> None:
    listed.write_text(LIST.partition('[[kernel]]\nfile = "two.py"')[0].replace(', "mi300x"', ""))
    compiler.kernel(tmp_path, "one", "flaky 3.6.0")
    with pytest.raises(Exit, match="not sure: no kernel compiles by both Tritons") as caught:
        rehearse(Context(), from_=str(pythons[1]), to=str(pythons[0]), kernels=str(listed), jobs="1")
    assert "why:   one cuda-80-32:" in str(caught.value)


@pytest.mark.slow
def test_a_second_compile_that_fails_is_not_sure_either(
    listed: Path, pythons: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed.write_text(LIST.partition('[[kernel]]\nfile = "two.py"')[0].replace(', "mi300x"', ""))
    compiler.kernel(tmp_path, "one", "breaks 3.6.0")
    flags = {"from_": str(pythons[0]), "to": str(pythons[1]), "kernels": str(listed), "jobs": "1"}
    rehearse(Context(), fail_on="ptx>+10%", **flags)
    assert "no finding by these terms" in capsys.readouterr().out
    (pythons[1].parents[1] / "log.flaky").unlink()
    compiler.kernel(tmp_path, "one", "breaks 3.6.0 once more")
    rehearse(Context(), fail_on="ptx>+10%", confirm="2", json=True, **flags)
    answer = json.loads(capsys.readouterr().out)
    assert (answer["verdict"], answer["sure"]) == ("not sure: 1 kernel has unknown values", False)
    assert answer["unknown"] == [
        {"kernel": "one", "point": "cuda-80-32", "metric": "the outcome of its compile"}
    ]


def test_two_kernels_of_one_name_for_both_are_refused(listed: Path) -> None:
    text = '[[kernel]]\nfile = "one.py"\nsignature = "*fp32,64"\n'
    listed.write_text(f'{text}versions = ">=3.4"\n{text}versions = ">=3.5"\n')
    flags, release = CompileRequest(Path(), "", "", ()), tritons.parse("3.9")
    with pytest.raises(UsageError, match=r"the list has one twice for both 3\.6 and 3\.9"):
        rehearsal.prepare(kernel_list.read(listed), listed, flags, tritons.parse("3.6"), release)
    made = rehearsal.prepare(kernel_list.read(listed), listed, flags, tritons.parse("3.4"), release)
    assert (len(made.kernels), made.skipped) == (1, ("one",))


def test_the_status_of_another_question_says_so(
    listed: Path, pythons: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    flags = {"from_": str(pythons[0]), "to": str(pythons[1]), "kernels": str(listed), "jobs": "2"}
    rehearse(Context(), fail_on="ptx>+10%", **flags)
    for more, is_other in (({}, True), ({"target": ["a100"]}, True), ({"fail_on": "ptx>+10%"}, False)):
        capsys.readouterr()
        rehearse(Context(), status=True, dry_run=True, **{**flags, **more})
        shown = capsys.readouterr()
        assert ("had other inputs" in shown.err, "no worse" in shown.out) == (is_other, True)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "this corpus has no kernels yet"),
        ({"kernels": "k.py"}, "'k.py' is not a kernels file"),
        ({"kernels": "k.toml", "corpus": "c"}, "contradict each other"),
        ({"fail_on": "speed>1"}, "no metric 'speed'"),
    ],
)
def test_wrong_words(more: dict[str, str], said: str) -> None:
    with pytest.raises(Exit) as caught:
        rehearse(Context(), **{"from_": "3.6.0", "to": "3.9.0", **more})
    assert caught.value.code == 2
    assert said in str(caught.value)


def test_a_page_needs_its_suffix(listed: Path) -> None:
    with pytest.raises(Exit, match="needs the suffix"):
        rehearse(Context(), kernels=str(listed), from_="3.6.0", to="3.9.0", out="page.toml")


def test_commits_of_one_content_share_their_results(
    listed: Path, pythons: tuple[Path, Path], tmp_path: Path
) -> None:
    """Of a commit that changes tests alone, not even the interpreter is needed."""
    flags = CompileRequest(Path(), "", "", targets.parse_all(["h100"]))

    def side(label: str, python: Path, content: str, version: str = "3.4.0") -> Triton:
        source = CommitSource(tmp_path, "dev", version, content)
        return Triton(label, python=str(python), commit=label * 40, source=source)

    def prepared(*sides: Triton) -> UpgradeRehearsal:
        return rehearsal.prepare(kernel_list.read(listed), listed, flags, *sides)

    old, new = side("a", pythons[0], "one"), side("b", pythons[1], "two")
    before = prepared(old, new)
    assert not kept.are_complete(before.jobs_of_a)
    assert (run(before).compiled, before.skipped) == (4, ())  # by their files, they are a Triton for `old`
    there, done = tmp_path / "not built", counts(pythons)
    after = prepared(side("c", there, "one"), side("d", there, "two"))
    assert kept.are_complete((*after.jobs_of_a, *after.jobs_of_b))
    assert (run(after).kept, counts(pythons)) == (4, done)
    other = prepared(side("c", there, "one"), side("d", there, "three"))
    assert kept.are_complete(other.jobs_of_a)
    assert not kept.are_complete(other.jobs_of_b)
    assert "old" in prepared(old, side("e", there, "four", "3.6.0")).skipped


def test_a_result_that_is_kept_is_read_once(prepared: Prepare, monkeypatch: pytest.MonkeyPatch) -> None:
    run(prepared())
    calls: list[str] = []

    def counting(module: object, name: str) -> None:
        real = getattr(module, name)

        def count(*arguments: object, **named: object) -> object:
            calls.append(name)
            return real(*arguments, **named)

        monkeypatch.setattr(module, name, count)

    wanted = prepared()
    for module, name in ((kept, "merged"), (rehearsal, "check"), (kept, "_is_usual")):
        counting(module, name)
    prepared()
    assert calls.count("_is_usual") == 3  # of two kernels by two Tritons, the targets
    result = run(wanted)
    assert (result.compiled, result.kept, calls.count("merged"), calls.count("check")) == (0, 4, 4, 1)
    assert result.assessment == rehearsal.check(result.comparison, rehearsal.parse_limits(None))


def test_a_key_is_that_of_its_own_kernel(listed: Path, pythons: tuple[Path, Path]) -> None:
    sides = [rehearsal.parse_side(str(python), "--from") for python in pythons]
    names = [listed.parent / "one.py", listed.parent / "two.py"]
    requests = [CompileRequest(path, "", "*fp32,64", targets.parse_all(["h100"])) for path in names]
    together = kept.KeyedJobs()
    for request in (*requests, *requests):
        for side in sides:
            assert together.job(request, side).out == kept.KeyedJobs().job(request, side).out
