"""The flags of every experiment: `--confirm`, `--skip`, `--status` and `--page`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import OutFile, command_line, flag
from tritonsmith.cli.tasks.options import CONFIRM
from tritonsmith.core.ui import console

if TYPE_CHECKING:
    from tritonsmith.lab.experiment import Rules
    from tritonsmith.lab.journal import Journal, Verdict


@dataclass(frozen=True, kw_only=True)
class ExperimentOptions:
    """The rules by which an experiment tests, and the views of its journal."""

    confirm: int | None = CONFIRM
    skip: tuple[str, ...] = flag("name of a change not to test (repeatable)", (), value="CHANGE")
    status: bool = flag("show what was tested so far, and test nothing", default=False)
    page: OutFile | None = flag("write an HTML page of all tests to this file", None, value="FILE")

    @property
    def rules(self) -> Rules:
        """The rules by which the loop tests.

        Raises:
            UsageError: `--skip` names the test with nothing changed, or `--page` cannot be written.
        """
        from tritonsmith.core import redact
        from tritonsmith.core.errors import UsageError
        from tritonsmith.facts import machine
        from tritonsmith.lab.experiment import Rules

        # Before anything is tested: a page that cannot be written after hours of tests comes too late.
        if self.page:
            path = self.page.path("page.html")  # in a folder, the name depends on the command
            why = "it is a folder" if path.is_dir() else machine.why_not_writable(path.parent)
            if why:
                raise UsageError("--page cannot be written", where=path, why=why, hints=["--page FILE.html"])
        return Rules(self.confirm or 1, self.skip, redact.hidden(_typed()))

    @property
    def rules_by_part(self) -> tuple[Rules, Rules]:
        """The rules of an isolation, and those of the reduction of what it isolates.

        Each takes the names of `--skip` that it knows, and would warn that the other's are misspelt.
        """
        # `12 tritongpu-coalesce` is a pass; the name of a candidate is 16 digits.
        passes = tuple(name for name in self.skip if " " in name)
        candidates = tuple(name for name in self.skip if name not in passes)
        rules = self.rules
        return replace(rules, skip=passes), replace(rules, skip=candidates)

    def show_status(
        self,
        folders: Path | Mapping[str, Path],
        words: Mapping[Verdict, str] | None = None,
        *,
        json: bool = False,
        key: str = "",
    ) -> bool:
        """Print the journal in a folder if `--status` asks for it; report whether it did.

        Args:
            folders: of the experiment, or those of several by their names.
            words: of the command for the four verdicts.
            json: print JSON.
            key: of the journal that the command would go on from; empty if that is not known before it runs.
        """
        from tritonsmith.core.errors import UsageError
        from tritonsmith.lab import experiment, report
        from tritonsmith.lab.journal import Journal, merged

        if not self.status:
            return False
        # A kernels file has a journal for each kernel; one without a test yet has none.
        named = {"": folders} if isinstance(folders, Path) else folders
        known = {name: begun for name, folder in named.items() if (begun := experiment.status(folder))}
        journal = merged(known) if known else None
        # Several questions may share a folder, and the files of one may have changed since it was begun.
        other = bool(key) and any(begun.key != key for begun in known.values())
        if other:
            console.warn("these tests had other inputs: the same command without --status starts over")
        if json:
            output.json(report.as_json(journal or Journal(), words))
        elif journal is None:
            console.note("there is no run to show: the same command without --status starts one")
        else:
            if journal.command:  # the same folder may have the journal of another question
                console.out().print(f"started by: {journal.command}", markup=False)
            console.out().print(report.table(journal, words))
            over = f"finished: {journal.answer}" if journal.answer else "finished"
            going = "not finished: the same command without --status continues from there"
            if journal.ended or not other:
                console.out().print(over if journal.ended else going, markup=False)
        if self.page and journal is None:
            raise UsageError("--page: there is no run to show", hints=["omit --status to start one"])
        if self.page and journal:
            name = command_line()[0][0]
            self.write_page(journal, name, [journal.answer or "not finished"], words)
        return True

    def write_page(
        self,
        journal: Journal,
        task: str,
        answer: Sequence[str],
        words: Mapping[Verdict, str] | None = None,
    ) -> None:
        """Write the page if `--page` asks for it.

        Args:
            journal: of the experiment.
            task: name of the command, which is the title and the name of the file in a folder.
            answer: lines; the first one is the verdict.
            words: of the command for the four verdicts.
        """
        from tritonsmith.lab import report

        if not self.page:
            return
        path = self.page.path(f"{task}.html")
        report.write(journal, path, task, command=_typed(), answer=answer, words=words)
        console.note(f"the page is {path}")


def _typed() -> str:
    """Return this command line, quoted."""
    before, after = command_line()
    return shlex.join(["tritonsmith", *before, *(["--", *after] if after else [])])
