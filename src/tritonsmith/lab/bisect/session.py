"""A bisect on disk: its question in `question.json`, and the journal of its tests beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tritonsmith.compiler import tritons
from tritonsmith.core import untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.plan import Plan, Remove, digest, files, locks
from tritonsmith.core.text import version_key
from tritonsmith.facts import git_history
from tritonsmith.lab import journal as journals
from tritonsmith.lab.bisect.search import LACKS, LLVM, TOOLS
from tritonsmith.lab.experiment import BY_HAND, agreed
from tritonsmith.lab.journal import Journal, Observation, Verdict

FILE = "question.json"
SCHEMA = 2
FIX = "the fix"  # how an answer begins that names one
# Version 0.1 kept question, tests and answer in one file. It is read for one release, so that a bisect of
# days survives the update of this tool; whatever is written goes into the new files.
_OLD_FILE, _OLD_SCHEMA = "session.json", 1
_LLVM = "llvm"  # folder of the search over LLVM's commits, in that of its bisect
# Tests of a commit of LLVM: by its programs, on the llir of a side of the step.
_LLVM_TESTS = ("llc good", "llc bad", "opt and llc good", "opt and llc bad")
_LLVM_TEST = re.compile(rf"({'|'.join(_LLVM_TESTS)}) [0-9a-f]{{40}}", re.ASCII)
# Names and ends become parts of paths and of command lines, and the files may be damaged, or a stranger's.
_TRITON = re.compile(r"\w[\w.+!-]*", re.ASCII)
# A value that began with a dash would be an option to git or pip.
_VALUE = re.compile(r"([^-\x00-\x1f\x7f][^\x00-\x1f\x7f]*)?")
_WHOLE = re.compile(r"[0-9a-f]{40}|\d+\.\d+\.\d+(?:\.dev\d+)?(?:\+[\w.]+)?", re.ASCII)
_RELEASE = re.compile(r"\d+\.\d+(\.\d+)?", re.ASCII)
_DIGITS = re.compile(r"[0-9a-f]{7,40}", re.ASCII)
_CLONE = re.compile(r"bisect-[0-9a-f]{8}")  # an env that a user named bisect-mine is theirs
_ENV = re.compile(rf"{_CLONE.pattern}-([0-9a-f]{{8}}|unpinned)|bisect-pytest")


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
        # A ref or a nightly may be longer than the name of a folder can be; the digest keeps clipped ones
        # apart.
        ends = (
            "".join(c if c.isalnum() or c in "._" else "_" for c in end)[:24] for end in (self.good, self.bad)
        )
        # A bisect that goes on into LLVM is the same one, so the clone of LLVM is no part of its name.
        searched = {name: value for name, value in asdict(self).items() if name != "llvm_source"}
        return f"{'-'.join(ends)}-{digest(json.dumps(searched, sort_keys=True))[:8]}"

    def check(self) -> None:
        """Check what becomes a part of paths and of the command lines of git and pip.

        Raises:
            ValueError: a value is not allowed there.
        """
        for name in ("good", "bad", "env", "nightlies"):
            if not _VALUE.fullmatch(getattr(self, name)):
                raise ValueError(f"{name} cannot be {getattr(self, name)[:80]!r}")
        for place in (self.kernel, self.test, self.folder, self.source, self.llvm_source):
            if place.startswith("-") or "\0" in place:
                raise ValueError(f"{place[:80]!r} is not a path")
        if any("\0" in word for word in self.command):
            raise ValueError("a word of the command has a NUL")


@dataclass
class BisectSession:
    """A bisect that was begun.

    Attributes:
        folder: of this bisect.
        question: the question.
        journal: of its tests, by the names of releases, nightlies and commits.
        anew: it begins anew where one that has ended is on disk.
    """

    folder: Path
    question: BisectQuestion
    journal: Journal
    anew: bool = False

    @property
    def outcomes(self) -> dict[str, Observation]:
        """The outcome of each Triton, in the order of their first tests, then skips by hand."""
        return tested(self.journal)

    @property
    def answer(self) -> str:
        """The result in one line; empty while the search is not over."""
        return self.journal.answer

    def saved(self) -> BisectSession:
        """Write the question, and all that the journal has, each file whole or not at all."""
        self.journal.begin()
        # Last: a folder without it is no bisect, so a kill between both leaves nothing that cannot be read.
        self._save_question()
        return self

    def _save_question(self) -> None:
        content = {"schema": SCHEMA, "question": asdict(self.question)}
        files.write_atomically(self.folder / FILE, f"{json.dumps(content, indent=2)}\n")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock it for the body of a `with`; a new one is on disk from then on, so that it can be resumed.

        Raises:
            LockedError: another process works at it.
        """
        files.make_folder(self.folder)
        with locked(self.folder, f"bisect {self.folder.name}"):
            # Read again: another process may have added to it, and a last line that was cut off goes.
            path, is_there = self.folder / journals.FILE, (self.folder / FILE).is_file()
            on_disk = _journal(path, _TRITON, self.question) if is_there else None
            if on_disk is None:
                self.saved()
            elif self.anew and on_disk.ended:
                # "One of ..., since others were skipped" may be why it begins anew: one more skip, by hand.
                self.journal.skipped |= on_disk.skipped
                # Before `saved`: after a kill between both, it begins anew once more.
                for pins in _llvm_ranges(self.folder):
                    in_llvm = llvm_journal(self, pins)
                    in_llvm.observations.clear()  # but not `skipped`, which a person has decided
                    in_llvm.begin()
                self.saved()
            else:
                self.journal = on_disk
                self._save_question()  # of a resume with a clone of LLVM, which it did not have
            yield


def tested(journal: Journal) -> dict[str, Observation]:
    """Return all outcomes of a journal by their names, skips by hand among them."""
    outcomes = {name: agreed(tests) for name, tests in journal.observations.items() if tests}
    return outcomes | dict.fromkeys(sorted(journal.skipped), BY_HAND)


def root() -> Path:
    """Return the folder of all bisects."""
    return workspace.default().root / "bisects"


def begin(question: BisectQuestion) -> BisectSession:
    """Return the unfinished session of this question, or a new one, which is not on disk yet."""
    folder = root() / question.name
    if _is_session(folder) and not (old := read(folder)).answer:
        # The new question has the same name, but may come with a clone of LLVM.
        return replace(old, question=question)
    return BisectSession(folder, question, _new_journal(folder, question), anew=True)


def find(name: str = "") -> BisectSession:
    """Find a session by the beginning of its name; without a name, the one that changed last.

    Raises:
        UsageError: there is none, or several begin like that.
    """
    names = [folder.name for folder in sorted(filter(_is_session, root().glob("*/")), key=_changed)]
    if not names:
        hints = ["invoke bisect --good 3.6.0 --bad 3.9.0 ..."]
        raise UsageError("no bisect was started", where=root(), hints=hints)
    matching = [text for text in names if text.startswith(name)] if name else names[-1:]
    if len(matching) != 1 and name not in names:
        what = f"{len(matching)} bisects begin with {name!r}" if matching else f"no bisect {name!r}"
        raise UsageError(what, where=root(), hints=did_you_mean(name, matching or names))
    return read(root() / (name if name in names else matching[0]))


def _is_session(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (FILE, _OLD_FILE))


def _changed(folder: Path) -> float:
    """Return the time at which a bisect changed last, in seconds since 1970."""
    # The time of the folder would not do, as appending to a journal does not change it.
    names = (FILE, _OLD_FILE, journals.FILE)
    return max((folder / name).stat().st_mtime for name in names if (folder / name).is_file())


def read(folder: Path) -> BisectSession:
    """Read a session from its folder, which another process may be working at.

    Raises:
        FactError: its file is damaged, or of another version of this tool.
    """
    if not (folder / FILE).is_file():
        return _read_old(folder)
    with _one_error(folder / FILE):
        question, _ = _question(folder / FILE, SCHEMA)
    journal = _journal(folder / journals.FILE, _TRITON, question, to_go_on=False)
    return BisectSession(folder, question, journal)


def _read_old(folder: Path) -> BisectSession:
    """Read the one file of a bisect that tritonsmith 0.1 began."""
    with _one_error(folder / _OLD_FILE):
        question, content = _question(folder / _OLD_FILE, _OLD_SCHEMA)
        journal = _new_journal(folder, question)
        for row in content["tested"]:  # the last one of a Triton counts
            name, verdict = row.pop("triton"), Verdict(row.pop("verdict"))
            outcome = untrusted.shaped(Observation, row, verdict=verdict)
            if outcome.why == BY_HAND.why:
                journal.skipped.add(name)
            else:  # it had one row for all tests of a Triton, and the journal has one for each
                journal.observations[name] = [
                    outcome,
                    *[replace(outcome, seconds=0.0)] * (question.confirm - 1),
                ]
        journal.answer = untrusted.typed(str, content["answer"], "answer")
        journal.ended = bool(journal.answer)
        return BisectSession(folder, question, _checked(journal, _TRITON))


def _question(path: Path, schema: int) -> tuple[BisectQuestion, dict[str, Any]]:
    """Read a question, and the file that it is in."""
    content: dict[str, Any] = untrusted.read_json(path, untrusted.OURS)
    if content["schema"] != schema:
        raise ValueError(f"schema {content['schema']}")
    question = untrusted.shaped(BisectQuestion, content["question"])
    question.check()
    return replace(question, when=tuple(question.when), command=tuple(question.command)), content


def _journal(
    path: Path, names: re.Pattern[str], question: BisectQuestion, *, to_go_on: bool = True
) -> Journal:
    """Read a journal.

    Raises:
        FactError: it is damaged, or of another version.
    """
    with _one_error(path):
        # Other journals drop what could not be tested. That of a bisect keeps it: a build takes hours.
        journal = journals.read(path, to_go_on=to_go_on, untested=True)
        if journal is None:
            raise ValueError("of another version, or not there")
        journal.confirm = question.confirm
        return _checked(journal, names)


def _checked(journal: Journal, names: re.Pattern[str]) -> Journal:
    for name in (*journal.observations, *journal.skipped):
        if not names.fullmatch(name):
            raise ValueError(f"{name[:80]!r} is neither a release nor a commit")
    if any(test.verdict is Verdict.OTHER for tests in journal.observations.values() for test in tests):
        raise ValueError(f"no bisect has the verdict {Verdict.OTHER!r}")
    return journal


def _new_journal(folder: Path, question: BisectQuestion) -> Journal:
    return Journal(folder / journals.FILE, question.name, confirm=question.confirm)


@contextmanager
def _one_error(path: Path) -> Iterator[None]:
    """Turn any error in reading a file into one."""
    hints = [f"to start again: remove {path.parent}"]
    try:
        yield
    except (FactError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = error.why if isinstance(error, FactError) else str(error)
        raise FactError("cannot read this bisect", where=path, why=why, hints=hints) from error


def skip(session: BisectSession, text: str) -> str:
    """Skip a candidate of a session that is held, or a commit of LLVM if that is searched; return its name.

    Raises:
        UsageError: the text names neither.
    """
    # LLVM's clone is asked first, as digits alone do not say whose commit they are.
    if commit := _llvm_commit(session, text):
        skip_in_llvm(session, commit)
        return commit
    name = known_name(session, text)
    _check_between(session.question, name)
    session.journal.skip(name)
    return name


def _check_between(question: BisectQuestion, name: str) -> None:
    """Check that a candidate may be skipped.

    Raises:
        UsageError: it is an end, or a release that is not between the ends.
    """
    ends = question.good, question.bad
    ended = any(name == end or (_DIGITS.fullmatch(end) and name.startswith(end)) for end in ends)
    if all(_RELEASE.fullmatch(text) for text in (name, *ends)):
        low, high = sorted(map(version_key, map(tritons.full, ends)))
        ended = not low < version_key(name) < high
    if ended:
        why = f"the ends of this bisect are {' and '.join(ends)}; only what lies between them is skipped"
        raise UsageError(f"cannot skip {name!r}", why=why, hints=["for other ends, begin another bisect"])


def known_name(session: BisectSession, triton: str) -> str:
    """Return a release, or the commit among those tested that begins like this, or a whole commit.

    Raises:
        UsageError: neither.
    """
    matching = {name for name in session.outcomes if name.startswith(triton)}
    if triton in matching or _WHOLE.fullmatch(triton):
        return triton
    if len(matching) == 1:
        return matching.pop()
    hints = ["a release (3.7.0), a commit with all 40 digits, or the beginning of one that was tested"]
    raise UsageError(f"cannot skip {triton!r}", hints=hints)


def _llvm_commit(session: BisectSession, text: str) -> str:
    """Return the whole commit that is meant, of the clone of LLVM that is searched; empty if it has none."""
    clone = session.question.llvm_source
    if not clone or not _DIGITS.fullmatch(text) or not _llvm_ranges(session.folder):
        return ""
    with git_history.opened(Path(clone)) as repository:
        return git_history.resolve(repository, text)


def skip_in_llvm(session: BisectSession, commit: str) -> None:
    """Skip a commit in each search over LLVM that has begun."""
    for pins in _llvm_ranges(session.folder):
        journal = llvm_journal(session, pins)
        for kind in _LLVM_TESTS:  # not only what has a test: a search that was just begun has none
            journal.skip(f"{kind} {commit}")


def llvm_journal(session: BisectSession, pins: str) -> Journal:
    """Return the journal of the search between two pins of LLVM; a new one is on disk from then on.

    A name in it is `llc good COMMIT`: the programs, the side of the step whose llir they compile, the commit.

    Args:
        session: of the search over Triton.
        pins: `OLD-NEW`, 12 digits each.
    """
    folder = session.folder / _LLVM / pins
    question = replace(session.question, confirm=1)  # a compile by llc is the same each time
    if (folder / journals.FILE).is_file():
        known = _journal(folder / journals.FILE, _LLVM_TEST, question)
        # By now a network may be back, or a program installed; an error of the compiler stays the same.
        for name, tests in [*known.observations.items()]:
            known.observations[name] = [
                test for test in tests if test.metrics.get(LACKS) not in (TOOLS, LLVM)
            ]
            if not known.observations[name]:
                del known.observations[name]
        return known
    journal = _new_journal(folder, question)
    for kind in _LLVM_TESTS:  # version 0.1 had a folder for each
        by, _, side = kind.rpartition(" ")
        old = folder.with_name(f"{'opt-' if by != 'llc' else ''}{side}-{pins}")
        if (old / _OLD_FILE).is_file():
            part = _read_old(old).journal
            journal.observations.update(
                {f"{kind} {name}": tests for name, tests in part.observations.items()}
            )
            journal.skipped |= {f"{kind} {name}" for name in part.skipped}
    journal.begin()
    return journal


def _llvm_ranges(folder: Path) -> set[str]:
    """Return the pins between which a search over LLVM has begun, as folders are named: `OLD-NEW`."""
    begun = {path.parent.name for path in folder.glob(f"{_LLVM}/*/{journals.FILE}")}
    old = folder.glob(f"{_LLVM}/*/{_OLD_FILE}")
    return begun | {"-".join(path.parent.name.split("-")[-2:]) for path in old}


@contextmanager
def locked(folder: Path, purpose: str) -> Iterator[None]:
    """Lock the folder of a bisect for the body of a `with`.

    Raises:
        LockedError: another process works at it.
    """
    hints = ["wait for it to end: invoke bisect --status"]
    with locks.hold(folder / "lock", purpose=purpose, busy=f"at the bisect {folder.name}", hints=hints):
        yield


@dataclass(frozen=True)
class KeptFolder:
    """A folder of the workspace that bisects have made, and that `cache` may remove.

    Attributes:
        kind: its content in a word.
        folder: its path.
        bytes: of all files.
    """

    kind: str
    folder: Path
    bytes: int


def kept(space: Workspace) -> tuple[KeptFolder, ...]:
    """List the folders of bisects: their sessions, libraries, builds and clones."""
    # Environments of releases (`triton-3.6.0`) belong to other commands as well, so they are not listed.
    places = (
        ("bisect", space.root / "bisects", re.compile(".*")),
        ("libraries", space.root / "bisect" / "libraries", re.compile(".*")),
        ("builds", space.root / "envs", _ENV),
        ("clone", space.sources, _CLONE),
    )
    return tuple(
        KeptFolder(kind, folder, sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()))
        for kind, parent, name in places
        for folder in sorted(parent.glob("*"))
        if folder.is_dir() and name.fullmatch(folder.name)
    )


def removal(folders: Iterable[KeptFolder], space: Workspace) -> Plan:
    """Plan the removal of folders."""
    paths = tuple(row.folder for row in folders)
    return Plan("clear what bisect keeps", (Remove(paths, space.root, phase="clear"),) if paths else ())


@contextmanager
def all_held(folders: Sequence[KeptFolder], space: Workspace, purpose: str) -> Iterator[None]:
    """Keep bisects from using the folders for the body of a `with`.

    Raises:
        LockedError: a bisect runs.
    """
    space.claim()
    with ExitStack() as stack:
        for row in folders:
            if row.kind == "bisect":
                stack.enter_context(locked(row.folder, purpose))
            if row.kind == "clone":
                stack.enter_context(locks.hold(row.folder.with_suffix(".lock"), purpose=purpose))
        yield
