"""Build parts of a Ninja tree: what another tree's graph uses, or some sources before all others."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core.errors import StepError
from tritonsmith.core.plan.steps.base import Step, StepTools, quote
from tritonsmith.core.process import capture

NINJA_STATUS = "[%f/%t] "  # what the runner reads the progress from
_STATUS = {"NINJA_STATUS": NINJA_STATUS}
_PATIENCE = 120.0  # seconds for Ninja to list a graph; Triton's takes less than one
_LONG_AGO = 86_400.0  # seconds since the epoch
_DATABASE = "compile_commands.json"


@dataclass(frozen=True)
class NinjaBuild(Step):
    """The base class of builds of parts of a tree.

    Attributes:
        ninja: the program.
        tree: configured build folder in which is built.
        jobs: compile jobs.
    """

    ninja: Path
    tree: Path
    jobs: int

    @property
    def title(self) -> str:
        return self.ninja.name

    @property
    def goes_on(self) -> bool:
        return True

    def command(self, *words: str) -> tuple[str, ...]:
        """Return the command that builds targets of the tree."""
        return (str(self.ninja), "-C", str(self.tree), f"-j{self.jobs}", *words)


@dataclass(frozen=True)
class BuildUsed(NinjaBuild):
    """Build the files of `tree` that targets of `user` link or run.

    Attributes:
        user: configured build folder whose graph is read, not built.
        of: targets of `user`; all if empty.
        programs: programs that are built as well where `tree` has them: `FileCheck`.
    """

    user: Path
    of: tuple[str, ...]
    programs: tuple[str, ...]

    def shell(self) -> list[str]:
        ninja, tree, user = (shlex.quote(str(path)) for path in (self.ninja, self.tree, self.user))
        # `-t inputs -E` lists everything that a target depends on, unescaped, and builds nothing.
        used = f"{ninja} -C {user} -t inputs -E {shlex.join(self.of or ('all',))}"
        relative = shlex.quote(f"s|^{self.tree}/||p")
        lines = [shlex.join(self.refresh), f"set -- $({used} | sed -n {relative})"]
        if self.programs:
            lines += [
                f"for name in {shlex.join(self.programs)}; do",
                f'  ! {ninja} -C {tree} -t query "bin/$name" > /dev/null 2>&1 || set -- "$@" "bin/$name"',
                "done",
            ]
        return [*lines, f'{ninja} -C {tree} -j{self.jobs} "$@"']

    def act(self, tools: StepTools) -> None:
        # The graph must be that of the CMakeLists.txt as it is now: a checkout may have
        # moved since it was configured.
        tools.run(self, self.refresh, self.tree, _STATUS)
        tools.run(self, self.command(*self.targets()), self.tree, _STATUS)

    @property
    def refresh(self) -> tuple[str, ...]:
        """The command that updates the graph of `user` after changes to CMakeLists.txt."""
        return (str(self.ninja), "-C", str(self.user), "build.ninja")

    def targets(self) -> tuple[str, ...]:
        """Return the targets to build, from the two graphs: paths relative to `tree`, and names.

        Raises:
            StepError: a graph cannot be read, or uses nothing from `tree`.
        """
        of = self.of or ("all",)
        prefix = f"{self.tree}/"
        inputs = self._ask(self.user, "inputs", "-E", *of)
        used = [line.removeprefix(prefix) for line in inputs.splitlines() if line.startswith(prefix)]
        if not used:
            raise StepError(
                "this build uses nothing from that tree",
                where=self.user,
                why=f"none of the inputs of {' '.join(of)} is in {self.tree}",
                hints=[
                    "configure it again: `invoke setup-mlir --reconfigure`",
                    "or build all of LLVM: --scope all",
                ],
            )
        # `-t targets all` prints `NAME: RULE`. What LLVM was not configured to build (FileCheck without
        # LLVM_INSTALL_UTILS) is passed over for programs, and is an error for what Triton links.
        known = {line.partition(":")[0] for line in self._ask(self.tree, "targets", "all").splitlines()}
        programs = [f"bin/{name}" for name in self.programs if f"bin/{name}" in known]
        missing = sorted(name for name in used if name not in known and not (self.tree / name).exists())
        if missing:
            raise StepError(
                "the LLVM tree lacks files that this build uses",
                where=self.tree,
                why=", ".join(missing[:5]),
                hints=["this LLVM does not fit this checkout: check the pin, and the env's `targets`"],
            )
        return tuple(dict.fromkeys((*(name for name in used if name in known), *programs)))

    def _ask(self, folder: Path, tool: str, *names: str) -> str:
        answer = capture((str(self.ninja), "-C", str(folder), "-t", tool, *names), timeout=_PATIENCE)
        if answer is None:
            raise StepError(
                "Ninja cannot read this build folder",
                where=folder,
                why=f"`ninja -t {tool} {' '.join(names)}` failed",
                hints=["was its configure interrupted? run the same command with --reconfigure"],
            )
        return answer


@dataclass(frozen=True)
class BuildObjects(NinjaBuild):
    """Build the objects of `sources` in `tree` and the headers that they need, all of them even if one fails.

    Attributes:
        sources: absolute paths; those that the tree does not compile are passed over.
    """

    sources: tuple[Path, ...]

    def shell(self) -> list[str]:
        ninja, tree = shlex.quote(str(self.ninja)), shlex.quote(str(self.tree))
        return [
            "set --",
            f"for source in {shlex.join(map(str, self.sources))}; do",
            # Under `set -e` a failing command ends the script, but not one behind `!`.
            f'  ! {ninja} -C {tree} -t query "$source" > /dev/null 2>&1 || set -- "$@" "$source^"',
            "done",
            f'[ $# -eq 0 ] || {ninja} -C {tree} -j{self.jobs} -k 0 "$@"',
        ]

    def act(self, tools: StepTools) -> None:
        if argv := self.argv():
            tools.run(self, argv, self.tree, _STATUS)

    def compiled_sources(self) -> tuple[str, ...]:
        """Return the sources that the tree compiles, by their names in the tree.

        Raises:
            StepError: the list of compile commands cannot be read.
        """
        database = self.tree / _DATABASE
        try:
            # From CMake's database, not from `-t query`, which takes one process for
            # each of some hundred sources.
            compiled = {entry["file"] for entry in json.loads(database.read_text(encoding="utf-8"))}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise StepError(
                "cannot read the compile commands",
                where=database,
                why=str(error),
                hints=["was the configure interrupted? run the same command with --reconfigure"],
            ) from error
        return tuple(str(source) for source in self.sources if str(source) in compiled)

    def argv(self) -> tuple[str, ...]:
        """Return the command; empty if the tree compiles none of the sources."""
        # `SOURCE^` is Ninja's name for the first output of SOURCE. `-k 0` goes on after failures: all
        # errors of an API change in one run, not one a day.
        targets = [f"{source}^" for source in self.compiled_sources()]
        return self.command("-k", "0", *targets) if targets else ()


@dataclass(frozen=True)
class OutdateForeignOutput(Step):
    """Make Ninja link outputs again that another build folder has written since this one did.

    Ninja compares an output with its inputs only. A file that several folders write is newer than the inputs
    of each: Ninja reports that there is no work to do, whoever wrote it last. Ninja's log, to which it adds
    each command that ends, is newer than the outputs of its own folder; so the step comes before all that may
    write the log without linking: CMake, which compacts it, and other targets.

    Attributes:
        outputs: the folder of the outputs.
        pattern: of their names.
        build: the build folder.
    """

    outputs: Path
    pattern: str
    build: Path

    @property
    def _log(self) -> Path:
        return self.build / ".ninja_log"

    def shell(self) -> list[str]:
        log = quote(self._log)
        return [
            f"for output in {quote(self.outputs)}/{self.pattern}; do",
            f'  if [ -e "$output" ] && [ -e {log} ] && [ "$output" -nt {log} ]; then',
            '    touch -t 197001020000 "$output"',
            "  fi",
            "done",
        ]

    def act(self, tools: StepTools) -> None:
        for output in self.foreign():
            # Older than any input, and not removed: a Python that imports it meanwhile still finds it.
            os.utime(output, (_LONG_AGO, _LONG_AGO))
            tools.write_log(f"another build folder wrote {output}: it is linked again")

    def foreign(self) -> list[Path]:
        """Return the outputs that another build folder has written."""
        if not self._log.is_file():
            return []
        last = self._log.stat().st_mtime_ns
        return [path for path in sorted(self.outputs.glob(self.pattern)) if path.stat().st_mtime_ns > last]
