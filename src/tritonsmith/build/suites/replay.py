"""`test-triton --ci`: run the steps of a job that need no GPU in a clone, and compare them with a CI log."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tritonsmith.build import cmake
from tritonsmith.build.suites import command
from tritonsmith.build.suites.command import NothingRunError, TestedBuild
from tritonsmith.build.suites.workflow import CONFIG, WorkflowJob, WorkflowStep
from tritonsmith.build.triton import install
from tritonsmith.core import configs, process, untrusted
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Link, MakeDir, Plan, Remove, Run, Step, Write, files
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.facts import checkout, python_env
from tritonsmith.facts.git import look

StepWord = Literal["passed", "failed", "left out", "to run"]

_STAMP = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT[\d:.]+Z ?")
_GROUP, _ERROR = "##[group]Run ", "##[error]Process completed with exit code"
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_REFUSED = ("sudo", "apt", "apt-get", "brew", "dnf", "yum")
# Ways from a step to the user's keys and daemons, and files that bash reads by itself.
_CREDENTIALS = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "BASH_ENV", "ENV")
_CLONE = "clone of the checkout"
_SANDBOX = (
    *("--die-with-parent", "--unshare-all", "--cap-drop", "ALL", "--ro-bind", "/", "/"),
    *("--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run"),  # sockets in /run lead to daemons
)


@dataclass(frozen=True)
class ReplayedStep:
    """A step, with its results here and in a log.

    Attributes:
        step: the step.
        word: its result here.
        why: the reason, or the last line of its output.
        there: its result in the log; empty if the log has no such step, or there is no log.
    """

    step: WorkflowStep
    word: StepWord
    why: str = ""
    there: str = ""


def pip_build(tested: TestedBuild) -> Path:
    """Return pip's build folder, relative to the checkout; the steps of a job look for the build there.

    Raises:
        FactError: the environment's Python does not answer, or a link leads elsewhere.
    """
    python = python_env.interpreter(tested.env.python)
    if python is None:
        raise FactError("the environment's Python does not answer", where=tested.env.python)
    place = install.pip_build_dir(checkout.read(tested.root), python)
    if not place.parent.resolve().is_relative_to(tested.root.resolve()):
        why = f"it leads to {place.parent.resolve()}"
        raise FactError("the build folder of this checkout is a link", where=place.parent, why=why)
    return place.relative_to(tested.root)


def clone(root: Path, env: EnvDir, dest: Path, build: Path) -> Plan:
    """Plan a clone of a checkout with its files as they are now, changes and new files included.

    Files that git ignores are not copied. The environment's build is linked to pip's folder, even if
    `install-triton` did not do so in the checkout, where another environment may have been installed last.

    Args:
        root: the checkout.
        env: the environment that was built from it.
        dest: the clone, in the workspace; its folder is recreated, as an older run may have left links there.
        build: path of the build in the clone: `pip_build`.

    Raises:
        FactError: the checkout is not under git.
    """
    # A clone has only commits; changed and new files come by tar. What git ignores, build folders of
    # gigabytes among it, stays.
    answer = look(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", files=True)
    if answer is None or answer.code:
        why = answer.err if answer else "git does not respond"
        raise FactError("a replay runs in a clone, and git cannot tell what to clone", where=root, why=why)
    names = dict.fromkeys(name for name in answer.out.split("\0") if name and os.path.lexists(root / name))
    listing, packed = dest.with_suffix(".files"), dest.with_suffix(".tar")
    # Neither hooks nor a file system monitor that the user configured may run.
    git = ("git", "-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")
    tar = ("tar", "--null", "--no-recursion", "-C", str(root), "-T", str(listing), "-cf", str(packed))
    commands = (
        (*git, "clone", "--quiet", "--shared", "--no-checkout", "--", str(root), str(dest)),
        tar,
        ("tar", "-C", str(dest), "-xf", str(packed)),
        (*git, "-C", str(dest), "reset", "--quiet"),
    )
    steps: list[Step] = [
        # An older replay's steps may have left links in it.
        Remove((dest.parent,), env.root, phase=_CLONE),
        MakeDir(dest.parent, phase=_CLONE),
        Write(listing, "\0".join(names), phase=_CLONE),
        *(Run(argv, cwd=dest.parent, phase=_CLONE) for argv in commands),
        Link(dest / build, env.build, phase=_CLONE),
        Remove((listing, packed), env.root, phase=_CLONE),
    ]
    return Plan(f"a clone of {root}", tuple(steps))


def sandbox(env: EnvDir, *writable: Path, readable: tuple[Path, ...] = ()) -> tuple[str, ...]:
    """Return bubblewrap's words before a command; none if it is missing or may not create namespaces.

    The command sees the system read-only, except for some folders and the environment's build folder, and has
    no network.
    """
    program = process.which("bwrap")
    if not program:
        return ()
    kinds = [("--ro-bind", readable), ("--bind", (*writable, env.build))]
    places = [(kind, str(path)) for kind, paths in kinds for path in paths if path.is_dir()]
    binds = [word for kind, path in places for word in (kind, path, path)]
    # A read-only mount does not keep anybody from connecting to a socket in it: through tmux, or an
    # editor's agent, a step could run what the sandbox forbids.
    hidden = [word for path in _sockets() for word in ("--ro-bind", os.devnull, str(path))]
    words = (program, *_SANDBOX, *hidden, *binds)
    # Tried for real: many systems have bwrap and forbid unprivileged user namespaces.
    answer = process.query((*words, "true"))
    return words if answer and answer.code == 0 else ()


def _sockets() -> Iterator[Path]:
    """Yield sockets in the file system that have a listener and that this user may connect to."""
    try:
        lines = untrusted.read_text(Path("/proc/net/unix")).splitlines()
    except OSError:
        return
    for name in dict.fromkeys(line.partition("/")[2] for line in lines):  # a path is the last column
        path = untrusted.real(Path(f"/{name}"))
        # Sockets below /run are hidden already. `access` does not raise if a folder cannot be searched.
        if not path.is_relative_to("/run") and os.access(path, os.W_OK) and path.is_socket():
            yield path


def variables(
    tested: TestedBuild, folders: Sequence[Path], scratch: Path, root: Path
) -> dict[str, str | None]:
    """Return the environment of all steps: the env's Python first, and stubs for programs like apt.

    Args:
        tested: the build.
        folders: folders with packages besides the environment's own.
        scratch: folder for the stubs, and for the steps' home.
        root: the clone in which they run.
    """
    refuse = '#!/bin/sh\necho "$(basename "$0"): a replay changes nothing in the system" >&2\nexit 126\n'
    bin_ = scratch / "bin"
    files.make_folder(bin_)
    for name in ("home", "tmp"):
        files.make_folder(scratch / name)
    for name in _REFUSED:
        files.write_script(bin_ / name, refuse)
    own = (str(tool.parent) for tool in vars(cmake.own_tools()).values() if isinstance(tool, Path))
    path = (str(bin_), str(tested.env.python.parent), os.environ.get("PATH", os.defpath), *own)
    return {
        "PATH": os.pathsep.join(path),
        "HOME": str(scratch / "home"),
        "CI": "true",
        "TMPDIR": str(scratch / "tmp"),
        "GITHUB_WORKSPACE": str(root),
        # pip outside of a virtual environment would install into the user's own Python.
        "PIP_REQUIRE_VIRTUALENV": "1",
        "PYTHONPATH": command.python_path(*folders),
        "PYTHONDONTWRITEBYTECODE": "1",
        **dict.fromkeys(_CREDENTIALS),
    }


def run(
    tested: TestedBuild,
    job: WorkflowJob,
    root: Path,
    change: dict[str, str | None],
    tell: Callable[[str], None],
    *,
    confined: bool,
) -> tuple[ReplayedStep, ...]:
    """Run the steps of a job, one after the other, even after a failure.

    Args:
        tested: the build that provides their Python and programs.
        job: the job.
        root: the clone in which they run.
        change: environment variables.
        tell: called with a line before each step.
        confined: whether the user was promised that bubblewrap confines them.

    Raises:
        FactError: bubblewrap no longer works.
    """
    own_folder = tested.folder / "ci"
    folders = [own_folder / f"{number:02}" for number, _ in enumerate(job.steps, 1)]
    for folder in folders:
        files.make_folder(folder)
    # Each folder by itself and not their common one: a step could replace the next one's folder with
    # a link to a place outside.
    boxed = sandbox(
        tested.env, root, own_folder / "home", own_folder / "tmp", *folders, readable=(own_folder,)
    )
    # The user agreed to confined steps. If that stopped working meanwhile, nothing runs.
    if confined and not boxed:
        hints = ["run again: it asks before it runs steps without a sandbox"]
        raise FactError("bubblewrap cannot confine the steps now, so none was run", hints=hints)
    results = []
    for step, scratch in zip(job.steps, folders, strict=True):
        if step.why or job.why:
            results.append(ReplayedStep(step, "left out", job.why or step.why))
            continue
        files.remove([scratch / "log"])
        cwd = root / step.folder
        if why := _no_folder(cwd, root):
            results.append(ReplayedStep(step, "failed", why))
            continue
        tell(f"{step.name}: {scratch / 'log'}")
        # The shell that GitHub's runners start for `run:`, so that a script fails at the same command.
        argv = (*boxed, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.script)
        own: dict[str, str | None] = dict(step.variables)
        code, log, last = command.run_isolated(argv, tested.env.python, cwd, scratch, {**change, **own})
        why = f"exit code {code}: {last}" if code else _nothing(log)
        results.append(ReplayedStep(step, "failed" if why else "passed", why or step.note))
    return tuple(results)


def _no_folder(folder: Path, root: Path) -> str:
    """Return why a step cannot run in a folder, which may be a link out of the clone; empty if it can."""
    if not folder.resolve().is_relative_to(root.resolve()):
        return f"its folder leads out of the checkout: {folder.relative_to(root)}"
    return "" if folder.is_dir() else f"this checkout has no folder {folder.relative_to(root)}"


def _nothing(log: Path) -> str:
    """Return why a step that passed has tested nothing; empty if it has."""
    text = untrusted.read_text(log)
    phrases = (phrase for phrase in configs.load(CONFIG)["tested-nothing"] if phrase in text)
    return next((f"it tested nothing: {phrase}" for phrase in phrases), "")


def planned(job: WorkflowJob) -> tuple[ReplayedStep, ...]:
    """Return the steps, with the reasons of those that would be left out."""
    return tuple(
        ReplayedStep(step, "left out", job.why or step.why)
        if job.why or step.why
        else ReplayedStep(step, "to run", step.note)
        for step in job.steps
    )


def script(steps: Sequence[ReplayedStep]) -> Iterator[str]:
    """Yield the steps that run, for a shell in a clone of the checkout."""
    for result in steps:
        if result.word == "to run":
            exports = " ".join(f"{name}={shlex.quote(text)}" for name, text in result.step.variables)
            where = shlex.quote(result.step.folder or ".")
            yield f"# {result.step.name}\n(cd {where}; export {exports or 'CI=true'}"
            yield f"{result.step.script.rstrip()}\n)\n"


def compared(steps: Sequence[ReplayedStep], log: Path) -> tuple[ReplayedStep, ...]:
    """Add the results in a log of GitHub's: as downloaded from its page, or by `gh run view --log`.

    Raises:
        FactError: the log has none of the steps.
    """
    lines = [_ANSI.sub("", line) for line in untrusted.read_text(log).splitlines()]
    # `gh run view --log` writes job, step and text in columns; the raw log of the page is only the text.
    columns = any(line.count("\t") > 1 for line in lines[:5])
    log_steps = list(_of_columns(lines) if columns else _of_groups(lines))
    keys = [result.step.name if columns else _first(result.step) for result in steps]
    compared_steps = tuple(
        replace(result, there=_there(number, keys, log_steps)) for number, result in enumerate(steps)
    )
    if not any(result.there for result in compared_steps):
        hints = ["the raw log of this job, of a commit with these workflow files", "gh run view --log"]
        raise FactError("no step of this job is in the log", where=log, hints=hints)
    return compared_steps


def _there(number: int, keys: Sequence[str], log_steps: Sequence[tuple[str, str]]) -> str:
    """Return a step's result in the log; empty if it cannot be attributed."""
    # Steps that begin alike are told apart by their order, which needs all of them.
    key = keys[number]
    same = [word for name, word in log_steps if name == key]
    return same[keys[:number].count(key)] if len(same) == keys.count(key) else ""


def _of_groups(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield steps by the first line of their scripts, in order."""
    steps: list[tuple[str, str]] = []
    for line in lines:
        text = _STAMP.sub("", line)
        # The raw log has no names of steps: a step begins with the first line of its script.
        if text.startswith(_GROUP):
            steps.append((text.removeprefix(_GROUP).strip(), "passed"))
        elif text.startswith(_ERROR) and steps:
            steps[-1] = (steps[-1][0], "failed")
    yield from steps


def _of_columns(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield steps by their names, from tab-separated lines: job, step and text."""
    words: dict[str, str] = {}
    for line in lines:
        _, _, rest = line.partition("\t")
        name, _, text = rest.partition("\t")
        if _STAMP.sub("", text).startswith(_ERROR):
            words[name] = "failed"
        else:
            words.setdefault(name, "passed")
    yield from words.items()


def _first(step: WorkflowStep) -> str:
    return step.uses or step.script.strip().partition("\n")[0].strip()


def table(job: WorkflowJob, steps: Sequence[ReplayedStep]) -> Grid:
    """Return a table of the steps."""
    there = any(result.there for result in steps)
    heads = ["step", "here", *(["in the log"] if there else []), "why"]
    rows = [
        [result.step.name, result.word, *([result.there or "-"] if there else []), result.why]
        for result in steps
    ]
    styles = [
        "red" if result.word == "failed" else "dim" if result.word == "left out" else "" for result in steps
    ]
    return tables.plain(job.name, heads, rows, styles=styles)


def list_(jobs: Sequence[WorkflowJob]) -> Grid:
    """Return a table of all jobs."""
    rows = [
        [job.name, job.runner, str(len(job.steps)), str(0 if job.why else len(job.runnable)), job.why]
        for job in jobs
    ]
    heads = ["job", "runs on", "steps", "run here", "why not"]
    return tables.plain("jobs", heads, rows, right=["steps", "run here"], spare=["runs on"])


def as_json(job: WorkflowJob, steps: Sequence[ReplayedStep]) -> dict[str, object]:
    """Return the steps as JSON data."""
    rows = [
        {
            "step": result.step.name,
            "here": result.word,
            "there": result.there,
            "why": result.why,
            "script": result.step.script,
        }
        for result in steps
    ]
    return {"schema": 1, "job": job.name, "runner": job.runner, "steps": rows}


def check(job: WorkflowJob) -> None:
    """Refuse a job of which nothing can run here.

    Raises:
        NothingRunError: no step can run here.
    """
    if job.why or not job.runnable:
        why = job.why or "\n".join(f"{step.name}: {step.why}" for step in job.steps)
        raise NothingRunError(f"no step of {job.name} can run here", why=why or None)
