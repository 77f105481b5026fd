"""The journal of an experiment: a line per observation, from which the next run of a stopped command goes on.

It is taken up only if nothing that a test depends on has changed since. The functions below `merged` collect
those inputs: each returns something to digest for the key of a journal.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import stat
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from uuid import uuid4

from tritonsmith.compiler import source_tree
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core import process, untrusted
from tritonsmith.core.errors import FactError, SmithError, StepError
from tritonsmith.core.plan import files
from tritonsmith.core.ui import console
from tritonsmith.facts import gpus, package_owners, python_env
from tritonsmith.facts.package_owners import PACKAGE
from tritonsmith.lab.failure import Failure

FILE = "journal.jsonl"
SCHEMA = 1


class Verdict(StrEnum):
    """The answer of a test, in the words of `git bisect`: `BAD` shows what is searched for, `GOOD` does not.

    `OTHER` is a failure that is not the one searched for, which a triage tells apart; a bisect has `SKIP` for
    it, as for what could not be tested.
    """

    # A journal has these texts, so a change of one makes older journals unreadable.
    GOOD = "good"
    BAD = "bad"
    OTHER = "another failure"
    SKIP = "skip"


@dataclass(frozen=True)
class Observation:
    """The result of one test.

    Attributes:
        verdict: whether it shows the symptom.
        figures: the evidence, as it is shown: `spills 4472`, `exit code 1: ...`.
        why: the reason why it could not be tested.
        seconds: wall time of the test.
        failure: how it failed; None if it did not.
        code: digest of the machine code; empty if there is none.
        notes: sentences about the compile: the pass in which it failed, where the time goes.
        cause: the culprit, where the test itself names it.
        swapped: versions of ptxas: Triton's own, and the one in its place.
        failed_in: class of the pass in which it failed, as MLIR names it; empty if that is unknown.
        cpu_seconds: CPU time of its compiles; what makes the same code is no quicker.
        metrics: resources of the code, by the columns of `kernel.compile --resources`.
    """

    # A journal keeps these fields as JSON, and a reader refuses a line with other ones.
    verdict: Verdict
    figures: str = ""
    why: str = ""
    seconds: float = 0.0
    failure: Failure | None = None
    code: str = ""
    notes: tuple[str, ...] = ()
    cause: str = ""
    swapped: tuple[str, ...] = ()
    failed_in: str = ""
    cpu_seconds: float = 0.0
    metrics: Mapping[str, int | float | str | None] = field(default_factory=dict)

    @property
    def evidence(self) -> str:
        """The figures, and why it could not be tested."""
        return ", ".join(filter(None, (self.figures, self.why)))


# Sent to a search in the place of a test that its request did without; it is in no journal.
UNNEEDED = Observation(Verdict.SKIP, why="another change answered before")


@dataclass
class Journal:
    """Everything that an experiment has observed so far.

    Attributes:
        path: of the file, whose first line names the schema and the key; None if nothing is written.
        key: digest of everything that an observation depends on, except the change that is tested.
        observations: name of a change to its observations, in the order of the tests.
        ended: there is nothing to go on with.
        answer: the answer in one line, once it has ended.
        late: changes that were ruled out since then, so that the answer may be another one now.
        confirm: how many tests of a change have to agree.
        skipped: names of changes that a person has ruled out.
        task: name of the command; empty in an older journal.
        command: the command line that began it, without its secrets; empty if it is not known.
        requested: names of all changes that searches asked for in this run.
    """

    path: Path | None = None
    key: str = ""
    observations: defaultdict[str, list[Observation]] = field(default_factory=lambda: defaultdict(list))
    ended: bool = False
    answer: str = ""
    late: list[str] = field(default_factory=list)
    confirm: int = 1
    skipped: set[str] = field(default_factory=set)
    task: str = ""
    command: str = ""
    requested: set[str] = field(default_factory=set, init=False)
    # How many observations of each change this run has taken: a search may ask for one change twice.
    _used: Counter[str] = field(default_factory=Counter, init=False)

    @property
    def count(self) -> int:
        """The number of observations."""
        return sum(map(len, self.observations.values()))

    def begin(self) -> None:
        """Write the first line, and everything that is known by now; an older journal is replaced."""
        about = {"task": self.task, "command": self.command}
        head = {"schema": SCHEMA, "key": self.key, **{name: text for name, text in about.items() if text}}
        rows: list[dict[str, Any]] = [head]
        rows += [{"skip": change} for change in sorted(self.skipped)]
        rows += [_row(change, test) for change, tests in self.observations.items() for test in tests]
        rows += [{"answer": self.answer}] if self.ended else []
        if self.path:
            files.write_atomically(self.path, "".join(f"{json.dumps(row)}\n" for row in rows))

    def known(self, change: str) -> Observation | None:
        """Take the next observation of a change, in the order of the tests; None if it has to be tested."""
        if self._used[change] == len(self.observations[change]):
            return None
        self._used[change] += 1
        return self.observations[change][self._used[change] - 1]

    def tests(self, change: str) -> list[Observation]:
        """Take the next `confirm` observations of a change, as far as there are that many."""
        known = (self.known(change) for _ in range(self.confirm))
        return [observation for observation in known if observation]

    def rule_out(self, change: str) -> None:
        """Rule out a change in this run."""
        self.skipped.add(change)
        self.late += [change] if self.ended else []

    def skip(self, change: str) -> None:
        """Rule out a change, in this run and in those that go on from its file.

        Raises:
            StepError: as `add`.
        """
        if change not in self.skipped:
            self.rule_out(change)
            self._append({"skip": change})

    def add(self, change: str, observation: Observation) -> None:
        """Append an observation.

        Raises:
            StepError: it cannot be written, as on a full disk.
        """
        # The file has it before the next test begins: so a kill loses no more than one test.
        self.observations[change].append(observation)
        self._used[change] += 1
        self._append(_row(change, observation))
        console.record_progress(f"test {self.count}: {change}: {observation.verdict}")

    def recall(self, change: str, observation: Observation) -> None:
        """Append an observation of an earlier run, which `known` then has.

        Raises:
            StepError: as `add`.
        """
        self.observations[change].append(observation)
        self._append({"change": change, **asdict(observation)})

    def end(self, answer: str) -> None:
        """Append the answer in one line: the next run begins anew.

        Raises:
            StepError: as `add`.
        """
        self.ended, self.answer = True, answer
        self._append({"answer": answer})

    def _append(self, row: dict[str, Any]) -> None:
        try:
            if self.path:
                files.append(self.path, json.dumps(row))
        except OSError as error:
            raise StepError(f"cannot write to {self.path}", why=error.strerror) from error


def _row(change: str, observation: Observation) -> dict[str, Any]:
    return {"change": change, **asdict(observation)}


def read(path: Path, *, to_go_on: bool = True, untested: bool = False) -> Journal | None:
    """Read a journal; None if there is none, or one of another version of this tool.

    Args:
        path: of the file.
        to_go_on: remove a last line that was cut off, as by a full disk, so that its test is repeated; and
            leave out tests that had no answer, as the reason may have gone meanwhile. If false, nothing is
            written: another process may be writing.
        untested: keep tests that had no answer all the same.

    Raises:
        FactError: it is damaged.
    """
    number = 1
    try:
        # What follows the last newline was cut off, by a kill or a full disk.
        whole, newline, rest = untrusted.read_text(path, untrusted.OURS).rpartition("\n")
        head, *lines = whole.split("\n")
        first = untrusted.json_of(head)
        if first["schema"] != SCHEMA:
            return None
        journal = Journal(path, untrusted.typed(str, first["key"], "key"))
        journal.task = untrusted.typed(str, first.get("task", ""), "task")
        journal.command = untrusted.typed(str, first.get("command", ""), "command")
        for line in lines:
            number += 1
            row = untrusted.json_of(line)
            if "answer" in row:
                journal.ended, journal.answer = True, untrusted.typed(str, row["answer"], "answer")
                continue
            if "skip" in row:
                journal.rule_out(untrusted.typed(str, row["skip"], "skip"))
                continue
            name, observation = untrusted.typed(str, row.pop("change"), "change"), _observation(row)
            if untested or not to_go_on or observation.verdict is not Verdict.SKIP:
                journal.observations[name].append(observation)
        if rest and to_go_on:  # or the next line would be appended to it
            files.write_atomically(path, whole + newline)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        if isinstance(error, OSError):
            raise FactError("cannot read this journal", where=path, why=error.strerror) from error
        # Nothing of it is dropped silently: the damage may be a line that a person can mend.
        hints = [
            f"mend the line, or start again: rm {shlex.quote(str(path))}",
            "with --out: choose another folder",
        ]
        what = f"line {number} of this journal is damaged"
        raise FactError(what, where=path, why=str(error), hints=hints) from error
    return journal


def merged(journals: Mapping[str, Journal]) -> Journal:
    """Return the observations of several experiments in one journal, for a table or a page.

    Args:
        journals: by the names of the experiments, which the names of changes begin with if there are several.
    """
    several = Journal(ended=all(journal.ended for journal in journals.values()))
    several.command = next((journal.command for journal in journals.values() if journal.command), "")
    several.answer = "; ".join(journal.answer for journal in journals.values() if journal.answer)
    for title, journal in journals.items():
        several.skipped |= journal.skipped
        for name, tests in journal.observations.items():
            several.observations[name if len(journals) == 1 else f"{title}: {name}"] += tests
    return several


def _observation(row: dict[str, Any]) -> Observation:
    verdict, failure = Verdict(row.pop("verdict")), row.pop("failure")
    failed = None if failure is None else untrusted.shaped(Failure, failure)
    observation = untrusted.shaped(Observation, row, verdict=verdict, failure=failed)
    # Python's json reads NaN and Infinity, and a sum of times would be neither.
    if not all(map(math.isfinite, (observation.seconds, observation.cpu_seconds))):
        raise ValueError("a time is not a number")
    return replace(observation, notes=tuple(observation.notes), swapped=tuple(observation.swapped))


# In doubt, an input is counted: a file too many begins an experiment anew, which costs time; a file too few
# mixes the results of two inputs, which costs the truth.

# Variables of a terminal and of its session: they differ in the next window, and no compiler reads them.
_SESSION = (
    *("_", "SHLVL", "PWD", "OLDPWD", "TERM", "TERM_*", "COLORTERM", "COLUMNS", "LINES", "WINDOWID", "TTY"),
    *(
        "SSH_*",
        "TMUX",
        "TMUX_*",
        "STY",
        "WINDOW",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XAUTHORITY",
        "DBUS_*",
        "XDG_*",
    ),
    *("GPG_*", "HISTFILE", "HISTSIZE", "PS1", "PROMPT_COMMAND", "INVOCATION_ID", "JOURNAL_STREAM"),
    *("VSCODE_*", "PYTEST_CURRENT_TEST"),
)
# Files that a program reads rather than writes; what it writes would be another input in the next run.
_READ = (
    *(".py", ".pyi", ".so", ".toml", ".yaml", ".yml", ".cfg", ".ini", ".json", ".cu", ".cuh", ".h", ".hpp"),
    *(".c", ".cc", ".cpp", ".ttir", ".ttgir", ".llir", ".ptx", ".amdgcn"),
)
_MOST = 50_000  # files and folders of one tree; a home folder has more, and looking at them takes seconds
_PYTHON = re.compile(r"python[\d.]*t?")
_METADATA = (".dist-info", ".egg-info", ".egg-link", ".pth", "_finder.py")


def unknown() -> str:
    """Return something that is never the same again, for inputs that cannot be compared."""
    return f"unknown {uuid4().hex}"


def environment() -> dict[str, object]:
    """Return the variables that a program may read, and the state of files that they name."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not any(fnmatchcase(name, pattern) for pattern in _SESSION)
    }
    # TRITON_PTXAS_PATH keeps its value when the program behind it is replaced.
    return {
        name: (value, file(Path(value)) if value.startswith("/") else None) for name, value in kept.items()
    }


def file(path: Path | str) -> tuple[int, ...] | None:
    """Return the state of a file, which changes when it is written; None if it is no file."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a `Path` for each of thousands would cost more than the look
    except (OSError, ValueError):  # it may go while others are looked at; a word of a command is no path
        return None
    return _state(status) if stat.S_ISREG(status.st_mode) else None


def _state(status: os.stat_result) -> tuple[int, ...]:
    # A copy may keep the time of the content, but not that of the inode. The latter also changes when a file
    # gets another link, as uv gives each file that it installs into one more environment.
    own = status.st_ctime_ns if status.st_nlink == 1 else status.st_ino
    return (status.st_size, status.st_mtime_ns, own)


def tree(folder: Path, *, every: bool = False, apart: Iterable[Path] = ()) -> object:
    """Return the states of the files below a folder, by their paths.

    Args:
        folder: of the tree.
        every: all files, not only those that are usually read.
        apart: files and folders that the experiment itself writes.
    """
    own = {os.path.realpath(path) for path in apart}
    passed = set(own)
    states: dict[str, tuple[int, ...]] = {}
    count = 0
    # With links: the parts of a Triton that is installed from its checkout are linked together.
    for place, inner, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        # The second are environments and caches: the tool's own among them, whose logs change all the time.
        if real in passed or not {"pyvenv.cfg", "CACHEDIR.TAG"}.isdisjoint(names):
            inner.clear()
            continue
        passed.add(real)
        inner[:] = [name for name in inner if not name.startswith(".") and name != "__pycache__"]
        count += len(inner) + len(names)
        if count > _MOST:
            return unknown()
        for name in names:
            path = os.path.join(place, name)  # noqa: PTH118 - as `file`
            # A link is resolved part by part, which takes ten times as long as the state of the file.
            mine = (every or name.endswith(_READ)) and not (own and os.path.realpath(path) in own)
            if mine and (state := file(path)):
                states[path] = state
    return states


def python(executable: Path) -> object:
    """Return an interpreter with the state of its packages.

    Most packages have that of their metadata; Triton, and packages from elsewhere, that of all files.
    """
    # The state of their metadata tells of a change; reading it, for each of some hundred, would say no more.
    known = python_env.with_path(executable)
    if known is None:
        return unknown()
    # An editable install is a line of a `.pth` file or a finder: its sources change without any change here.
    elsewhere = [
        folder for folder in known.path if folder not in known.sites and not (folder / "os.py").is_file()
    ]
    for finder in (path for site in known.sites for path in sorted(site.glob("__editable__*_finder.py"))):
        elsewhere += package_owners.finder_mapping(finder).values()
    try:
        installed = [
            (str(path), _state(path.lstat()))
            for site in known.sites
            for path in sorted(site.iterdir())
            if path.name.endswith(_METADATA)
        ]
    except OSError:  # pip is at work there
        return unknown()
    # All files of Triton, also those without an ending: ptxas, cuobjdump and the like are among them.
    tritons = [tree(folder / PACKAGE, every=True) for folder in (*known.sites, *elsewhere)]
    # A finder names the package itself, a line of a `.pth` file the folder around it.
    tritons += [tree(folder, every=True) for folder in elsewhere if folder.name == PACKAGE]
    return (str(executable), known.version, installed, tritons, [tree(folder) for folder in elsewhere])


def compiled(asked: CompileRequest, where: Interpreter) -> object:
    """Return a compile with the kernel's sources, the Triton and the programs that it runs."""
    # A file that does not parse has no list of imports, and its error is the compile's to report.
    try:
        of_python = "" if asked.from_ir else source_tree.of(asked.file, asked.kernel).key
        sources = of_python or source_tree.sum_of(asked.file)
    except SmithError:
        sources = unknown()
    programs = [file(Path(name)) for tool in where.programs.disassemblers for name in tool.programs]
    limits = (where.variables, where.timeout, where.jobs, where.programs, programs)
    folders = [tree(folder) for folder in paths_of({**os.environ, **where.variables})]
    return (sources, asked, limits, python(where.python), environment(), folders)


def program(path: Path) -> object:
    """Return a program; for a Python, and for a script that one runs, also that Python."""
    return (str(path), file(path), [python(executable) for executable in _pythons(path)])


def _pythons(path: Path) -> Iterator[Path]:
    if _PYTHON.fullmatch(path.name):
        yield path
        return
    try:
        with untrusted.opened(path) as content:
            head, second = (content.readline(4096).decode(errors="replace") for _ in range(2))
        # A `#!` takes no path with a space, and none that is long: for these, installers write a line of the
        # shell that Python reads as a text: `'''exec' "/a path/python" "$0" "$@"`.
        words = shlex.split(second)[1:] if second.startswith("'''exec' ") else []
    except (OSError, ValueError):
        return
    words = words or (head.removeprefix("#!").split() if head.startswith("#!") else [])
    if words and _PYTHON.fullmatch(Path(words[0]).name):
        yield Path(words[0])


def command(argv: Sequence[str], cwd: Path, path: str, apart: Iterable[Path] = ()) -> object:
    """Return a command with the files and programs that it may read, its variables and the GPUs.

    Args:
        argv: program and arguments.
        cwd: where it runs.
        path: its PATH.
        apart: files and folders that the experiment itself writes.
    """
    # `tests/test_k.py::test_add` of pytest names a file, too.
    named = [cwd / word.partition("::")[0] for word in argv[1:]]
    scripts = [name for name in named if untrusted.is_file(name)]
    # A script imports from its own folder, and `python -m` from the current one.
    folders = dict.fromkeys((cwd, *(script.parent for script in scripts), *paths_of(os.environ)))
    trees = [tree(folder, apart=apart) for folder in folders]
    called, pythons = process.which(argv[0], path) or argv[0], process.which("python", path)
    programs = [program(Path(name)) for name in dict.fromkeys((called, pythons or sys.executable))]
    return (argv, str(cwd), [file(script) for script in scripts], trees, programs, environment(), gpus.read())


def paths_of(variables: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folders of PYTHONPATH."""
    return tuple(map(Path, filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))))
