"""An experiment's journal as a table, as JSON and as a page; commands add what their answer means."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tritonsmith.core import redact
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import files
from tritonsmith.core.text import counted
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.lab.journal import Journal, Observation, Verdict

_TEMPLATE = Path(__file__).with_name("report.html")
_STYLE = Path(__file__).with_name("page.css")
_FRAME = Path(__file__).with_name("page.html")
_LONGEST = 72  # characters of a result in a table; the page and --json have all of them
VERDICT_CLASSES = {
    Verdict.GOOD: "better",
    Verdict.BAD: "worse",
    Verdict.OTHER: "worse",
    Verdict.SKIP: "soft",
}  # CSS

# The words of a command for the four verdicts; a bisect has those of the verdicts themselves.
Words = Mapping[Verdict, str]


def table(journal: Journal, words: Words | None = None) -> Grid:
    """Return a row for each test, in the order in which the changes were first tested."""
    rows = [
        [name, _word(test, words), tables.clipped(result(test), _LONGEST), f"{test.seconds:.1f}"]
        for name, test in _tests(journal)
    ]
    return tables.plain(counted(len(rows), "test"), ["changed", "verdict", "result", "s"], rows, right=["s"])


def as_json(journal: Journal, words: Words | None = None) -> dict[str, Any]:
    """Return all tests, the skipped changes, the command, and the answer, which is None before the end."""
    return {
        "schema": 1,
        "tests": [
            {
                "change": name,
                "verdict": _word(test, words),
                "figures": test.figures,
                "why": test.why,
                "seconds": round(test.seconds, 3),
            }
            for name, test in _tests(journal)
        ],
        "skipped": sorted(journal.skipped),
        "command": journal.command or None,
        "ended": journal.ended,
        "answer": journal.answer or None,
    }


def write(
    journal: Journal,
    path: Path,
    title: str,
    *,
    command: str,
    answer: Sequence[str],
    words: Words | None = None,
) -> None:
    """Write a page of all tests, without a script.

    Args:
        journal: of the experiment.
        path: of the file.
        title: plain text.
        command: the command that repeats the experiment; secrets in it are hidden.
        answer: lines; the first one is the verdict.
        words: as for `table`.

    Raises:
        SmithError: the file cannot be written.
    """
    rows = [
        (name, _word(test, words), VERDICT_CLASSES[test.verdict], result(test), test.notes, test.seconds)
        for name, test in _tests(journal)
    ]
    write_page(
        _TEMPLATE,
        path,
        title,
        command=redact.hidden(command),
        answer=answer,
        state="",
        rows=rows,
        skipped=sorted(journal.skipped),
    )


def write_page(template: Path, path: Path, title: str, **values: object) -> None:
    """Write a page made from a template; see `render`.

    Raises:
        SmithError: the file cannot be written.
    """
    workspace.default().claim()
    page = render(template, title, script=None, styles=(), **values)
    try:
        files.write_atomically(path, page)
    except OSError as error:
        hints = ["the same command with --status and --page FILE writes one, without a test"]
        raise SmithError("cannot write the page", where=path, why=error.strerror, hints=hints) from error


def render(
    template: Path, title: str, *, script: Path | None = None, styles: Sequence[Path] = (), **values: object
) -> str:
    """Return a page made from a template that extends `page.html`: escaped and self-contained.

    Everything that a template prints is escaped; a name that it is not given is an error.

    Args:
        template: a Jinja template.
        title: plain text.
        script: the only script that the page may run; None for a page without one.
        styles: style sheets behind the one of all pages.
        values: what the template prints.
    """
    import jinja2  # noqa: PLC0415 - takes 40 ms, and most commands write no page

    folders = [template.parent, _FRAME.parent]
    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    style = "".join(path.read_text(encoding="utf-8") for path in (_STYLE, *styles))
    code = script.read_text(encoding="utf-8") if script else ""
    page = pages.get_template(template.name)
    return page.render(title=title, style=style, script=code, policy=_policy(style, code), **values)


def result(test: Observation) -> str:
    """Return the evidence of a test in one line."""
    # Messages of compilers have several lines, and a cell of the table has one.
    return " ".join(test.evidence.split())


def _tests(journal: Journal) -> Iterator[tuple[str, Observation]]:
    # By changes and not by time: the tests of one change, of which --confirm makes several, stand together.
    for name, tests in journal.observations.items():
        yield from ((name, test) for test in tests)


def _word(test: Observation, words: Words | None) -> str:
    return words[test.verdict] if words else str(test.verdict)


def _policy(style: str, script: str) -> str:
    # By their digests, the page's own style and script are the only ones that a browser applies and runs.
    ours = f"script-src {_digest(script)}; " if script else ""
    return (
        f"default-src 'none'; {ours}style-src {_digest(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
