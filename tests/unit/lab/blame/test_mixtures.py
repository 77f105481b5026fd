"""The search of a blame: what it asks for, what it makes of the answers, and how it goes on after a kill."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from tests.unit.lab.compare.making import manifest, point
from tests.unit.lab.fake_subject import FakeSubject, begin, quiet, stop
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.lab import experiment, journal
from tritonsmith.lab.blame import mixtures
from tritonsmith.lab.blame.llc import Llc
from tritonsmith.lab.blame.mixtures import MixedFigures, MixtureTests
from tritonsmith.lab.blame.pipeline import BlameSide, Choice, Figures, MixedPipeline, components_of, groups_of
from tritonsmith.lab.journal import Journal, Verdict

PARTS = components_of("cuda", ("ttir", "ttgir", "llir", "ptx"))
ASSEMBLERS = [("12.8.93", Path("/a/ptxas")), ("13.0.88", Path("/b/ptxas"))]
LLC = Llc(Path("/usr/bin/llc"), "19.1.7")


def spills(name: str) -> Figures:
    """Passes of B cost 100 spills; the sides of a mixture are its name, and `ttgir` is its second step."""
    return {"spills": 7 if " by " in name else 100 * (name[1] == "B")}


@dataclass
class Mixed(MixedPipeline):
    """A pipeline whose figures come from a fake subject."""

    subject: FakeSubject[Figures] = field(default_factory=lambda: FakeSubject(spills))

    def figures(self, choice: Choice) -> Figures:
        if choice["llir"] == "B" != choice["ptx"]:
            self.notes["an older spelling"] = None
        if choice["ttgir"] == "B" != choice["ttir"]:
            raise FactError("A cannot make ttgir of this ttir", why="no such operation")
        return self.subject.ask("".join(choice.values()))

    def assembler(self, whose: str) -> tuple[Path, tuple[str, ...]]:
        return Path(f"/{whose}/ptxas"), ("-v",)

    def assembled(self, ptx: Path, program: Path, *_: object) -> Figures:
        return self.subject.ask(f"{ptx.name} by {program}")

    def by_llc(self, whose: str, *_: object, **__: object) -> list[str]:
        return [f"-flag-of-{whose}"]


@pytest.fixture(autouse=True)
def _texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each side has all stages, without a manifest that names them."""

    def file(self: BlameSide, stage: str) -> Path:
        return self.manifest.folder / f"{self.manifest.folder.name}.{stage}"

    monkeypatch.setattr(BlameSide, "file", file)


def pipeline(tmp_path: Path, rule: Callable[[str], Figures] = spills, lives: int = -1) -> Mixed:
    sides = {}
    for name in ("A", "B"):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        sides[name] = BlameSide(f"3.{name}", Path("python"), manifest(point(), folder=folder), point())
    space = Workspace(tmp_path / "home")
    space.claim()
    subject = FakeSubject(rule, lives=lives)
    return Mixed(sides, PARTS, {}, tmp_path / "steps", space, subject=subject)  # type: ignore[arg-type]


def run(mixed: Mixed, notes: Journal) -> MixedFigures:
    search = mixtures.search("cuda-90", mixed, [LLC], ASSEMBLERS)
    tests = experiment.steady(MixtureTests(mixed, notes, mixed.space), notes, lambda test: test.metrics)
    return experiment.run(search, tests, notes, quiet)


def test_every_group_is_changed_in_both_directions(tmp_path: Path) -> None:
    figures = run(pipeline(tmp_path), Journal())
    assert figures.replayed == ({"spills": 0}, {"spills": 100})
    assert [flip.group for flip in figures.flips] == list(groups_of(PARTS))
    alone = {flip.group.names: (flip.in_a, flip.in_b) for flip in figures.flips}
    assert alone["ttgir",] == ("A cannot make ttgir of this ttir: no such operation", {"spills": 0})
    assert alone["ptxas",] == ({"spills": 0}, {"spills": 100})
    assert figures.notes == ("an older spelling",)
    rows = {(row.axis, row.text, row.by): row for row in figures.rows}
    assert rows["LLVM", "llir of 3.B", "llc 19.1.7"].note == "without -flag-of-B"
    assert [row.by for row in figures.rows if row.axis == "ptxas"] == ["ptxas 12.8.93", "ptxas 13.0.88"] * 2


@pytest.mark.parametrize("lives", [0, 1, 5, 20, 40])
def test_a_blame_that_was_killed_tests_no_mixture_twice(tmp_path: Path, lives: int) -> None:
    whole, plain = pipeline(tmp_path), Journal()
    answer = run(whole, plain)
    first, second = pipeline(tmp_path, lives=lives), pipeline(tmp_path)
    known = begin(tmp_path / journal.FILE)
    if lives < len(whole.subject.tested):
        known = stop(known, partial(run, first))
    assert run(second, known) == answer
    assert first.subject.tested + second.subject.tested == whole.subject.tested
    assert set(known.observations) == set(plain.observations)


def test_a_mixture_that_is_skipped_has_no_figures(tmp_path: Path) -> None:
    notes = Journal(skipped={"cuda-90: ptxas of B in A"})
    flips = {flip.group.names: flip for flip in run(pipeline(tmp_path), notes).flips}
    assert (flips["ptxas",].in_a, flips["ptxas",].in_b) == ("skipped by hand", {"spills": 100})


def test_without_one_side_there_is_nothing_to_mix(tmp_path: Path) -> None:
    with pytest.raises(FactError, match="nothing to compare the mixtures with"):
        run(pipeline(tmp_path), Journal(skipped={"cuda-90: all of B"}))


def test_tests_that_have_to_agree_make_each_step_anew(tmp_path: Path) -> None:
    notes = Journal(confirm=2)
    figures = run(pipeline(tmp_path), notes)
    assert {len(tests) for tests in notes.observations.values()} == {2}
    assert figures.replayed == ({"spills": 0}, {"spills": 100})
    assert (tmp_path / "steps" / "again-1").is_dir()


def test_figures_that_differ_from_test_to_test_are_none(tmp_path: Path) -> None:
    notes, numbers = Journal(confirm=2), itertools.count()
    with pytest.raises(FactError, match="nothing to compare the mixtures with") as caught:
        run(pipeline(tmp_path, lambda _: {"spills": next(numbers)}), notes)
    assert "flaky: spills 0, then spills" in str(caught.value.why)
    assert notes.observations["cuda-90: all of A"][1].verdict is Verdict.SKIP
