"""One step: compile some sources of a Ninja tree before all others, and all of them even if one fails."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.errors import StepError
from tritonsmith.plan.steps import Step

_DATABASE = "compile_commands.json"


@dataclass(frozen=True)
class BuildObjects(Step):
    """Build the objects of `sources` in `tree`, and what they need of generated headers.

    Attributes:
        ninja: the program.
        tree: configured build folder.
        sources: absolute paths; those that the tree does not compile are passed over.
        jobs: compile jobs.
    """

    ninja: Path
    tree: Path
    sources: tuple[Path, ...]
    jobs: int

    def shell(self) -> list[str]:
        ninja, tree = shlex.quote(str(self.ninja)), shlex.quote(str(self.tree))
        return [
            "set --",
            f"for source in {shlex.join(map(str, self.sources))}; do",
            f'  ! {ninja} -C {tree} -t query "$source" > /dev/null 2>&1 || set -- "$@" "$source^"',
            "done",
            f'[ $# -eq 0 ] || {ninja} -C {tree} -j{self.jobs} -k 0 "$@"',
        ]

    @property
    def title(self) -> str:
        return self.ninja.name

    def found(self) -> tuple[str, ...]:
        """Those of the sources that the tree compiles, as it names them.

        Raises:
            StepError: its list of commands cannot be read.
        """
        database = self.tree / _DATABASE
        try:
            compiled = {entry["file"] for entry in json.loads(database.read_text(encoding="utf-8"))}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise StepError(
                "the list of compile commands cannot be read",
                where=database,
                why=str(error),
                hints=["was the configure interrupted? run the same command with --reconfigure"],
            ) from error
        return tuple(str(source) for source in self.sources if str(source) in compiled)

    def argv(self) -> tuple[str, ...]:
        """The command; empty if the tree compiles none of them. `SOURCE^` names what is made from it."""
        targets = [f"{source}^" for source in self.found()]
        return (
            (str(self.ninja), "-C", str(self.tree), f"-j{self.jobs}", "-k", "0", *targets) if targets else ()
        )
