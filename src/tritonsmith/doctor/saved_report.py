"""A report of `doctor --json`, from here or from another machine, read as untrusted input."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith import __version__
from tritonsmith.core import configs, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.doctor import snapshot
from tritonsmith.doctor.check import FINDINGS_SCHEMA, GRAVITY, DoctorContext, Status
from tritonsmith.doctor.snapshot import VARIABLE, Snapshot
from tritonsmith.facts import python_env

_LIMIT = 4 << 20  # bytes; a usual report has 30 KiB
_NOT_RUN = "not run"
_KEYS = frozenset(("schema", "tritonsmith", "when", "env", "worst", "findings", "setup", "since"))


@dataclass(frozen=True)
class SavedReport:
    """A report.

    Attributes:
        path: the file.
        when: time of the report, UTC, ISO 8601; empty if it is not recorded.
        env: name of the environment.
        setup: the facts.
        statuses: check to its most severe status.
        remarks: parts that this version does not understand.
    """

    path: Path
    when: str
    env: str
    setup: Snapshot
    statuses: Mapping[str, Status]
    remarks: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """A short name of the report, with its day."""
        return " ".join(filter(None, (self.path.name, self.when[:10])))


def read(path: Path) -> SavedReport:
    """Read a report.

    Raises:
        UsageError: there is no such file.
        SmithError: the file is not a report, or one without a setup.
    """
    # Reports are passed around, so this file is hostile until read: its size and every type are checked.
    try:
        document = untrusted.read_json(path, _LIMIT)
    except FileNotFoundError:
        raise UsageError("no such report", where=path, hints=[_how()]) from None
    except OSError as error:
        raise SmithError("cannot read this report", where=path, why=error.strerror) from error
    except ValueError as error:
        raise _no_report(path, f"it is not JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("findings"), list):
        raise _no_report(path, "it has no list `findings`")
    setup = document.get("setup")
    # `"setup": null` is a damaged report; a missing key, one of a version that wrote none.
    if setup is None and "setup" not in document:
        origin = (
            f"made by tritonsmith {document['tritonsmith']}"
            if document.get("tritonsmith")
            else "of an older version"
        )
        raise SmithError("this report has no setup to compare", where=path, why=origin, hints=[_how()])
    if not isinstance(setup, dict) or not all(isinstance(value, str) for value in setup.values()):
        raise _no_report(path, "its setup is not a table of texts")
    texts = {key: value if isinstance(value := document.get(key), str) else "" for key in ("when", "env")}
    return SavedReport(
        path, **texts, setup=setup, statuses=_statuses(document["findings"]), remarks=_remarks(path, document)
    )


def verdicts(report: SavedReport, other: SavedReport) -> list[dict[str, str]]:
    """Return the checks with different results: id, and the status in each report."""
    names = [*report.statuses, *(name for name in other.statuses if name not in report.statuses)]
    rows = [
        {"id": name, "then": report.statuses.get(name, _NOT_RUN), "now": other.statuses.get(name, _NOT_RUN)}
        for name in names
    ]
    return [row for row in rows if row["then"] != row["now"]]


def table(rows: Iterable[Mapping[str, str]], report: str, other: str) -> Grid:
    """Return a table of the checks with different results."""
    return tables.plain("checks", ["check", report, other], [[*row.values()] for row in rows])


def _statuses(findings: list[Any]) -> dict[str, Status]:
    """Return the most severe status of each check; malformed findings are left out."""
    worst: dict[str, Status] = {}
    for row in filter(lambda row: isinstance(row, dict), findings):
        check, word = row.get("id"), row.get("status")
        # The word comes from a file: only one of the known words becomes a Status.
        status = next((known for known in GRAVITY if known == word), None)
        if isinstance(check, str) and status:
            worst[check] = max(worst.get(check, status), status, key=GRAVITY.index)
    return worst


def _remarks(path: Path, document: Mapping[str, Any]) -> tuple[str, ...]:
    schema, by = document.get("schema"), document.get("tritonsmith", "an older version")
    others = sorted(set(document) - _KEYS)
    remarks = []
    if schema != FINDINGS_SCHEMA:
        remarks.append(
            f"{path.name} has schema {schema!r}, tritonsmith {__version__} writes {FINDINGS_SCHEMA}: "
            "its setup is compared, but its findings may mean something else"
        )
    if others:
        remarks.append(f"{path.name} has unknown keys, which are not compared: {', '.join(others)} (by {by})")
    return tuple(remarks)


def _no_report(path: Path, why: str) -> SmithError:
    return SmithError("this is not a report of the doctor", where=path, why=why, hints=[_how()])


def _how() -> str:
    return f"a report is what `{command('doctor', json=True)} > report.json` writes"


# `up --like REPORT`: recreate the environment of a report, as far as wheels and this machine allow.

# The fact `triton`: `3.5.1`, `3.6.0+git1234abcd`, `pytorch-triton-rocm 3.2.0`, or several of them.
_RELEASE = re.compile(r"(?:(?P<owner>\S+) )?(?P<release>\d+\.\d+\.\d+)(?P<rest>[^\s,]*)")
_TORCH = re.compile(r"(\d+\.\d+\.\d+)(\+\S+)?")
_SHELL_NAME = re.compile(r"[^\w.-]+")


@dataclass(frozen=True)
class LikeReport:
    """An environment that resembles that of a report.

    Attributes:
        name: default name of the environment.
        values: `section.key` of its env file, with the value.
        differs: differences from the report, one line each.
    """

    name: str
    values: dict[str, str]
    differs: tuple[str, ...]

    def env_file(self, report: SavedReport) -> str:
        """Return the text of the env file."""
        # As JSON, which escapes line breaks: a file's name may have one, which would end the comment.
        lines = [f"# like {json.dumps(report.title)} (tritonsmith {__version__})"]
        for section in ("triton", "python"):
            lines.append(f"[{section}]")
            # Plain quotes will do: `resolve` takes every value from a pattern that matches none.
            lines += [
                f'{key.partition(".")[2]} = "{value}"'
                for key, value in self.values.items()
                if key.startswith(f"{section}.")
            ]
        return "\n".join(lines) + "\n"


def resolve(report: SavedReport, here: DoctorContext) -> LikeReport:
    """Find the parts that can be installed here.

    Raises:
        SmithError: the report has no Triton.
    """
    setup, values, differs = report.setup, {}, list(report.remarks)
    release = _RELEASE.match(setup.get("triton", ""))
    if not release:
        raise SmithError(
            "there was no Triton in the environment of this report",
            where=report.path,
            why=f"its setup has triton: {setup.get('triton', '')!r}",
        )
    values["triton.wheel"] = release["release"]
    # A build of a checkout is on no index, and another owner is another build: the release comes nearest.
    if release["owner"] or release["rest"] or release.end() != len(setup["triton"]):
        differs.append(f"Triton: {setup['triton']} there; the released wheel {release['release']} here")
    python, remark = _python(setup.get("python", ""))
    values |= {"python.interpreter": python} if python else {}
    torch = _TORCH.fullmatch(setup.get("torch", ""))
    values |= {"python.torch": f"{torch[1]}+cpu"} if torch else {}
    differs += [*remark, *_torch(setup.get("torch", ""), exact=bool(torch)), *_machine(report, here)]
    name = f"like-{_SHELL_NAME.sub('-', report.path.stem).strip('-.')}"
    return LikeReport(name, values, tuple(differs))


def _python(version: str) -> tuple[str, tuple[str, ...]]:
    """Return the minor version for the env file, and the differences."""
    minor = ".".join(version.split(".")[:2])
    path = python_env.find_interpreter(minor) if re.fullmatch(r"\d+\.\d+", minor) else None
    interpreter = python_env.interpreter(path) if path else None
    # Without that Python, the default one: the Triton still is the report's, and the difference is listed.
    if interpreter is None:
        own = python_env.find_interpreter("")
        interpreter = python_env.interpreter(own) if own else None
        minor = ""
    here = interpreter.version if interpreter else "none"
    return minor, () if here == version else (f"Python: {version or 'none'} there, {here} here",)


def _torch(version: str, *, exact: bool) -> Iterator[str]:
    """Yield differences of torch."""
    # `up` installs builds for the CPU only: those for a GPU require a Triton of their own.
    if version and not exact:
        yield f"PyTorch: {version} there, none here: not a release"
    elif version and not version.endswith("+cpu"):
        yield f"PyTorch: {version} there, that release for the CPU here; env-triton installs the other builds"


def _machine(report: SavedReport, here: DoctorContext) -> Iterator[str]:
    """Yield differences that no package installer changes, and variables, which belong to the shell."""
    facts, now = configs.load("doctor-setup")["fact"], snapshot.read(here)
    for change in snapshot.changes_between(report.setup, now):
        if facts.get(change.what, {}).get("part") == "machine":
            yield f"{change.title}: {change.then or 'none'} there, {change.now or 'none'} here"
        elif change.what.startswith(VARIABLE):
            there, current = (value or "not set" for value in (change.then, change.now))
            yield f"{change.what.removeprefix(VARIABLE)}: {there} there, {current} here"
