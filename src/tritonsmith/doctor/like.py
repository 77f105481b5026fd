"""`up --like REPORT`: recreate the environment of a report, as far as wheels and this machine allow."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tritonsmith import __version__
from tritonsmith.core import configs
from tritonsmith.core.errors import SmithError
from tritonsmith.doctor import changes, snapshot
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.saved_report import SavedReport
from tritonsmith.doctor.snapshot import VARIABLE
from tritonsmith.facts import python_env

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
        lines = [f"# like {json.dumps(report.title)} (tritonsmith {__version__})"]
        for section in ("triton", "python"):
            lines.append(f"[{section}]")
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
    if interpreter is None:
        own = python_env.find_interpreter("")
        interpreter = python_env.interpreter(own) if own else None
        minor = ""
    here = interpreter.version if interpreter else "none"
    return minor, () if here == version else (f"Python: {version or 'none'} there, {here} here",)


def _torch(version: str, *, exact: bool) -> Iterator[str]:
    """Yield differences of torch: `up` installs only CPU builds; those for a GPU bring their own Triton."""
    if version and not exact:
        yield f"PyTorch: {version} there, none here: not a release"
    elif version and not version.endswith("+cpu"):
        yield f"PyTorch: {version} there, the same release for the CPU here: env-triton has the others"


def _machine(report: SavedReport, here: DoctorContext) -> Iterator[str]:
    """Yield differences that no package installer changes, and variables, which belong to the shell."""
    facts, now = configs.load("doctor-setup")["fact"], snapshot.read(here)
    for change in changes.between(report.setup, now):
        if facts.get(change.what, {}).get("part") == "machine":
            yield f"{change.title}: {change.then or 'none'} there, {change.now or 'none'} here"
        elif change.what.startswith(VARIABLE):
            then, now_ = (value or "not set" for value in (change.then, change.now))
            yield f"{change.what.removeprefix(VARIABLE)}: {then} there, {now_} here"
