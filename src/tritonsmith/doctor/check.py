"""The doctor's checks, their findings, and the facts that they may use."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import receipts
from tritonsmith.core.envs.settings import Settings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import Step
from tritonsmith.facts import ccache, gpus, llvm_tree, machine, python_env, tools, triton_cache
from tritonsmith.facts import checkout as checkouts
from tritonsmith.facts.ccache import Ccache
from tritonsmith.facts.checkout import TritonCheckout
from tritonsmith.facts.gpus import Gpus, SmiError, SmiGpu, read_smi
from tritonsmith.facts.llvm_tree import LlvmTree
from tritonsmith.facts.machine import Machine
from tritonsmith.facts.python_env import PythonEnv
from tritonsmith.facts.tools import Tool
from tritonsmith.facts.triton_cache import Content

Status = Literal["ok", "note", "warning", "error", "crashed", "not applicable"]
# It changes when a key of the JSON changes its meaning or is removed, not when one is added (docs/doctor.md).
FINDINGS_SCHEMA = 2
# From the least severe: `worst`, and the reader of saved reports, compare positions.
GRAVITY: tuple[Status, ...] = ("not applicable", "ok", "note", "warning", "error", "crashed")


@dataclass(frozen=True)
class Finding:
    """One result of a check.

    Attributes:
        status: the verdict.
        seen: description of what the check found.
        where: the file, folder or program that the finding is about.
        affects: the consequence of a problem.
        remedy: a remedy, in words.
        commands: the remedy, as commands.
        fix: steps that apply it, where that is safe and can be undone.
        check: id of the check: `tools.cmake`.
    """

    status: Status
    seen: str
    where: str = ""
    affects: str = ""
    remedy: str = ""
    commands: tuple[str, ...] = ()
    fix: tuple[Step, ...] = ()
    check: str = ""

    @property
    def group(self) -> str:
        """The group of the check: `tools`, `machine`, `builds` ..."""
        return self.check.partition(".")[0]

    @property
    def name(self) -> str:
        """The check's name within its group: `cmake`."""
        return self.check.partition(".")[2]

    @property
    def wrong(self) -> bool:
        """Report whether the user should act on it."""
        return self.status in ("warning", "error", "crashed")

    @property
    def docs(self) -> str:
        """The command that prints the check's documentation, in a checkout and from an installed wheel."""
        return command("doctor", explain=self.check)


class NotApplicableError(Exception):
    """A check does not apply here; the message has the reason."""


# Constructors for the usual results; the other arguments are those of `Finding`.
note = partial(Finding, "note")
warning = partial(Finding, "warning")
error = partial(Finding, "error")


def ok(seen: str, where: object = "") -> Finding:
    """Return a finding that everything is as expected."""
    return Finding("ok", seen, str(where))


def skipped(why: str) -> Finding:
    """Return a finding that the check does not apply here."""
    return Finding("not applicable", why)


def of_error(reported: SmithError, check: str = "") -> Finding:
    """Return the finding for an error, of a check or before any check."""
    remedy = "; ".join(reported.hints)
    return error(reported.what, reported.where or "", reported.why or "", remedy, check=check)


def findings_as_json(findings: tuple[Finding, ...]) -> dict[str, Any]:
    """Return the documented form of `doctor --json` (docs/doctor.md)."""
    return {
        "schema": FINDINGS_SCHEMA,
        "worst": worst(findings),
        "findings": [_table(finding) for finding in findings],
    }


def worst(findings: tuple[Finding, ...]) -> Status:
    """Return the most severe status among findings."""
    return max((finding.status for finding in findings), key=GRAVITY.index, default="ok")


def _table(finding: Finding) -> dict[str, Any]:
    # `fix` is a plan's steps, which are no data; its presence is the key `fixable`.
    fields = {name: value for name, value in asdict(finding).items() if name not in ("fix", "check")}
    head = {"id": finding.check, "group": finding.group}
    return {**head, **fields, "docs": finding.docs, "fixable": bool(finding.fix)}


@dataclass
class DoctorContext:
    """An environment on a machine, as the facts that checks use; each is read once, on first use.

    Attributes:
        settings: the env.
        space: the workspace.
        environ: the environment's variables.
        python: an interpreter to check instead of the env's.
        cwd: the current folder.
        asked: path of the env file if one was given, for command lines; empty for a name.
        unreadable: error of an unreadable checkout; None if it is readable, or `checkout` was not read yet.
    """

    settings: Settings
    space: Workspace
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    python: Path | None = None
    cwd: Path = field(default_factory=Path.cwd)
    asked: str = ""
    unreadable: SmithError | None = field(default=None, init=False)

    @property
    def named(self) -> str:
        """The environment's name on a command line."""
        return self.asked or self.settings.name

    @property
    def env(self) -> EnvDir:
        """The env's folder."""
        return self.space.env(self.settings.name)

    @cached_property
    def host(self) -> Machine:
        """The machine."""
        return machine.read()

    @cached_property
    def programs(self) -> dict[str, Tool | None]:
        """The programs of `configs/tools.toml`, by name."""
        rows = configs.load("tools")["tool"]
        # Each thread waits for a process; one after the other they take a second.
        with ThreadPoolExecutor(len(rows)) as pool:
            return dict(zip((row["name"] for row in rows), pool.map(_find, rows), strict=True))

    @cached_property
    def ccache(self) -> Ccache | None:
        """The compiler cache's configuration and statistics."""
        program = self.programs["ccache"]
        return ccache.read(program.path) if program else None

    def receipt(self, task: str) -> dict[str, Any] | None:
        """Return the receipt that a task wrote in this env."""
        return receipts.read(self.env.receipt(task))

    @cached_property
    def checkout(self) -> TritonCheckout | None:
        """The env's Triton checkout; None if there is none, or it is `unreadable`.

        It is a path in its file, the one around the current folder, the last one built, or the env's clone.
        """
        # An error is kept, not raised: one broken file must not take the other checks along. Only
        # `sources.checkout` reports it.
        root = self._checkout_root()
        try:
            return checkouts.read(root) if root else None
        except SmithError as error:
            self.unreadable = error
            return None

    def need_checkout(self) -> TritonCheckout:
        """Return `checkout`.

        Raises:
            NotApplicableError: there is no checkout.
        """
        if self.checkout is None:
            raise NotApplicableError("no Triton checkout found")
        return self.checkout

    def _checkout_root(self) -> Path | None:
        # A URL names no folder; what was cloned from it is the last candidate below.
        source = self.settings.triton.source
        if source and "://" not in source and not source.startswith("git@"):
            return Path(source).expanduser().absolute()
        built = (self.receipt("build-triton") or {}).get("source", "")
        clone = self.space.sources / f"triton-{self.settings.name}"
        # The checkout that the user stands in comes before the one that was built last.
        candidates = (checkouts.enclosing(self.cwd), Path(built) if built else None, clone)
        return next((root for root in candidates if root and root.is_dir()), None)

    @property
    def llvm_prefix(self) -> Path | None:
        """The LLVM prefix for the env's builds: the configured one, the one used last, `LLVM_SYSPATH`."""
        named = self.settings.llvm.dir or self._last_llvm() or self.environ.get("LLVM_SYSPATH", "")
        return self.cwd / Path(named).expanduser() if named else None

    def _last_llvm(self) -> str:
        """Return the LLVM of the last setup-mlir or build-triton, which `--llvm-dir` may have overridden."""
        sources = ((self.receipt("setup-mlir") or {}, "prefix"), (self.receipt("build-triton") or {}, "llvm"))
        used = [
            (str(receipt.get("finished")), str(receipt[key])) for receipt, key in sources if receipt.get(key)
        ]
        # The newest: the times are ISO 8601 in UTC, which compare as texts.
        return max(used, default=("", ""))[1]

    @cached_property
    def llvm(self) -> LlvmTree | None:
        """The LLVM at `llvm_prefix`; None if there is none (any more)."""
        prefix = self.llvm_prefix
        return llvm_tree.read(prefix) if prefix and llvm_tree.is_tree(prefix) else None

    @cached_property
    def interpreter(self) -> Path | None:
        """The Python to check: the one given, the env's, or that of the active environment."""
        if self.python:
            return self.python
        # The tool's own `.venv` is active when it is started by ./bootstrap, and
        # is not what the user means.
        active = [self.environ.get(name, "") for name in ("VIRTUAL_ENV", "CONDA_PREFIX")]
        folders = [Path(folder) for folder in active if folder and Path(folder) != Path(sys.prefix)]
        candidates = (self.env.python, *(folder / "bin" / "python" for folder in folders))
        return next((path for path in candidates if path.exists()), None)

    @cached_property
    def caches(self) -> tuple[Content, ...]:
        """The contents of Triton's caches; of many entries, only some are read."""
        # A cache may have 100,000 entries, and its disk may be another machine's.
        left = int(configs.load("triton-cache")["doctor"]["entries"])
        contents = []
        for root in triton_cache.find(self.environ, self.space):
            contents.append(triton_cache.scan(root, limit=left))
            left -= len(contents[-1].entries)
        return tuple(contents)

    @cached_property
    def gpus(self) -> Gpus:
        """The GPUs of this machine, and their driver."""
        return gpus.read()

    @cached_property
    def smi(self) -> tuple[SmiGpu, ...] | str:
        """The values of nvidia-smi for each GPU, or the reason why there are none."""
        try:
            return read_smi()
        except SmiError as error:
            return str(error)

    @cached_property
    def packages(self) -> PythonEnv | None:
        """The facts about `interpreter`; None if there is none, or it does not run."""
        return python_env.read(self.interpreter) if self.interpreter else None

    def need_packages(self) -> PythonEnv:
        """Return `packages`; `python.version` reports an interpreter that exists but does not run.

        Raises:
            NotApplicableError: there is no working interpreter.
        """
        if self.packages is None and self.interpreter:
            raise NotApplicableError(f"{self.interpreter} is not a working Python")
        if self.packages is None:
            raise NotApplicableError("no working interpreter: neither the environment's nor an active one")
        return self.packages

    @property
    def installed_triton(self) -> str:
        """The version of the distribution that owns `triton/` in `interpreter`; empty if there is none."""
        installed = dict(self.packages.dists) if self.packages else {}
        owners = self.packages.triton_owners if self.packages else ()
        return next((installed[name] for name in owners), "")

    @property
    def triton_version(self) -> str:
        """The version to check: the checkout's, else the installed Triton's; empty if there is neither."""
        return self.checkout.version if self.checkout else self.installed_triton


def _find(row: Mapping[str, Any]) -> Tool | None:
    names = tools.versioned(row["name"]) if row.get("versioned") else []
    return tools.own(row["name"]) if row.get("own") else tools.find(row["name"], names=names)


Look = Callable[[DoctorContext], Iterable[Finding]]


@dataclass(frozen=True)
class Check:
    """A named check of the doctor.

    Attributes:
        id: `group.name`; also the head of its section in docs/doctor.md.
        title: the subject of the check, in a few words.
        look: yields findings, without the check's id; at least one, or it raises `NotApplicableError`.
        deep: the check runs programs, and only with `--deep`.
    """

    id: str
    title: str
    look: Look
    deep: bool = False

    @property
    def group(self) -> str:
        """The group of the check: `tools`, `machine` ..."""
        return self.id.partition(".")[0]

    def __call__(self, subject: DoctorContext) -> tuple[Finding, ...]:
        """Run the check; an exception becomes a finding."""
        try:
            # All at once: a generator's errors come while it is read.
            findings = tuple(self.look(subject))
        except NotApplicableError as why:
            findings = (skipped(str(why)),)
        # A crash of one check is a finding, not a traceback: the other checks are needed
        # most when something is odd.
        except Exception as error:  # noqa: BLE001
            text = f"{type(error).__name__}: {error}"
            findings = (Finding("crashed", text, remedy="report this: it is a bug in the doctor"),)
        return tuple(replace(finding, check=self.id) for finding in findings)


def check(identifier: str, title: str, *, deep: bool = False) -> Callable[[Look], Check]:
    """Make a function a check."""

    def decorate(look: Look) -> Check:
        return Check(identifier, title, look, deep)

    return decorate
