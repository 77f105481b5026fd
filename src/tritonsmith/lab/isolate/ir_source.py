"""The IR that `reduce` shrinks: a file and the passes that fail on it, or the failing pass of a dump.

It is here and not beside the reduction, as a dump does not say which pass to reduce: that is isolated first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonsmith.compiler.dump import index
from tritonsmith.compiler.dump.index import DumpIndex
from tritonsmith.compiler.replay import bindings, replayer
from tritonsmith.compiler.replay import run as replay_run
from tritonsmith.compiler.request import options_of
from tritonsmith.core import process, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, UndecidedError, UsageError
from tritonsmith.core.plan import digest
from tritonsmith.lab.experiment import Rules
from tritonsmith.lab.isolate import failing_pass, issue_folder
from tritonsmith.lab.reduce import oracles
from tritonsmith.lab.reduce.oracles import PassRunner, WrongPassRunner


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
        several = f"one pass is reduced at a time: {command('reduce', 'FILE', '--pass', 'NAME')}"
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
        return FailingIr(dump.content(before).decode(), runner, self.file / "reduced.mlir")

    def _runner(self, text: str, space: Workspace) -> PassRunner:
        """Return the passes or the command that fail on the text of a file."""
        if self.command:
            if self.passes:
                raise UsageError("--pass and a command contradict each other")
            # Otherwise every candidate, and the file itself, would count as uninteresting.
            if process.which(self.command[0]) is None:
                raise FactError(f"no program {self.command[0]}", hints=["a path, or a name on PATH"])
            return PassRunner(command=self.command)
        pipeline = self.passes or issue_folder.pipeline_of(text)
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
