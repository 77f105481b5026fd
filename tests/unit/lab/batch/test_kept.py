"""Results of keyed jobs: what is kept and what is not, files on demand, and the way to another machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from invoke.context import Context
from invoke.exceptions import Exit

from tests.unit.lab.compare import compiler
from tritonsmith.cli.tasks import cache
from tritonsmith.compiler import manifest, targets, tritons
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.request import CompileRequest, Sweep
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.lab.batch import kept, kept_files, run, store, work_unit
from tritonsmith.lab.batch.kept import CompileJob
from tritonsmith.lab.batch.run import BatchOptions

pytestmark = pytest.mark.usefixtures("in_threads")
BOTH = targets.parse_all(["a100", "mi300x"])
OPTIONS = BatchOptions(count=1, env="", resume=True, silent=True)


@pytest.fixture
def python(tmp_path: Path) -> Path:
    return compiler.make(tmp_path / "venv")


Ask = Callable[..., CompileJob]


@pytest.fixture
def ask(tmp_path: Path, python: Path) -> Ask:
    def job(name: str = "k", remark: str = "", chosen: tuple[targets.Target, ...] = BOTH) -> CompileJob:
        request = CompileRequest(compiler.kernel(tmp_path, name, remark), "", "*fp32,64", chosen)
        return kept.KeyedJobs().job(request, tritons.parse(str(python)))

    return job


def compiled(*jobs: CompileJob) -> list[tuple[Manifest, bool]]:
    return [(made, is_new) for _, made, is_new in run.compiled(jobs, OPTIONS)]


def test_a_target_more_compiles_that_target_alone(ask: Ask, python: Path) -> None:
    compiled(ask(chosen=BOTH[:1]))
    compiled(ask(chosen=BOTH[1:]))
    ((made, is_new),) = compiled(ask())
    assert not is_new
    assert [point.target for point in made.points] == ["cuda:80:32", "hip:gfx942:64"]
    assert compiler.compiled(python) == ["k cuda-80-32", "k hip-gfx942-64"]


def test_models_of_one_target_have_results_of_their_own(ask: Ask) -> None:
    keys = {name: ask(chosen=targets.parse_all([name])).out.name for name in ("h100", "cuda:90", "h200")}
    assert keys["h100"] == keys["cuda:90"] != keys["h200"]


def test_a_library_that_is_linked_counts_by_its_content(tmp_path: Path, python: Path) -> None:
    library = tmp_path / "mine.bc"
    library.write_text("1")
    options = {"extern_libs": [["mine", str(library)]]}
    request = CompileRequest(compiler.kernel(tmp_path), "", "*fp32,64", BOTH, options)

    def ask() -> CompileJob:
        return kept.KeyedJobs().job(request, tritons.parse(str(python)))

    compiled(ask())
    assert [is_new for _, is_new in compiled(ask())] == [False]
    library.write_text("2")
    assert [is_new for _, is_new in compiled(ask())] == [True]
    assert kept.links(request)  # so that no stages are shared


def test_files_are_there_when_they_are_wanted(ask: Ask) -> None:
    ((made, _),) = compiled(ask())
    assert not made.folder.exists()
    kept_files.restore(made)
    path = made.path(made.points[0], "ptx")
    assert path is not None
    assert path.read_text() == "// ptx"
    assert manifest.read(made.folder) == made
    path.write_text("edited")  # by whatever
    kept_files.restore(made)
    assert path.read_text() == "// ptx"
    space = workspace.default().root / "kernels"
    assert not list((space / "units").iterdir())


def test_metrics_come_from_whoever_compiled(
    tmp_path: Path, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_MOST", 2)  # so that the points of a target are those of several units
    sweep = Sweep("num_warps", ("2", "4", "8"))
    asked = CompileRequest(compiler.kernel(tmp_path), "", "*fp32,64", BOTH, sweeps=(sweep,))
    ((made, _),) = compiled(kept.KeyedJobs().job(asked, tritons.parse(str(python))))

    def never(*_: object, **__: object) -> kept_files.FolderMetrics:
        raise AssertionError

    monkeypatch.setattr(kept_files, "measured_now", never)
    known = kept_files.metrics_of(made).points
    assert len(known) == 6
    assert all(known[point.id] for point in made.points)


def test_what_could_not_be_measured_is_measured_when_it_is_wanted(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> kept_files.FolderMetrics:
        raise FactError("no metrics")

    with monkeypatch.context() as patch:
        patch.setattr(kept_files, "measured_now", fails)
        ((made, _),) = compiled(ask())
        with pytest.raises(FactError, match="no metrics"):
            kept_files.metrics_of(made)
    assert kept_files.metrics_of(made).points.keys() == {point.id for point in made.points}
    assert not compiled(ask())[0][1]


def test_a_view_of_one_target_does_not_hide_another(ask: Ask) -> None:
    ((made, _),) = compiled(ask())
    kept_files.restore(replace(made, points=made.points[:1]))
    kept_files.restore(replace(made, points=made.points[1:]))
    assert {point.target for point in manifest.read(made.folder).points} == {"cuda:80:32", "hip:gfx942:64"}


def test_a_result_that_was_cleared_meanwhile(ask: Ask) -> None:
    ((made, _),) = compiled(ask())
    space = workspace.default()
    space.run(kept.removal(space), "clear-cache")
    with pytest.raises(FactError, match="not kept any more"):
        kept_files.restore(made)
    assert compiled(ask())[0][1]


@pytest.mark.parametrize("name", ["DISABLE_LLVM_OPT", "PTXAS_OPTIONS", "TRITON_PTXAS_PATH", "TRITON_DEBUG"])
def test_steered_compiles_leave_files_for_their_run_alone(
    ask: Ask, python: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "1")
    ((made, _),) = compiled(ask())
    assert made.folder.is_dir()
    assert kept_files.metrics_of(made).points.keys() == {"cuda-80-32", "hip-gfx942-64"}
    monkeypatch.delenv(name)
    assert compiled(ask())[0][1]
    assert not made.folder.exists()
    assert len(compiler.compiled(python)) == 4


def test_metrics_are_those_of_their_own_files(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    ((kept_, _),) = compiled(ask(chosen=BOTH[:1]))
    before = kept_files.metrics_of(kept_)
    # What a variable steers has the place of the result that is kept, and other files.
    point = kept_.points[0]
    changed = replace(point.stages["ptx"], sha256="0" * 64)
    steered = replace(kept_, points=(replace(point, stages={"ptx": changed}),))
    other = kept_files.FolderMetrics({point.id: {"shared": 7}}, ())
    with monkeypatch.context() as patch:
        patch.setattr(kept_files, "measured_now", lambda _: other)
        patch.setattr(kept_files, "restore", lambda _: None)
        assert kept_files.metrics_of(steered) == other
    assert kept_files.metrics_of(kept_) == before


@pytest.mark.parametrize(("name", "shares"), [("HOME", True), ("LLVM_PASS_PLUGIN_PATH", False)])
def test_a_compile_that_is_steered_shares_no_stages(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, name: str, *, shares: bool
) -> None:
    seen: list[object] = []

    def compile_here(*_: object, shared: Path | None, **_named: object) -> SmithError:
        seen.append(shared)
        return SmithError("no")

    monkeypatch.setenv(name, "1")
    monkeypatch.setattr(work_unit, "compile_here", compile_here)
    with pytest.raises(SmithError, match="no"):
        compiled(ask())
    assert [bool(shared) for shared in seen] == [shares]


def test_a_file_that_was_edited_before_its_compile_is_not_kept(ask: Ask, tmp_path: Path) -> None:
    wanted = ask()
    compiler.kernel(tmp_path, "k", "edited")
    assert compiled(wanted)[0][1]
    assert kept.results(workspace.default()) == ()


@pytest.mark.parametrize(
    ("error", "stays"),
    [
        ("the compiler ended the process: exit code 1\nerror: couldn't allocate output register", True),
        ("the compiler ended the process: exit code 1\nLLVM ERROR: out of memory", False),
        ("the compiler died: SIGSEGV", False),
    ],
)
def test_an_error_with_which_llvm_ends_the_process_is_kept(ask: Ask, error: str, *, stays: bool) -> None:
    ((made, _),) = compiled(ask(chosen=BOTH[:1]))
    workspace.default().run(kept.removal(workspace.default()), "clear-cache")
    point = replace(made.points[0], status="crashed", stages={}, error=error)
    kept.keep(ask(chosen=BOTH[:1]), replace(made, points=(point,)), ())
    ((found, is_new),) = compiled(ask(chosen=BOTH[:1]))
    assert is_new is not stays
    assert found.points[0].status == ("crashed" if stays else "ok")


@pytest.mark.parametrize("end", ["", " refuse"])
def test_files_that_a_load_has_read_count(ask: Ask, tmp_path: Path, end: str) -> None:
    data = tmp_path / "data.json"
    data.write_text("1")
    every = [ask("reader", f"reads data.json{end}"), ask("other", end)]

    def new() -> list[str]:
        return [Path(made.file).stem for made, is_new in compiled(*every) if is_new]

    assert new() == ["reader", "other"]
    assert new() == []
    data.write_text("2")
    assert new() == ["reader"]
    assert new() == []
    data.unlink()
    assert not kept.are_complete(every)
    data.write_text("1")
    assert new() == ["reader"]  # the results of the last content only are kept
    data.write_text("2")
    data.write_text("1")
    assert new() == []


def test_only_the_target_whose_load_has_read_a_file_is_compiled_again(ask: Ask, tmp_path: Path) -> None:
    wanted = ask("k", "reads data.json")
    data = tmp_path / "data.json"
    for number, target in enumerate(BOTH):
        data.write_text(str(number))
        compiled(replace(wanted, request=replace(wanted.request, targets=(target,))))
    assert [point.target for point in found(wanted)] == ["hip:gfx942:64"]


def found(job: CompileJob) -> tuple[manifest.Point, ...]:
    old = kept.ResultFinder("").find(job)
    return old.points if old else ()


def test_what_was_edited_while_it_was_loaded_is_not_kept(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text("edited meanwhile")
    ((made, _),) = compiled(ask("k", "reads data.json"))
    assert made.points
    assert kept.results(workspace.default()) == ()


@pytest.mark.parametrize(("name", "again"), [("data.json", False), ("../data.json", True)])
def test_checkouts_with_the_same_key_have_files_of_their_own(
    tmp_path: Path, python: Path, name: str, again: bool
) -> None:
    jobs = []
    for checkout in ("one", "two"):
        file = compiler.kernel(make_folder(tmp_path / checkout / "kernels"), "k", f"reads {name}")
        (file.parent / name).write_text("1")
        request = CompileRequest(file, "", "*fp32,64", BOTH)
        jobs.append(kept.KeyedJobs().job(request, tritons.parse(str(python))))
    assert jobs[0].out == jobs[1].out
    compiled(jobs[0])
    assert len(found(jobs[0])) == 2
    # A result that depends on files below the folder of the kernel's sources alone serves all checkouts.
    assert (found(jobs[1]) == ()) == again
    (jobs[1].request.file.parent / name).write_text("2")
    assert found(jobs[1]) == ()
    assert len(found(jobs[0])) == 2


def make_folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def test_files_that_a_load_has_read_stay_known_when_code_is_read(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text("1")
    ((made, _),) = compiled(ask("k", "reads data.json"))
    assert list(made.reads) == ["data.json"]
    for target, part in kept_files.by_target(made):
        kept_files.keep_code(kept_files.ReadCode(part, target, "", {}))
    (tmp_path / "data.json").write_text("2")
    assert found(ask("k", "reads data.json")) == ()


def test_packages_that_a_kernel_may_import_count(
    ask: Ask, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(ask())
    (site,) = python.parents[1].glob("lib/python3*/site-packages")
    (site / "helpers-1.0.dist-info").mkdir()
    assert compiled(ask())[0][1]
    assert not compiled(ask())[0][1]
    (site / "helpers-1.0.dist-info").rename(site / "helpers-1.1.dist-info")
    assert compiled(ask())[0][1]
    monkeypatch.setenv("PYTHONPATH", "/mine")
    assert compiled(ask())[0][1]


def test_variables_that_a_kernel_reads_count(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key() -> str:
        return ask("mine", remark).out.name

    remark = "\nimport os\nfrom near import WARPS\nwarps = os.environ.get('MINE_WARPS', os.environ['HOME'])\n"
    (tmp_path / "near.py").write_text('import os\nWARPS = os.getenv("NEAR_WARPS")\n')
    monkeypatch.setenv("MINE_WARPS_2", "4")
    keys = [key()]
    monkeypatch.setenv("HOME", "/home/of/another/machine")
    monkeypatch.setenv("MINE_WARPS_2", "8")
    assert key() == keys[0]
    for name, value in (("MINE_WARPS", "4"), ("MINE_WARPS", "8"), ("NEAR_WARPS", "8")):
        monkeypatch.setenv(name, value)
        keys.append(key())
    assert len(set(keys)) == len(keys)
    monkeypatch.delenv("MINE_WARPS")
    monkeypatch.delenv("NEAR_WARPS")
    assert key() == keys[0]


def test_metrics_are_measured_where_it_was_compiled(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    real, folders = kept_files.measured_now, list[str]()

    def measured_now(manifest: Manifest, *, code: bool = True) -> kept_files.FolderMetrics:
        folders.append(manifest.folder.name)
        return real(manifest, code=code)

    monkeypatch.setattr(kept_files, "measured_now", measured_now)
    ((made, _),) = compiled(ask())
    assert kept_files.metrics_of(made).points.keys() == {"cuda-80-32", "hip-gfx942-64"}
    assert folders == ["out", "out"]  # of the unit, target by target


def test_metrics_are_measured_once(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    ((made, _),) = compiled(ask())
    before = kept_files.metrics_of(made)
    with monkeypatch.context() as patch:
        patch.setattr(kept_files, "measured_now", None)
        assert kept_files.metrics_of(made) == before
    # A table that changes, as with a new version, changes what is measured.
    monkeypatch.setattr(kept_files, "_measured_by", lambda: "another")
    assert kept_files.metrics_of(made) == before


def test_what_follows_from_results_is_worked_out_once(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    (made, _), (other, _) = compiled(ask(), ask("other"))
    calls: list[object] = []

    def answer(what: object, *manifests: manifest.Manifest) -> list[int]:
        rows = [(row, row.points[0]) for row in manifests]
        return kept_files.answer(rows, what, lambda: calls.append(what) or [len(calls)])  # type: ignore[func-returns-value]

    assert [answer("a", made, other) for _ in range(3)] == [[1]] * 3
    # Another question, other values beside the texts, another order of the sides, or another text.
    assert answer("b", made, other) == [2]
    assert answer(["a", {"stack_bytes": 8}], made, other) == [3]
    assert answer("a", other, made) == [4]
    stages = {name: replace(stage, sha256="0" * 64) for name, stage in made.points[0].stages.items()}
    changed = replace(made, points=(replace(made.points[0], stages=stages),))
    assert answer("a", changed, other) == [5]
    assert answer("a", made, other) == [1]
    # The code that works it out.
    monkeypatch.setattr(kept_files, "_worked_out_by", lambda: "another")
    assert answer("a", made, other) == [6]
    # Nothing is kept of a folder that is no kept result, nor after all results are removed.
    assert [answer("a", replace(made, folder=Path("out")), other) for _ in range(2)] == [[7], [8]]
    workspace.default().run(kept.removal(workspace.default()), "clear-cache", quiet=True)
    assert answer("a", made, other) == [9]


@pytest.fixture
def two_kept() -> Path:
    base = kept_files.database()
    base.keep("releases/3.6.0", "key", "cuda:90:32", "{}", store.pack({"a/k.ptx": b"// ptx"}))
    base.keep("rehearsed/python-1234", "key", "cuda:90:32", "{}", store.pack({"a/k.ptx": b"// ptx"}))
    return workspace.default().root


@pytest.mark.usefixtures("two_kept")
@pytest.mark.parametrize("dest", ["", "mine.db", "new folder/mine.db"])
def test_to_another_machine_and_back(
    tmp_path: Path, dest: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):  # the second time it replaces its own file
        cache.export(Context(), dest=str(tmp_path / dest))
        assert capsys.readouterr().out == "1 kernel of 1 Triton packed\n"
    packed = tmp_path / dest if dest else tmp_path / "results.db"
    assert store.is_ours(packed)
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "another"))
    cache.import_(Context(), source=str(packed))
    assert capsys.readouterr().out == "1 of 1 results are new here\n"
    assert [row.folder.name for row in kept.results(workspace.default())] == ["3.6.0"]
    cache.import_(Context(), source=str(packed))
    assert capsys.readouterr().out == "0 of 1 results are new here\n"


@pytest.mark.usefixtures("two_kept")
def test_what_cannot_be_exported_or_imported(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("mine")
    with pytest.raises(UsageError, match="holds no kept results"):
        kept.export(str(tmp_path / "notes.db"), workspace.default())
    with pytest.raises(Exit, match="no such archive"):
        cache.import_(Context(), source=str(tmp_path / "gone.db"))
    cache.export(Context(), dest=str(tmp_path / "mine.db"))
    with (tmp_path / "mine.db").open("ab") as file:
        file.write(b"x")
    with pytest.raises(Exit, match="checksum"):
        cache.import_(Context(), source=str(tmp_path / "mine.db"))


def test_nothing_to_export(tmp_path: Path) -> None:
    with pytest.raises(FactError, match="there are no kept results"):
        kept.export(str(tmp_path), workspace.default())
    # An interpreter's mean nothing elsewhere, and a file without results would look like a success.
    kept_files.database().keep(
        "rehearsed/python-1234", "key", "cuda:90:32", "{}", store.pack({"a/k.ptx": b"// ptx"})
    )
    with pytest.raises(FactError, match="of releases or commits") as error:
        kept.export(str(tmp_path), workspace.default())
    assert "of this machine alone" in str(error.value.why)


def test_a_plan_says_what_an_export_does(two_kept: Path, tmp_path: Path) -> None:
    text = kept.export(str(tmp_path / "mine.db"), workspace.default()).shell()
    assert "VACUUM INTO" in text
    assert "sha256sum mine.db > mine.db.sha256" in text
    assert str(two_kept / "kernels" / "results.db") in text
    assert json.dumps(text)
