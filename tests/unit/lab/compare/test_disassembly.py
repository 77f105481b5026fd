"""When an experiment disassembles what it compiles: where two sides differ, or somebody wants to see it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import script_of_python
from tests.unit.compiler.resources import elf_maker
from tests.unit.lab.compare import compiler, making
from tritonsmith.compiler import manifest, targets
from tritonsmith.compiler.kernels import kernel_list
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError
from tritonsmith.lab import terms
from tritonsmith.lab.batch import kept, kept_files, store
from tritonsmith.lab.batch import run as batch
from tritonsmith.lab.batch.run import BatchOptions
from tritonsmith.lab.compare import matching, rehearsal, site
from tritonsmith.lab.compare.matching import Compared, Pair, PairMember
from tritonsmith.lab.compare.rehearsal import RehearsalResult, UpgradeRehearsal
from tritonsmith.lab.experiment import Rules

pytestmark = pytest.mark.usefixtures("in_threads", "disassembler")
OPTIONS = BatchOptions(count=2, env="", resume=True, silent=True)
KERNELS = ("differs", "equal")
ALL = "instructions all"


class Disassembler:
    """A disassembler that notes the registers of each cubin that it reads."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        code = f"import sys; open({str(folder / 'log')!r}, 'a').write('.'); print({making.SASS!r}, end='')"
        monkeypatch.setenv("TRITON_NVDISASM_PATH", str(script_of_python(folder / "nvdisasm", code)))
        self._log = folder / "log"

    @property
    def runs(self) -> int:
        return len(self._log.read_text()) if self._log.exists() else 0


@pytest.fixture
def disassembler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disassembler:
    return Disassembler(tmp_path, monkeypatch)


@pytest.fixture
def prepared(tmp_path: Path) -> Callable[[], UpgradeRehearsal]:
    """Two kernels by two Tritons: by the second one, one has another binary."""
    pythons = [compiler.make(tmp_path / version, version) for version in ("3.4.0", "3.6.0")]
    lines = []
    for name in KERNELS:
        folder = tmp_path / f"of {name}".replace(" ", "-")
        folder.mkdir()
        for number, version in enumerate(("3.4.0", "3.6.0")):
            # Another size of the code has to be another binary, and none of a limit.
            more = number if name == "differs" else 0
            code = b"\1" if name == "equal" else b"\0"
            (folder / f"{version}.cubin").write_bytes(elf_maker.cubin(registers=40 + more, code=code * 16))
        (folder / "sass").write_text(making.SASS)
        compiler.kernel(tmp_path, name, f"binary {folder} ")
        lines.append(f'[[kernel]]\nfile = "{name}.py"\nsignature = "*fp32,64"\n')
    (tmp_path / "kernels.toml").write_text("".join(lines))

    def prepare() -> UpgradeRehearsal:
        file, flags = tmp_path / "kernels.toml", CompileRequest(Path(), "", "", targets.parse_all(["h100"]))
        sides = (rehearsal.parse_side(str(python), "--from") for python in pythons)
        return rehearsal.prepare(kernel_list.read(file), file, flags, *sides)

    return prepare


def run(wanted: UpgradeRehearsal, fail_on: str | None = None, confirm: int = 1) -> RehearsalResult:
    limits = rehearsal.parse_limits(fail_on)
    result, _ = rehearsal.execute(wanted, limits, OPTIONS, Rules(confirm=confirm))
    assert not rehearsal.check(result.comparison, limits, result.flaky).doubts
    return result


def counted(result: RehearsalResult) -> dict[str, list[object]]:
    """The instructions of each kernel, by both."""
    return {row.pair.kernel: [row.a.get(ALL, "-"), row.b.get(ALL, "-")] for row in result.comparison.compared}


def test_only_binaries_that_differ_are_disassembled(
    prepared: Callable[[], UpgradeRehearsal], disassembler: Disassembler
) -> None:
    result = run(prepared())
    assert disassembler.runs == 2
    assert counted(result) == {"differs": [2, 2], "equal": ["-", "-"]}
    differs, equal = result.comparison.compared
    assert not any(change.metric.key.startswith("instructions") for change in differs.changes)
    assert (equal.changes, equal.same_binary, equal.unchanged) == ((), True, True)
    again = run(prepared())
    assert (again.compiled, again.kept, disassembler.runs) == (0, 4, 2)
    assert counted(again) == counted(result)


@pytest.mark.parametrize(
    ("fail_on", "confirm"), [("instructions<9", 1), ("tensor core<=-100%", 1), (None, 2)]
)
def test_what_a_user_limits_or_confirms_is_disassembled(
    prepared: Callable[[], UpgradeRehearsal], fail_on: str | None, confirm: int
) -> None:
    before = run(prepared())  # the results are kept, without
    assert counted(before)["equal"] == ["-", "-"]
    limits = rehearsal.parse_limits(fail_on)
    result, _ = rehearsal.execute(prepared(), limits, OPTIONS, Rules(confirm=confirm))
    assert counted(result) == {"differs": [2, 2], "equal": [2, 2]}


@pytest.mark.parametrize(
    ("term", "findings"), [("ptx contains //", 2), ("sass contains EXIT", 2), ("ptx contains absent", 0)]
)
def test_texts_of_kept_results_are_searched(
    prepared: Callable[[], UpgradeRehearsal], term: str, findings: int
) -> None:
    run(prepared())
    folders = [kernel.b.out for kernel in prepared().kernels]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    result = run(prepared(), term)
    assert result.assessment
    assert (result.compiled, len(result.assessment.findings)) == (0, findings)


def test_terms_about_code_that_are_usual_hold_where_nothing_differs() -> None:
    for limit in rehearsal.parse_limits(None):
        if terms.needs_code(limit.term):
            assert isinstance(limit.term, terms.Limit)
            assert limit.term.change
            assert not limit.required
            assert not limit.term.broken(1, 1)
            assert not limit.term.broken(0, 0)


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("sass contains LDG", True),
        ("ptx contains ld", False),
        ("matrix core>1", True),
        ("global load 128>1", True),
        ("spills>+0", False),
        ("code>1", False),
    ],
)
def test_terms_that_are_about_code(text: str, *, needs: bool) -> None:
    (term,) = terms.parse([text], "--fail-on")
    assert terms.needs_code(term) is needs


def equal_of(result: RehearsalResult) -> Manifest:
    return next(row for row in result.comparison.compared if row.pair.kernel == "equal").pair.a.manifest


def test_whoever_looks_at_a_result_finds_its_disassembly(
    prepared: Callable[[], UpgradeRehearsal], disassembler: Disassembler
) -> None:
    unread = equal_of(run(prepared()))
    assert "sass" not in unread.points[0].stages
    assert kept_files.unread_targets(unread) == {"cuda:90:32"}
    kept_files.restore(unread)
    shown = manifest.read(unread.folder)
    path = shown.path(shown.points[0], "sass")
    assert path
    assert path.read_text() == making.SASS
    assert disassembler.runs == 3
    # Also by the manifest that was read before.
    assert kept_files.metrics_of(unread) == kept_files.metrics_of(shown)
    assert kept_files.metrics_of(unread).points[unread.points[0].id][ALL] == 2
    assert kept_files.unread_targets(unread) == frozenset()
    assert "sass" in kept_files.disassemble(unread).points[0].stages
    assert disassembler.runs == 3


def test_pages_have_the_instructions_of_all(
    prepared: Callable[[], UpgradeRehearsal], disassembler: Disassembler, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = prepared()
    run(wanted)
    monkeypatch.setattr(batch, "_FEW", 1)  # as of many results: in processes
    sides = [wanted.a, wanted.b]
    flags = CompileRequest(Path(), "", "", targets.parse_all(["h100"]))
    plan = site.prepare(kernel_list.read(wanted.file), wanted.file, flags, sides)
    site.execute(plan, rehearsal.parse_limits(None), OPTIONS, Rules())
    (made, _) = (found for _, found, _ in batch.compiled(wanted.jobs_of_b, OPTIONS))
    assert all("sass" in point.stages for point in made.points)
    assert disassembler.runs in (3, 4)  # two that begin at once both read the one binary of both sides


def test_without_a_disassembler_code_that_differs_is_unknown(
    prepared: Callable[[], UpgradeRehearsal], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_NVDISASM_PATH", "/nonexistent")
    limits = rehearsal.parse_limits(None)
    for _ in range(2):
        result, _ = rehearsal.execute(prepared(), limits, OPTIONS, Rules())
        assert counted(result) == {"differs": [None, None], "equal": ["-", "-"]}
        doubts = rehearsal.check(result.comparison, limits).unknown
        assert {(kernel, metric) for kernel, _, metric in doubts} == {("differs", "tensor core")}


def test_a_result_that_was_removed_meanwhile(prepared: Callable[[], UpgradeRehearsal]) -> None:
    unread = equal_of(run(prepared()))
    space = workspace.default()
    real = kept_files.database().contents
    assert list(real(*kept_files.address(unread.folder), "cuda:90:32"))
    text = "DELETE FROM file; DELETE FROM content"
    kept_files.database()._base.executescript(text)
    with pytest.raises(FactError, match="not kept any more"):
        kept_files.disassemble(unread)
    space.run(kept.removal(space), "clear-cache")
    assert kept_files.disassemble(unread) == unread


def measured(known: int | None) -> kept_files.FolderMetrics:
    row = {"code_bytes": 16, ALL: known, "instructions tensor core": None if known is None else 0}
    return kept_files.FolderMetrics({"cuda-90-32": row}, ())


def compared(tmp_path: Path, first: int | None, second: int | None, *, same: bool = True) -> Compared:
    a = making.written(tmp_path / "a", [making.point()])
    b = making.written(tmp_path / "b", [making.point()], registers=40 if same else 41)
    first_member, second_member = (PairMember(row, row.points[0]) for row in (a, b))
    table = {a.folder: measured(first), b.folder: measured(second)}
    return matching.with_metrics(Pair("k", "cuda-90-32", first_member, second_member), table)


@pytest.mark.parametrize(("first", "second"), [(7, None), (None, 7)])
def test_one_binary_has_the_instructions_that_are_known_of_either(
    tmp_path: Path, first: int | None, second: int | None
) -> None:
    row = compared(tmp_path, first, second)
    assert (row.a[ALL], row.b[ALL], row.changes) == (7, 7, ())


def test_what_is_known_of_neither_is_not_compared(tmp_path: Path) -> None:
    row = compared(tmp_path, None, None)
    assert row.a == row.b == {"code_bytes": 16}
    # But of two binaries it may differ: unknown, and not equal.
    row = compared(tmp_path / "other", None, None, same=False)
    limit, *_ = terms.parse(["instructions>+0%"], "--fail-on")
    assert terms.look(limit, row).unknown


def test_a_disassembly_of_a_result_that_was_cleared_leaves_no_files() -> None:
    base = kept_files.database()
    place = ("releases/3.6.0", "key", "cuda:90:32")
    base.add(*place, "{}", "{}", {"a/k.sass": b"sass"})
    assert base._base.execute("SELECT count(*) FROM file").fetchone() == (0,)
    base.keep(*place, "{}", store.pack({"a/k.cubin": b"cubin"}))
    base.add(*place, "{1}", "{2}", {"a/k.sass": b"sass"})
    assert dict(base.contents(*place)) == {"a/k.cubin": b"cubin", "a/k.sass": b"sass"}
    assert base.find(*place[:2], [place[2]]) == {place[2]: "{1}"}
    assert base.metrics(*place[:2], [place[2]]) == {place[2]: "{2}"}
