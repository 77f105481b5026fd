"""The folder of `passes.isolate`, which has what an upstream issue needs; and the IR that `reduce` shrinks.

That is a file and the passes that fail on it, such a folder, or a dump. As a dump does not say which of its
passes to reduce, that pass is isolated first.
"""

from __future__ import annotations

import json
import platform
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.compiler.dump import index
from tritonsmith.compiler.dump.index import DumpIndex
from tritonsmith.compiler.replay import bindings, replayer
from tritonsmith.compiler.replay import run as replay_run
from tritonsmith.compiler.replay.bindings import Call
from tritonsmith.compiler.replay.replayer import Replayer
from tritonsmith.compiler.request import options_of
from tritonsmith.core import process, untrusted
from tritonsmith.core.command_line import command as command_line
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, UndecidedError, UsageError
from tritonsmith.core.plan import MakeDir, Plan, Write, digest
from tritonsmith.core.process import capture
from tritonsmith.facts import checkout as checkouts
from tritonsmith.facts import installed_tritons, libtriton, package_owners, python_env
from tritonsmith.facts.checkout import TritonCheckout
from tritonsmith.lab import failure
from tritonsmith.lab.experiment import Rules
from tritonsmith.lab.isolate import failing_pass
from tritonsmith.lab.isolate.failing_pass import Isolated
from tritonsmith.lab.reduce import oracles
from tritonsmith.lab.reduce.oracles import PassRunner, WrongPassRunner
from tritonsmith.lab.reduce.reduce_ir import Reduced

TEMPLATE = Path(__file__).with_name("reproduce.py.in")
# A folder with any other file is never written to.
RECORD = "isolated.json"  # what `issue.new` takes from it
FILES = ("input.mlir", "reduced.mlir", "command.sh", "reproduce.py", "error.txt", "README.md", RECORD)
# As `headed` writes it: `reduce` takes its passes from the file.
_RUN = re.compile(r"^// RUN: triton-opt %s --pass-pipeline='([^'\n]*)'", re.MULTILINE)
_LINES = 12  # of the error, in the README
_MODIFIED = " (modified: the checkout has changes that are not committed)"
# `python -c` imports from the current folder first, and that may be a stranger's, or a checkout of Triton.
_NOWHERE = Path("/")


@dataclass(frozen=True)
class About:
    """The facts that an issue report needs.

    Attributes:
        triton: version; empty if unknown.
        commit: of Triton's checkout, with a remark if files were modified since; empty if unknown.
        llvm: version and commit, as far as known.
        python: version.
        system: of this machine.
    """

    triton: str
    commit: str
    llvm: str
    python: str
    system: str


def about(isolated: Isolated, tool: Replayer) -> About:
    """Collect the facts about a failure."""
    installed = installed_tritons.of_python(tool.python) if tool.python else None
    version = (installed.version if installed else "") or isolated.passes.index.triton
    checkout, commit, python = _checkout(tool), "", ""
    if checkout:
        # An interpreter has said which version it runs; a `triton-opt` only has its checkout.
        version = checkout.version if tool.opt else version
        commit = f"{checkout.commit}{_MODIFIED if checkout.dirty else ''}"
    if tool.python:
        code = "import platform; print(platform.python_version())"
        python = capture((str(tool.python.absolute()), "-c", code), cwd=_NOWHERE) or ""
    return About(version, commit, _llvm(tool), python, system())


def system() -> str:
    """Return the name of the system: `Debian GNU/Linux 12 (bookworm), x86_64`."""
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        name = platform.system()
    return f"{name}, {platform.machine()}"


def _checkout(tool: Replayer) -> TritonCheckout | None:
    """Read the checkout that the program was built from, or the interpreter's Triton is installed from."""
    source = tool.source if tool.opt else _editable(tool)
    try:
        return checkouts.read(source) if source else None
    except FactError:
        return None


def _editable(tool: Replayer) -> Path | None:
    packages = python_env.read(tool.python) if tool.python else None
    owners = package_owners.owners(packages.distributions) if packages else ()
    # A wheel names no checkout; only an editable install does.
    project = next((owner.editable.project for owner in owners if owner.editable), None)
    return project.parent if project and project.name == "python" else project  # where setup.py was, to 3.3


def _llvm(tool: Replayer) -> str:
    if tool.opt:
        version = re.search(r"LLVM version (\S+)", capture((str(tool.opt), "--version")) or "")
        checkout = _checkout(tool)
        pin = f"pinned at {checkout.pins[0].commit}" if checkout and checkout.pins else ""
        return ", ".join(filter(None, (version[1] if version else "", pin)))
    # Found, not imported: libtriton may be what crashes.
    code = "import importlib.util as u, os; print(os.path.dirname(u.find_spec('triton').origin))"
    package = capture((str(tool.python.absolute()), "-c", code), cwd=_NOWHERE) if tool.python else ""
    for path in libtriton.find(Path(package)) if package else ():
        library = libtriton.read(path)
        return " ".join(filter(None, (library.llvm_version, library.llvm_commit)))
    return ""


def plan(isolated: Isolated, reduced: Reduced | None, facts: About, out: Path) -> Plan:
    """Plan the files of an issue, in a folder that is new or has only such files.

    Raises:
        UsageError: the folder has other content.
    """
    known = {path.name for path in out.iterdir()} if out.is_dir() else set()
    if out.exists() and (not out.is_dir() or known - set(FILES)):
        what = "--out exists and was not written by passes.isolate"
        raise UsageError(what, where=out, hints=["choose a new folder"])
    return Plan("isolate", (MakeDir(out, phase="isolate"), *_files(isolated, reduced, facts, out)))


def _files(isolated: Isolated, reduced: Reduced | None, facts: About, out: Path) -> Iterator[Write]:
    pipeline = isolated.way.pipeline
    texts = {"input.mlir": headed(isolated.text, pipeline)}
    if reduced:
        texts["reduced.mlir"] = headed(reduced.text, pipeline)
    file = "reduced.mlir" if reduced else "input.mlir"
    texts["command.sh"] = command(pipeline, file, facts, calls=bool(isolated.way.calls))
    if isolated.way.calls:
        texts["reproduce.py"] = reproduce(isolated.way.calls)
    texts["error.txt"] = failure.anonymous(isolated.log.strip()) + "\n"
    texts["README.md"] = readme(isolated, reduced, facts)
    texts[RECORD] = json.dumps(record(isolated, reduced, facts), indent=2) + "\n"
    for name, text in texts.items():
        yield Write(out / name, text, phase="isolate")


def record(isolated: Isolated, reduced: Reduced | None, facts: About) -> dict[str, Any]:
    """Return what the README says, as JSON data without folders."""
    about = failing_pass.as_json(isolated, reduced, Path())
    del about["folder"], about["notes"], about["reduced"]
    about = {
        name: failure.anonymous(value) if isinstance(value, str) else value for name, value in about.items()
    }
    kernel = isolated.passes.kernel
    return {
        **about,
        "target": kernel.target,
        "failed_in": kernel.failed,
        "is_reduced": reduced is not None,
        **vars(facts),
    }


def headed(text: str, pipeline: str) -> str:
    """Return IR with a RUN line, as upstream's tests have it."""
    return f"// RUN: triton-opt %s --pass-pipeline='{pipeline}'\n\n{text.strip()}\n"


def pipeline_of(text: str) -> str:
    """Return the pipeline of such a line; empty if there is none."""
    match = _RUN.search(text)
    return match[1] if match else ""


def command(pipeline: str, file: str, facts: About, *, calls: bool) -> str:
    """Return the text of `command.sh`."""
    # Whoever reads an issue has a build or a wheel, rarely both.
    lines = [
        "#!/bin/sh",
        "# With a build of Triton; set TRITON_OPT to its triton-opt.",
        'cd "$(dirname "$0")" || exit',
        'if command -v "${TRITON_OPT:-triton-opt}" > /dev/null; then',
        f'  exec "${{TRITON_OPT:-triton-opt}}" {file} {shlex.quote(f"--pass-pipeline={pipeline}")}',
        "fi",
    ]
    if calls:
        lines += [
            f"# With a released wheel: pip install triton=={facts.triton}",
            f'exec "${{PYTHON:-python3}}" reproduce.py {file}',
        ]
    else:
        lines += ["echo 'triton-opt is not on PATH; set TRITON_OPT to its path' >&2", "exit 127"]
    return "\n".join(lines) + "\n"


def reproduce(calls: Iterable[Call]) -> str:
    """Return the text of `reproduce.py`, which needs Triton and nothing else."""
    pairs = "".join(f"    ({call.binding!r}, {list(call.arguments)!r}),\n" for call in calls)
    return TEMPLATE.read_text(encoding="utf-8").replace("@CALLS@", pairs.rstrip("\n"))


def readme(isolated: Isolated, reduced: Reduced | None, facts: About) -> str:
    """Return the text of `README.md`."""
    several = len(isolated.links) > 1
    rows = {
        "pass" if not several else "passes": isolated.names,
        "target": isolated.passes.kernel.target,
        "Triton": " ".join(filter(None, (facts.triton, facts.commit))),
        "LLVM": facts.llvm,
        "Python": facts.python,
        "system": facts.system,
    }
    table = "".join(f"| {name} | {value or 'unknown'} |\n" for name, value in rows.items())
    error = list(without_ir(failure.anonymous(isolated.log.strip())))[:_LINES]
    parts = [
        f"# {isolated.names}: {isolated.failure.kind}",
        f"{isolated.failure}",
        f"| | |\n|---|---|\n{table}".rstrip(),
        "```\n" + "\n".join(line[:400] for line in error) + "\n```",
        f"    triton-opt input.mlir --pass-pipeline='{isolated.way.pipeline}'",
        "`command.sh` runs this command, or `reproduce.py` with a wheel."
        if isolated.way.calls
        else "`command.sh` runs this command.",
    ]
    if several:
        parts.append(
            "The last pass does not fail alone: this is the shortest end of the pipeline that fails."
        )
    if not isolated.same:
        parts.append(f"In the original compile, the failure was different: {isolated.recorded}")
    if reduced:
        parts.append(
            f"`reduced.mlir` fails in the same way: {reduced.after.ops} operations of {reduced.before.ops}, "
            f"{reduced.after.lines} lines of {reduced.before.lines}."
        )
    gone = "Locations were removed from the IR, and" if isolated.stripped else "It fails only with locations;"
    where = "" if isolated.stripped else " from the locations and"
    parts.append(f"{gone} folders were removed{where} from the error: these files contain no private paths.")
    # The error below the table has no folders any more.
    return failure.anonymous("\n\n".join(parts[:3])) + "\n\n" + "\n\n".join(parts[3:]) + "\n"


def without_ir(log: str) -> Iterator[str]:
    """Yield the lines of a log without the module that a compiler prints after an assertion."""
    inside = False
    for line in log.splitlines():
        inside = inside or line.startswith(("module", "#"))
        if not inside:
            yield line
        inside = inside and line != "#-}"  # the end of the resources, which the printer puts last


@dataclass(frozen=True)
class FailingIr:
    """IR to reduce, and the passes or the command that fail on it.

    Attributes:
        text: the IR.
        runner: runs the passes or the command that fail.
        out: the file to write unless the user names another.
        warning: how the failure differs from the one in the dump; empty if it does not.
    """

    text: str
    runner: PassRunner
    out: Path
    warning: str = ""


@dataclass(frozen=True, kw_only=True)
class IrSource:
    """A file or folder with IR, and the user's description of the failure.

    Attributes:
        file: a file of IR, or a folder that `passes.dump` or `passes.isolate` wrote.
        passes: the failing passes, as `--pass` takes them; empty if the file or the dump names them.
        command: a command that finds a text interesting; empty if passes fail.
        wrong: whether the passes change what a kernel computes, instead of failing.
        kernel: the kernel of a dump; empty if it has only one.
        env: an environment whose `triton-opt` or interpreter runs the passes.
        python: an interpreter that runs them.
        triton_opt: a `triton-opt` that runs them.
        option: options of the compile that a dump lacks, as `NAME=VALUE`.
    """

    file: Path
    passes: str
    command: tuple[str, ...]
    wrong: bool
    kernel: str
    env: str
    python: Path | None
    triton_opt: Path | None
    option: tuple[str, ...]

    @property
    def is_searched(self) -> bool:
        """Report whether the pass to reduce has to be found in a dump first."""
        is_dump = self.file.is_dir() and (self.file / index.FILE).is_file()
        # With --pass or a command there is nothing to find: any folder is then read as one of passes.isolate.
        return is_dump and (self.wrong or not (self.passes or self.command))

    @property
    def file_name(self) -> str:
        """The name of the file that a command reads, which may judge a file by its name."""
        return self.file.name if self.command and not self.file.is_dir() else "in.mlir"

    def is_input(self, path: Path) -> bool:
        """Report whether a path, by whatever name, is the file that would be read."""
        return path.exists() and self._path.exists() and path.samefile(self._path)

    def journal_folder(self, space: Workspace) -> Path | None:
        """Return the folder of the journal, as far as it can be named before the pass is found; else None."""
        if not self.is_searched:
            return None
        name = index.choose_kernel(index.read(self.file), self.kernel).name
        tool = {"env": self.env, "python": self.python, "triton_opt": self.triton_opt, "option": self.option}
        when = "wrong" if self.wrong else ""
        return space.root / "passes" / "reduce" / digest("dump", str(self.file.absolute()), name, when, tool)

    def read(self, space: Workspace, rules: Rules, *, silent: bool) -> FailingIr:
        """Return the IR and the passes or command that fail on it, after a search if the file is a dump.

        Args:
            space: the workspace.
            rules: of the search for the failing pass.
            silent: say nothing of a search that goes on.

        Raises:
            UsageError: the file cannot be read, or no failing pass is named.
            FactError: there is no program that runs the passes.
            SmithError: no pass of the dump fails, or changes the result.
            UndecidedError: several passes may be the culprit.
        """
        if self.is_searched:
            return self._wrong_pass(space) if self.wrong else self._failing_pass(space, rules, silent=silent)
        text = _text_of(self._path)
        is_folder = self.file.is_dir()
        name = "reduced.mlir" if is_folder else f"{self._path.stem}.reduced{self._path.suffix}"
        return FailingIr(text, self._runner(text, space), self._path.with_name(name))

    @property
    def _path(self) -> Path:
        return self.file / "input.mlir" if self.file.is_dir() else self.file

    def _failing_pass(self, space: Workspace, rules: Rules, *, silent: bool) -> FailingIr:
        dump = index.read(self.file)
        chosen = replayer.choose(dump, space, env=self.env, python=self.python, triton_opt=self.triton_opt)
        kernel = index.choose_kernel(dump, self.kernel)
        options = options_of(self.option)
        isolated, _ = failing_pass.isolate(dump, kernel, chosen, space, options, rules, silent=silent)
        # A failure other than the dump's is reduced all the same: it may be the same bug in other words.
        warning = "" if isolated.same else failing_pass.summary(isolated)
        return FailingIr(isolated.text, isolated.way, self.file / "reduced.mlir", warning)

    def _wrong_pass(self, space: Workspace) -> FailingIr:
        """Find the first pass of a dump that changes the result."""
        from tritonsmith.check import check  # noqa: PLC0415 - of an extra that may be missing
        from tritonsmith.check.answer import verdict  # noqa: PLC0415

        dump = index.read(self.file)
        kernel = index.choose_kernel(dump, self.kernel)
        # Not --triton-opt: only libtriton prints the generic form, which the check reads.
        chosen = replayer.choose(dump, space, env=self.env, python=self.python, triton_opt=None)
        answer = check.check(dump, kernel, replayer.require_python(chosen), space)
        several = f"one pass is reduced at a time: {command_line('reduce', 'FILE', '--pass', 'NAME')}"
        if answer.culprit is None or len(answer.culprit.suspects) > 1:
            # An open end is no verdict: a pass that could not be checked may be the culprit.
            error = UndecidedError if answer.culprit or answer.open else SmithError
            raise error(verdict(answer), where=dump.folder, hints=answer.reasons or [several])
        before = check.dump_before(dump, kernel, answer.culprit.checked)
        # No options are given: those that a release does not print are read off its backend.
        passes = replay_run.look(dump, kernel, chosen, space, {})
        links = [link for link in passes.links if link.dump.number == before.number]
        way = failing_pass.way(passes, links, chosen, space)
        if isinstance(way, str):
            what = f"{before.argument} cannot be run alone"
            raise FactError(what, where=chosen.python, why=way, hints=[several])
        runner = WrongPassRunner(way.pipeline, python=way.python, calls=way.calls)
        return FailingIr(dump.content(before, edited=True).decode(), runner, self.file / "reduced.mlir")

    def _runner(self, text: str, space: Workspace) -> PassRunner:
        """Return the passes or the command that fail on the text of a file."""
        if self.command:
            if self.passes:
                raise UsageError("--pass and a command contradict each other")
            # Otherwise every candidate, and the file itself, would count as uninteresting.
            if process.which(self.command[0]) is None:
                raise FactError(f"no program {self.command[0]}", hints=["a path, or a name on PATH"])
            return PassRunner(command=self.command)
        pipeline = self.passes or pipeline_of(text)
        if not pipeline:
            raise UsageError(
                "no failing pass is named",
                where=self._path,
                hints=["--pass tritongpu-coalesce", "-- command {}", "a RUN line in the file names them"],
            )
        # A file has no dump that would know its interpreter.
        nothing = DumpIndex(self._path.parent)
        env = self.env if self.env or self.python or self.triton_opt else "wheel"
        chosen = replayer.choose(nothing, space, env=env, python=self.python, triton_opt=self.triton_opt)
        if chosen.opt and self.wrong:
            what = "only an interpreter with Triton prints the generic form"
            raise FactError(what, hints=["--python PATH"])
        if chosen.opt:
            return PassRunner(oracles.spelled(pipeline), opt=chosen.opt)
        python = replayer.require_python(chosen)
        calls = oracles.calls(pipeline, bindings.known_bindings(python, space), python)
        kind = WrongPassRunner if self.wrong else PassRunner
        return kind(oracles.spelled(pipeline), python=python, calls=calls)


def _text_of(path: Path) -> str:
    try:
        return untrusted.read_bytes(path, untrusted.OURS).decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        hints = ["give an MLIR file, or a folder that passes.dump or passes.isolate wrote"]
        raise UsageError("cannot read this file", where=path, why=why, hints=hints) from error
