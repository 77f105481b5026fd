"""The journal of an experiment: a line per test, from which a run after one that was stopped goes on."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError, StepError
from tritonsmith.core.plan import files
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.model import Observation, Verdict

FILE = "journal.jsonl"
SCHEMA = 1


@dataclass
class Journal:
    """Everything that an experiment has observed so far.

    Attributes:
        path: of the file, whose first line names the schema and the key; None if nothing is written.
        key: digest of everything that an observation depends on, but for the change that is tested.
        seen: name of a change to its observations, in the order of the tests.
        ended: there is nothing to go on with.
        answer: the answer in one line, once it has ended.
        confirm: how many tests of a change have to agree.
        skipped: names of changes that a person has ruled out.
        task: name of the command; empty in an older journal.
        command: the command line that began it, without its secrets; empty if it is not known.
        asked: names of all changes that searches asked for in this run.
    """

    path: Path | None = None
    key: str = ""
    seen: defaultdict[str, list[Observation]] = field(default_factory=lambda: defaultdict(list))
    ended: bool = False
    answer: str = ""
    confirm: int = 1
    skipped: set[str] = field(default_factory=set)
    task: str = ""
    command: str = ""
    asked: set[str] = field(default_factory=set, init=False)
    _used: Counter[str] = field(default_factory=Counter, init=False)

    @property
    def count(self) -> int:
        """The number of observations."""
        return sum(map(len, self.seen.values()))

    def begin(self) -> None:
        """Write the first line, and everything that is known by now; an older journal is replaced."""
        about = {"task": self.task, "command": self.command}
        head = {"schema": SCHEMA, "key": self.key, **{name: text for name, text in about.items() if text}}
        rows: list[dict[str, Any]] = [head]
        rows += [{"skip": change} for change in sorted(self.skipped)]
        rows += [_row(change, test) for change, tests in self.seen.items() for test in tests]
        rows += [{"answer": self.answer}] if self.ended else []
        if self.path:
            files.write_atomically(self.path, "".join(f"{json.dumps(row)}\n" for row in rows))

    def known(self, change: str) -> Observation | None:
        """Take the next observation of a change, in the order of the tests; None if it has to be tested."""
        if self._used[change] == len(self.seen[change]):
            return None
        self._used[change] += 1
        return self.seen[change][self._used[change] - 1]

    def tests(self, change: str) -> list[Observation]:
        """Take the next `confirm` observations of a change, as far as there are that many."""
        known = (self.known(change) for _ in range(self.confirm))
        return [observation for observation in known if observation]

    def skip(self, change: str) -> None:
        """Rule out a change, in this run and in those that go on from its file.

        Raises:
            StepError: as `add`.
        """
        if change not in self.skipped:
            self.skipped.add(change)
            self._append({"skip": change})

    def add(self, change: str, observation: Observation) -> None:
        """Append an observation: the file has it before the next test begins.

        Raises:
            StepError: it cannot be written, as on a full disk.
        """
        self.seen[change].append(observation)
        self._used[change] += 1
        self._append(_row(change, observation))

    def recall(self, change: str, observation: Observation) -> None:
        """Append an observation of an earlier run, which `known` then has.

        Raises:
            StepError: as `add`.
        """
        self.seen[change].append(observation)
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
    try:
        whole, newline, rest = untrusted.read_text(path, untrusted.OURS).rpartition("\n")
        head, *lines = whole.split("\n")
        first = untrusted.json_of(head)
        if first["schema"] != SCHEMA:
            return None
        journal = Journal(path, untrusted.typed(str, first["key"], "key"))
        journal.task = untrusted.typed(str, first.get("task", ""), "task")
        journal.command = untrusted.typed(str, first.get("command", ""), "command")
        for line in lines:
            row = untrusted.json_of(line)
            if "answer" in row:
                journal.ended, journal.answer = True, untrusted.typed(str, row["answer"], "answer")
                continue
            if "skip" in row:
                journal.skipped.add(untrusted.typed(str, row["skip"], "skip"))
                continue
            name, observation = untrusted.typed(str, row.pop("change"), "change"), _observation(row)
            if untested or not to_go_on or observation.verdict is not Verdict.SKIP:
                journal.seen[name].append(observation)
        if rest and to_go_on:  # or the next line would be appended to it
            files.write_atomically(path, whole + newline)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        hints = [f"to start again: remove {path}"]
        raise FactError("cannot read this journal", where=path, why=str(error), hints=hints) from error
    return journal


def merged(journals: Mapping[str, Journal]) -> Journal:
    """Return what several experiments observed; where they are several, names begin with the experiment's.

    Args:
        journals: by the names of the experiments.
    """
    several = Journal(ended=all(journal.ended for journal in journals.values()))
    several.command = next((journal.command for journal in journals.values() if journal.command), "")
    several.answer = "; ".join(journal.answer for journal in journals.values() if journal.answer)
    for title, journal in journals.items():
        several.skipped |= journal.skipped
        for name, tests in journal.seen.items():
            several.seen[name if len(journals) == 1 else f"{title}: {name}"] += tests
    return several


def _observation(row: dict[str, Any]) -> Observation:
    verdict, failure = Verdict(row.pop("verdict")), row.pop("failure")
    failed = None if failure is None else untrusted.shaped(Failure, failure)
    observation = untrusted.shaped(Observation, row, verdict=verdict, failure=failed)
    if not all(map(math.isfinite, (observation.seconds, observation.cpu_seconds))):
        raise ValueError("a time is not a number")
    return replace(observation, notes=tuple(observation.notes), swapped=tuple(observation.swapped))
