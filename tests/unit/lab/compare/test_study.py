"""The matrix of a study: what is compiled, which row comes of it, how it looks."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import psutil
import pytest
from invoke.context import Context
from invoke.exceptions import Exit
from matplotlib.figure import Figure
from rich.console import Console

from tests.integration.harness import commit, git
from tests.support import all_gone
from tests.unit.compiler.resources import elf_maker
from tests.unit.lab.compare import compiler
from tritonsmith.cli.tasks.compare import _print_study, study
from tritonsmith.compiler import manifest, targets, tritons
from tritonsmith.compiler.kernels import kernel_list
from tritonsmith.compiler.resources.measure import ResourceRow, Value
from tritonsmith.core.envs import workspace
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import ConfigError, FactError, LockedError, SmithError, UsageError
from tritonsmith.facts import checkout
from tritonsmith.lab.batch.run import BatchOptions
from tritonsmith.lab.compare import study as use_case
from tritonsmith.lab.compare.study import StudyCell, StudyPlan
from tritonsmith.lab.experiment import Rules

BOTH = targets.parse_all(["a100", "mi300x"])


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """Two kernels, one of which came with 3.4."""
    compiler.kernel(tmp_path, "old")
    compiler.kernel(tmp_path, "new")
    file = tmp_path / "kernels.toml"
    file.write_text(
        '[[kernel]]\nfile = "old.py"\nsignature = "*fp32,64"\n'
        '[[kernel]]\nfile = "new.py"\nsignature = "*fp32,64"\nversions = ">=3.4"\n'
    )
    return file


def prepared(listed: Path, *words: str, history: use_case.History | None = None) -> StudyPlan:
    """The matrix of these Tritons."""
    sides = [tritons.parse(word) for word in words]
    out = listed.parent / "out"
    return use_case.prepare(kernel_list.read(listed), sides, BOTH, out, listed.parent, history)


def run(plan: StudyPlan, count: int, rules: Rules | None = None) -> tuple[StudyCell, ...]:
    options = BatchOptions(count=count, resume=True, silent=True)
    cells, _, _ = use_case.execute(plan, options, rules or Rules())
    return cells


def test_each_version_has_the_kernels_that_are_for_it(listed: Path) -> None:
    made = prepared(listed, "3.2.0", "3.4.0")
    assert [(name, job.triton.version, job.out.relative_to(listed.parent)) for name, job in made.jobs] == [
        ("old", "3.2.0", Path("out/3.2.0/old")),
        ("old", "3.4.0", Path("out/3.4.0/old")),
        ("new", "3.4.0", Path("out/3.4.0/new")),
    ]
    script = made.plan().shell()
    assert script.index("triton==3.2.0") < script.index("kernel.compile")
    assert script.count("kernel.compile") == 3
    assert not (listed.parent / "out").exists()
    with pytest.raises(UsageError, match=r"is given twice for 3\.2\.0"):
        prepared(listed, "3.2.0", "3.2")
    listed.write_text('[[kernel]]\nfile = "old.py"\nsignature = ""\nversions = ">=4"\n')
    with pytest.raises(SmithError, match="no kernel supports these versions"):
        prepared(listed, "3.2.0")


def test_options_of_a_triton_are_part_of_its_name() -> None:
    words = tritons.joined(("3.4.0", "num_warps=8", "maxnreg=64", "3.2.0"))
    assert words == ["3.4.0,num_warps=8,maxnreg=64", "3.2.0"]
    assert [use_case.name_of(tritons.parse(word)) for word in words] == words
    assert tritons.joined(("num_warps=8", "3.2.0")) == ["num_warps=8", "3.2.0"], "there is nothing before it"


def test_names_of_kernels_stay_in_the_folder_and_apart(listed: Path) -> None:
    one = '[[kernel]]\nfile = "old.py"\nsignature = "*fp32,64"\n'
    listed.write_text(f'{one}name = ".."\n')
    ((_, job),) = prepared(listed, "3.2.0").jobs
    assert job.out.resolve().parent == listed.parent / "out" / "3.2.0"
    listed.write_text(f'{one}name = "a b"\n{one}name = "a_b"\n')
    with pytest.raises(UsageError, match="would use the same folder"):
        prepared(listed, "3.2.0")


@pytest.mark.usefixtures("in_threads")
def test_cells(listed: Path, tmp_path: Path) -> None:
    new, old = (compiler.make(tmp_path / version, version) for version in ("3.10.0", "3.4.0"))
    compiler.kernel(tmp_path, "new", "crash")
    cells = run(prepared(listed, str(new), str(old)), 2)
    assert [(cell.row.kernel, cell.row.target, cell.triton) for cell in cells][:3] == [
        ("old", "cuda:80:32", "3.4.0"),
        ("old", "cuda:80:32", "3.10.0"),
        ("old", "hip:gfx942:64", "3.4.0"),
    ]
    assert len(cells) == 8
    assert cells[0].row.error == "no binary"  # this compiler makes none
    assert cells[-1].row.error.startswith("crashed: ")
    assert run(prepared(listed, str(new), str(old)), 2)[:4] == cells[:4]
    assert compiler.compiled(new).count("old cuda-80-32") == 1
    assert compiler.compiled(new).count("new cuda-80-32") == 2  # what crashed is tried again


@pytest.mark.usefixtures("in_threads")
@pytest.mark.parametrize("name", ["another home", ""])
def test_one_study_at_a_time_writes_to_a_folder(listed: Path, tmp_path: Path, name: str) -> None:
    """Whichever workspace the other one runs in."""
    made = prepared(listed, str(compiler.make(tmp_path / "venv", "3.4.0")))
    other = Workspace(tmp_path / name) if name else workspace.default()
    other.claim()
    with (
        manifest.hold_output(made.out, other, "kernel.study"),
        pytest.raises(LockedError, match="another run is busy in this output folder") as caught,
    ):
        run(made, 1)
    assert f"runs `kernel.study --out {made.out}`" in str(caught.value)
    assert not (made.out / "3.4.0").exists()
    assert len(run(made, 1)) == 4


@pytest.mark.slow
def test_what_is_skipped_by_hand_is_no_failure(listed: Path, tmp_path: Path) -> None:
    made = prepared(listed, str(compiler.make(tmp_path / "venv", "3.4.0")))
    options = BatchOptions(count=1, resume=True, silent=True)
    cells, journal, _ = use_case.execute(made, options, Rules(skip=("old",)))
    failed = sum(bool(cell.row.error) for cell in cells if cell.row.kernel == "new")
    assert journal.answer == use_case.outcome(cells) == f"{failed} of 2 points did not compile"


@pytest.mark.slow
def test_the_status_of_another_study_says_so(
    listed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = str(compiler.make(tmp_path / "venv", "3.4.0"))
    flags = {"kernels": str(listed), "triton": [python], "out": str(tmp_path / "out"), "jobs": "1"}
    with pytest.raises(Exit, match="4 of 4 points did not compile"):  # what it writes is no binary
        study(Context(), target=["h100", "mi300x"], page=f"{tmp_path / 'page.html'}", **flags)
    assert "4 of 4 points did not compile" in (tmp_path / "page.html").read_text()
    for names, is_other in ((["h100", "mi300x"], False), (["a100"], True)):
        capsys.readouterr()
        study(Context(), target=names, status=True, dry_run=True, **flags)
        shown = capsys.readouterr()
        assert ("had other inputs" in shown.err, "cuda:90:32" in shown.out) == (is_other, True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with one kernel, which is renamed later."""
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "--quiet")
    compiler.kernel(folder, "old")
    commit(folder, "first")
    git(folder, "tag", checkout.triton_release("3.2").commit)
    compiler.kernel(folder, "old").write_text("\n\n@triton.jit\ndef other(p):\n    pass\n")
    commit(folder, "second")
    git(folder, "tag", checkout.triton_release("3.4").commit)
    return folder


def test_files_are_those_of_each_version(clone: Path, listed: Path) -> None:
    listed.write_text('[[kernel]]\nfile = "old.py"\nkernel = "old"\narguments = { p = "*fp32", N = "64" }\n')
    made = prepared(listed, "3.2.1", "3.4.0", history=use_case.History(str(clone)))
    ((name, job),) = made.jobs
    assert (name, job.request.signature) == ("old", "p=*fp32,N=64")
    assert job.request.file == listed.parent / "out" / "sources" / "3.2.1" / "old.py"
    assert [(step.path, step.text) for step in made.files] == [
        (job.request.file, compiler.kernel(listed.parent, "x").read_text().replace("def x", "def old"))
    ]
    assert [(cell.triton, cell.why) for cell in made.cells if not cell.job] == [
        ("3.4.0", "not compiled: this file has no kernel 'old'")
    ] * 2
    both = prepared(listed, "3.2.0", "3.4.0", history=use_case.History(f"{clone}@HEAD~1"))
    assert len(both.jobs) == 2


def test_no_process_of_git_stays(clone: Path) -> None:
    before = psutil.Process().children(recursive=True)
    history = use_case.History(f"{clone}@HEAD~1")
    texts = [history.content("", "old.py")]
    assert all_gone(one for one in psutil.Process().children(recursive=True) if one not in before)
    assert [history.content("", "old.py")] == texts


def test_wrong_sources(clone: Path, listed: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a git repository"):
        use_case.History(str(tmp_path))
    history = use_case.History(str(clone))
    with pytest.raises(FactError, match="this clone has no commit"):
        history.content("3.9.0", "old.py")
    with pytest.raises(FactError, match=r"no file new\.py at .* for Triton 3\.4\.0"):
        history.content("3.4.0", "new.py")
    with pytest.raises(UsageError, match="needs the Triton version"):
        history.content("", "old.py")
    with pytest.raises(SmithError, match="no kernel supports these versions"):
        prepared(listed, "3.9.0", history=history)
    listed.write_text('[[kernel]]\nfile = "old.py"\narguments = { N = "64" }\n')
    with pytest.raises(ConfigError, match="no type or value for p of old"):
        prepared(listed, "3.2.0", history=history)


def cells_of() -> list[StudyCell]:
    """Two kernels, two versions, both vendors; one failure, one kernel that is not for the first version."""
    cells = []
    for number, triton in enumerate(("3.9.0", "3.10.0")):
        nvidia = {"registers_per_thread": 32 + number, "spill_store_bytes": 8, "spill_load_bytes": 4 * number,
                  "code_bytes": 1024}  # fmt: skip
        amd = {"vgprs_per_lane": 64, "vgpr_spills": number, "sgpr_spills": 0, "code_bytes": 2048}
        cells.append(StudyCell(triton, ResourceRow("add", "p", "cuda:80:32", values=nvidia), "0" * 64, 1.5))
        cells.append(StudyCell(triton, ResourceRow("add", "p", "hip:gfx942:64", values=amd)))
    cells.append(StudyCell("3.10.0", ResourceRow("dot", "p", "cuda:80:32", error="failed: no such thing")))
    return cells


def test_tables() -> None:
    screen = Console(width=120, record=True, file=io.StringIO())
    tables = list(use_case.tables_of(cells_of()))
    for table in tables:
        screen.print(table)
    lines = [line.split() for line in screen.export_text().splitlines()]
    assert len(tables) == 6
    assert lines.index(["kernel", "3.9.0", "3.10.0"]) < lines.index(["add", "32", "33"])
    for line in (["dot", "-", "x"], ["add", "8", "12"], ["add", "0", "1"]):
        assert line in lines
    assert list(use_case.failures(cells_of())) == ["failed: no such thing\n  dot 3.10.0 cuda:80:32"]


def test_json_and_csv() -> None:
    content = json.loads(json.dumps(use_case.as_json(cells_of())))
    assert content["schema"] == 1
    assert content["rows"][0]["triton"] == "3.9.0"
    rows = list(csv.DictReader(io.StringIO(use_case.as_csv(cells_of()))))
    assert [row["registers_per_thread"] for row in rows] == ["32", "", "33", "", ""]
    assert rows[0]["compile_seconds"] == "1.5"
    assert rows[4]["error"] == "failed: no such thing"


@pytest.mark.slow
def test_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "study.svg"
    use_case.write_plot(cells_of(), path)
    text = path.read_text()
    assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314
    for word in ("registers per thread", "VGPRs per lane", "code, bytes", "3.10.0", "hip:gfx942:64"):
        assert f">{word}<" in text
    assert text.count(">add<") == 1  # one legend for all panels
    again = tmp_path / "again.svg"
    use_case.write_plot(cells_of(), again)
    assert again.read_text() == text
    with pytest.raises(SmithError, match="nothing to plot"):
        use_case.write_plot(cells_of()[4:], path)
    with pytest.raises(SmithError, match="cannot write the plot"):
        use_case.write_plot(cells_of(), tmp_path / "no" / "study.svg")


@pytest.mark.slow
def test_a_small_step_is_no_cliff_and_zeros_are_told(tmp_path: Path) -> None:
    """A code size of +1.9 % moves by less than a tenth of the panel; kernels without spills are counted."""
    cells = []
    for triton, code in (("3.8.0", 13_200), ("3.9.0", 13_450)):
        values: dict[str, Value] = {"registers_per_thread": 32, "spill_store_bytes": 0, "spill_load_bytes": 0}
        row = ResourceRow("add", "p", "cuda:90:32", values={**values, "code_bytes": code})
        cells.append(StudyCell(triton, row))
    axes = Figure().subplots()
    use_case.draw(axes, cells, use_case.METRICS["cuda"][2], ["add"], ["3.8.0", "3.9.0"])
    (line,) = axes.lines
    heights = axes.transData.transform(line.get_xydata())[:, 1]
    assert 0 < heights[1] - heights[0] < 0.1 * axes.bbox.height
    use_case.write_plot(cells, tmp_path / "study.svg")
    assert "0 throughout: 1 of 1 kernels" in (tmp_path / "study.svg").read_text()


def test_where_all_failed_the_reason_is_said_not_that_there_is_no_picture(tmp_path: Path) -> None:
    failed = StudyCell("3.0.0", ResourceRow("k", "", "cuda:90:32", error="failed: no gather"))
    with pytest.raises(SmithError, match="1 of 1 points did not compile") as caught:
        _print_study([failed], tmp_path, tmp_path / "p.svg", json=False, csv=False)
    assert "no gather" in str(caught.value)
    assert not (tmp_path / "p.svg").exists()


def test_a_picture_without_a_folder_is_said_first(listed: Path) -> None:
    with pytest.raises(Exit, match="--plot: the folder does not exist") as caught:
        study(Context(), kernels=str(listed), triton=["3.4.0"], plot=str(listed.parent / "none" / "p.svg"))
    assert caught.value.code == 2
    assert not workspace.default().root.exists()


@pytest.mark.usefixtures("in_threads")
def test_a_whole_study_reads_binaries(listed: Path, tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv", "3.2.0")
    made = prepared(listed, str(python))
    first = run(made, 1)
    assert first[0].row.values == {}
    folder = tmp_path / "out" / "3.2.0" / "old"
    content = json.loads((folder / "manifest.json").read_text())
    data = elf_maker.cubin(threads=256)
    (folder / "cuda-80-32" / "k.cubin").write_bytes(data)
    stage = {"path": "cuda-80-32/k.cubin", "size": len(data), "sha256": "0" * 64}
    content["points"][0]["stages"]["cubin"] = stage
    (folder / "manifest.json").write_text(json.dumps(content))
    cell = run(made, 1)[0]
    assert cell.row.values["threads_per_block"] == 256
    assert workspace.default().root.is_dir()


def test_what_cannot_be_launched_is_marked_and_told() -> None:
    stuck: dict[str, Value] = {"registers_per_thread": 255, "launch": "no: shared 262144 > 232448 B"}
    row = ResourceRow("dot", "p", "cuda:90:32", values=stuck, remarks=["(C7510) Lost in line 7"])
    cells = [
        StudyCell("3.9.0", row),
        StudyCell("3.4.0", ResourceRow("dot", "p", "cuda:90:32", values={"launch": "yes"})),
    ]
    where = "dot 3.9.0 cuda:90:32"
    told = (f"{where}: cannot launch: shared 262144 > 232448 B", f"{where}: ptxas: (C7510) Lost")
    assert use_case.warnings(cells) == told
    assert use_case.as_json(cells)["warnings"] == list(told)
    line = use_case.as_csv(cells).splitlines()[1]
    assert "no: shared 262144 > 232448 B" in line
    assert line.endswith("(C7510) Lost in line 7")
    assert use_case._cell(cells[0], use_case.METRICS["cuda"][0]) == "255!"
