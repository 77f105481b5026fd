"""A bisect on disk: its question and all outcomes. A kill at any moment loses the test under way only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tritonsmith.core import untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.plan import digest, files, locks
from tritonsmith.facts import git_history
from tritonsmith.lab.model import Observation, Verdict

FILE = "session.json"
SCHEMA = 1
BY_HAND = "skipped by hand"
FIX = "the fix"  # how an answer begins that names one
_DIGITS = re.compile(r"[0-9a-f]{7,40}", re.ASCII)
# Outcomes and ends become parts of paths and of command lines, and a session may be damaged, or a stranger's.
_TRITON = re.compile(r"\w[\w.+!-]*", re.ASCII)
_VALUE = re.compile(r"([^-\x00-\x1f\x7f][^\x00-\x1f\x7f]*)?")
_WHOLE = re.compile(r"[0-9a-f]{40}|\d+\.\d+\.\d+(?:\.dev\d+)?(?:\+[\w.]+)?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class BisectQuestion:
    """The question of a bisect: everything that a later process needs to continue it.

    Attributes:
        good: the end that does not show it, as it was given.
        bad: the end that does.
        kernel: FILE[:KERNEL], absolute; empty for a command or a test.
        flags: those of `kernel.compile`, as they were given: name to value.
        when: terms that make a Triton bad; without any, a compile that fails.
        test: a test's file, absolute.
        command: program and arguments.
        folder: where the command runs.
        source: clone of Triton; empty if none was given.
        llvm_source: clone of LLVM, searched if the culprit is a bump; empty if none was given.
        env: environment whose settings builds of commits have.
        confirm: tests of one Triton whose verdicts must agree.
        timeout: seconds for one compile; None for the usual.
        releases_only: ends with the release step.
        nightlies: URL of an index of wheels between releases; empty if none was given.
        content: digest of the kernel's or the test's file.
    """

    good: str
    bad: str
    kernel: str = ""
    flags: Mapping[str, Any] = field(default_factory=dict)
    when: tuple[str, ...] = ()
    test: str = ""
    command: tuple[str, ...] = ()
    folder: str = ""
    source: str = ""
    env: str = ""
    confirm: int = 1
    timeout: int | None = None
    releases_only: bool = False
    nightlies: str = ""
    content: str = ""
    llvm_source: str = ""

    @property
    def name(self) -> str:
        """The name of its folder: the ends, and a digest of everything that outcomes depend on."""
        ends = "-".join(_plain(text) for text in (self.good, self.bad))
        searched = {name: value for name, value in asdict(self).items() if name != "llvm_source"}
        return f"{ends}-{digest(json.dumps(searched, sort_keys=True))[:8]}"


@dataclass(frozen=True)
class TestedTriton:
    """The outcome of one Triton.

    Attributes:
        triton: a release (`3.6.0`), or a commit, all 40 digits.
        outcome: of its test.
    """

    __test__ = False  # no test class of pytest's

    triton: str
    outcome: Observation

    def row(self) -> dict[str, Any]:
        """Return it as session.json and `--json` have it."""
        seen = self.outcome
        return {
            "triton": self.triton,
            "verdict": seen.verdict,
            "figures": seen.figures,
            "why": seen.why,
            "seconds": seen.seconds,
        }


@dataclass(frozen=True)
class BisectSession:
    """A bisect that was begun.

    Attributes:
        folder: of this bisect.
        question: what is searched for.
        tested: outcomes, in the order in which they came; the last one of a Triton counts.
        answer: the result in one line; empty while the search is not over.
    """

    folder: Path
    question: BisectQuestion
    tested: tuple[TestedTriton, ...] = ()
    answer: str = ""

    @property
    def outcomes(self) -> dict[str, Observation]:
        """Triton to outcome."""
        return {one.triton: one.outcome for one in self.tested}

    def having(self, triton: str, outcome: Observation) -> BisectSession:
        """This session with one more outcome, on disk."""
        return replace(self, tested=(*self.tested, TestedTriton(triton, outcome))).saved()

    def saved(self) -> BisectSession:
        """Write it, whole or not at all."""
        content = {
            "schema": SCHEMA,
            "question": asdict(self.question),
            "tested": [one.row() for one in self.tested],
            "answer": self.answer,
        }
        files.write_atomically(self.folder / FILE, f"{json.dumps(content, indent=2)}\n")
        return self

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock it for the body of a `with`; a new one is on disk from then on, so that it can be resumed.

        Raises:
            LockedError: another process works at it.
        """
        files.make_folder(self.folder)
        with locked(self.folder, f"bisect {self.folder.name}"):
            if not (self.folder / FILE).is_file():
                self.saved()
            yield


@contextmanager
def locked(folder: Path, purpose: str) -> Iterator[None]:
    """Lock the folder of a bisect for the body of a `with`.

    Raises:
        LockedError: another process works at it.
    """
    hints = ["wait for it to end: invoke bisect --status"]
    with locks.hold(folder / "lock", purpose=purpose, busy=f"at the bisect {folder.name}", hints=hints):
        yield


def root() -> Path:
    """The folder of all bisects."""
    return workspace.default().root / "bisects"


def begin(question: BisectQuestion) -> BisectSession:
    """The unfinished session of this question, or a new one, which is not on disk yet."""
    folder = root() / question.name
    if (folder / FILE).is_file() and not (old := read(folder)).answer:
        return replace(old, question=question)
    return BisectSession(folder, question)


def find(name: str = "") -> BisectSession:
    """A session by the beginning of its name; the one that changed last without a name.

    Raises:
        UsageError: there is none, or several begin like that.
    """
    every = sorted(root().glob(f"*/{FILE}"), key=lambda path: path.stat().st_mtime)
    names = [path.parent.name for path in every]
    if not names:
        hints = ["invoke bisect --good 3.6.0 --bad 3.9.0 ..."]
        raise UsageError("no bisect was started", where=root(), hints=hints)
    found = [one for one in names if one.startswith(name)] if name else names[-1:]
    if len(found) != 1 and name not in names:
        what = f"{len(found)} bisects begin with {name!r}" if found else f"no bisect {name!r}"
        raise UsageError(what, where=root(), hints=did_you_mean(name, found or names))
    return read(root() / (name if name in names else found[0]))


def known_name(session: BisectSession, triton: str) -> str:
    """A release, or the commit among those tested that begins like this, or a whole commit.

    Raises:
        UsageError: neither.
    """
    found = {one.triton for one in session.tested if one.triton.startswith(triton)}
    if triton in found or _WHOLE.fullmatch(triton):
        return triton
    if len(found) == 1:
        return found.pop()
    hints = ["a release (3.7.0), a commit with all 40 digits, or the beginning of one that was tested"]
    raise UsageError(f"cannot skip {triton!r}", hints=hints)


def of_llvm(session: BisectSession) -> tuple[BisectSession, ...]:
    """Return the sessions of its search over LLVM, one for each side's llir; none without such a search."""
    return tuple(read(path.parent) for path in sorted(session.folder.glob(f"llvm/*/{FILE}")))


def llvm_commit(session: BisectSession, text: str) -> str:
    """The whole commit that is meant, of the clone of LLVM that is searched; empty if it has no such one."""
    clone = session.question.llvm_source
    if not clone or not _DIGITS.fullmatch(text) or not of_llvm(session):
        return ""
    with git_history.opened(Path(clone)) as repository:
        return git_history.resolve(repository, text)


def read(folder: Path) -> BisectSession:
    """A session from its folder.

    Raises:
        FactError: its file is damaged, or of another version of this tool.
    """
    path = folder / FILE
    try:
        content = untrusted.read_json(path, untrusted.OURS)
        if content["schema"] != SCHEMA:
            raise ValueError(f"schema {content['schema']}")  # noqa: TRY301 - one error for all
        question = untrusted.shaped(BisectQuestion, content["question"])
        _check(question)
        tested = tuple(_tested(**row) for row in content["tested"])
        answer = untrusted.typed(str, content["answer"], "answer")
        listed = replace(question, when=tuple(question.when), command=tuple(question.command))
        return BisectSession(folder, listed, tested, answer)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        hints = [f"to start again: remove {folder}"]
        raise FactError("cannot read this bisect", where=path, why=str(error), hints=hints) from error


def _check(question: BisectQuestion) -> None:
    """Check what becomes a part of paths and of the command lines of git and pip.

    Raises:
        ValueError: it is no such value.
    """
    for name in ("good", "bad", "env", "nightlies"):
        if not _VALUE.fullmatch(getattr(question, name)):
            raise ValueError(f"{name} cannot be {getattr(question, name)[:80]!r}")
    for place in (question.kernel, question.test, question.folder, question.source, question.llvm_source):
        if place.startswith("-") or "\0" in place:
            raise ValueError(f"{place[:80]!r} is not a path")
    if any("\0" in word for word in question.command):
        raise ValueError("a word of the command has a NUL")


def _tested(
    triton: str, verdict: str, figures: str = "", why: str = "", seconds: float = 0.0
) -> TestedTriton:
    if not _TRITON.fullmatch(triton):
        raise ValueError(f"{triton[:80]!r} is neither a release nor a commit")
    if (kind := Verdict(verdict)) is Verdict.OTHER:
        raise ValueError(f"no bisect has the verdict {verdict!r}")
    row = {"figures": figures, "why": why, "seconds": seconds}
    return TestedTriton(triton, untrusted.shaped(Observation, row, verdict=kind))


def _plain(text: str) -> str:
    return "".join(char if char.isalnum() or char in "._" else "_" for char in text)[:24]
