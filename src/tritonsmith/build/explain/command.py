"""`build-triton --explain`: explain what the next build will rebuild, and why. Read-only."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tritonsmith.build import cmake
from tritonsmith.build.cmake import CMakeChange
from tritonsmith.build.explain import ninja_dry_run, reasons
from tritonsmith.build.explain.reasons import RebuildReason, RebuildTotals
from tritonsmith.build.triton import commands, recipe
from tritonsmith.build.triton.source import TritonSource, pin_notes
from tritonsmith.core.envs import receipts
from tritonsmith.core.envs.schema import Settings
from tritonsmith.core.envs.settings import explain as keys_of
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Copy, OutdateForeignOutput, Plan, Stamp, Step
from tritonsmith.core.ui import diff
from tritonsmith.facts import ninja_graph, tools
from tritonsmith.wheels import venv

SCHEMA = 1
_ENDS = (".a", ".so", ".dylib")


@dataclass(frozen=True)
class Explanation:
    """The parts of a build that will be rebuilt, and the reasons.

    Attributes:
        folder: the build folder.
        own: steps of this tool before Ninja and their reasons, in sentences.
        regeneration: reasons for Ninja to run CMake first; the rows then describe the current graph.
        rows: Ninja's reasons.
        totals: steps that Ninja would run.
        notes: other things to know.
    """

    folder: Path
    own: tuple[str, ...]
    regeneration: tuple[str, ...]
    rows: tuple[RebuildReason, ...]
    totals: RebuildTotals
    notes: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        """Report whether nothing will be rebuilt."""
        return not (self.own or self.regeneration or self.rows or sum(self.steps))

    @property
    def steps(self) -> tuple[int, int, int]:
        """The numbers of compiles, links and other steps."""
        return self.totals.compiles, self.totals.links, self.totals.others

    def as_json(self) -> dict[str, Any]:
        """Return the explanation as JSON data."""
        return {"schema": SCHEMA, **asdict(self), "folder": str(self.folder)}


def of_triton(
    settings: Settings, space: Workspace, located: TritonSource, bare: Settings, targets: Sequence[str] = ()
) -> Explanation:
    """Explain what `build-triton` would rebuild, with the settings of the last build.

    `bare` is the env without the flags of the last build. Without `targets`, the env's own are used.

    Raises:
        FactError: there is no checkout or LLVM, or Ninja does not answer.
    """
    inputs, request = commands.gather(settings, space, located)
    env, plan = inputs.env, recipe.plan(inputs)
    last = receipts.read(env.receipt("build-triton"))
    own = (*pin_notes(last, request, inputs.llvm), *own_steps(plan, env, last, inputs))
    explanation = of_folder(
        inputs.tools.ninja, env.build, tuple(targets) or inputs.settings.triton.targets, inputs.checkout.root
    )
    notes = tuple(_flags_matter(settings, bare))
    if own and explanation.folder.is_dir():
        notes += ("Ninja's answer is for the folder as it is now, before the steps above",)
    return Explanation(
        explanation.folder, own, explanation.regeneration, explanation.rows, explanation.totals, notes
    )


def of_llvm(env: EnvDir, targets: Sequence[str] = ()) -> Explanation:
    """Explain what Ninja would rebuild in an environment's LLVM; by default, of what was built before.

    Raises:
        FactError: there is no LLVM, the LLVM was not built here, or Ninja does not answer.
    """
    receipt = receipts.read(env.receipt("setup-mlir")) or {}
    prefix, ninja = Path(str(receipt.get("prefix") or "")), tools.own("ninja")
    if not receipt or not (prefix / ninja_graph.GRAPH).is_file() or ninja is None:
        raise FactError(
            f"the LLVM of environment {env.name!r} is not built here",
            where=prefix if receipt else env.receipt("setup-mlir"),
            hints=["leave --llvm out to explain what Triton rebuilds"],
        )
    return of_folder(ninja.path, prefix, tuple(targets) or _built_before(prefix), None)


def of_folder(ninja: Path, build: Path, targets: Sequence[str], source: Path | None) -> Explanation:
    """Explain what Ninja would rebuild in a folder; the result is empty if it is not configured yet.

    Paths below `source` are shown relative to it.

    Raises:
        FactError: Ninja does not answer.
    """
    if not (build / ninja_graph.GRAPH).is_file():
        return Explanation(build, (), (), (), RebuildTotals(0, 0, 0, 0.0, 0))
    run = ninja_dry_run.dry_run(ninja, build, targets)
    outputs = {reason.output for reason in run.reasons if reason.kind == "command"}
    # Ninja says only that a command changed: the graph of the last build, which was kept, has the words to
    # compare with. Reading a graph takes long, and is left out if no command changed.
    before = ninja_graph.commands(build / cmake.BUILT_FOLDER, outputs) if outputs else {}
    after = ninja_graph.commands(build, outputs) if outputs else {}
    now, short = time.time(), reasons.shortener(build, source)

    def changed(path: str) -> float | None:
        try:
            return now - (build / path).stat().st_mtime
        except OSError:
            return None

    return Explanation(
        build,
        (),
        tuple(reasons.regeneration(run, changed, short)),
        reasons.rows(run.reasons, before, after, changed, short),
        reasons.totals(run, ninja_graph.outputs_by_description(build), ninja_graph.durations(build)),
    )


def own_steps(
    plan: Plan, env: EnvDir, last: Mapping[str, Any] | None, inputs: recipe.Inputs
) -> tuple[str, ...]:
    """Return the reasons for the steps of a plan whose stamps are outdated, each reason once.

    Two steps of a phase often share one, as when another environment built the same checkout since.
    `last` is the previous receipt.
    """
    return tuple(dict.fromkeys(_own_steps(plan, env, last, inputs)))


def _own_steps(
    plan: Plan, env: EnvDir, last: Mapping[str, Any] | None, inputs: recipe.Inputs
) -> Iterator[str]:
    changes = tuple(cmake.pending_changes(plan))
    for stamp, step in _undone(plan):
        if stamp.path.name == cmake.STAMP_FILE:
            yield from _configure(stamp, changes)
        elif stamp.path.name == cmake.ABOUT_FILE:
            # Without this log of Ninja nothing was compiled yet, so nothing is compiled again.
            if (env.build / ".ninja_deps").exists():
                yield (
                    "everything is recompiled, through the compiler cache: the LLVM or the compiler "
                    "changed since the last compile"
                )
        elif stamp.path == env.venv / venv.STAMP:
            before, after = (last or {}).get("requirements"), recipe.requirements(inputs.checkout)
            words = diff.in_words(before, after) if before else "not installed yet"
            yield f"pip installs into the virtual environment: {words}"
        elif stamp.made is not None and not stamp.made.exists():
            yield f"{step.phase}: {stamp.made} is missing"
        else:
            yield f"{step.phase}: an input changed"
    for step in plan.steps:
        if isinstance(step, OutdateForeignOutput):
            yield from (
                f"{path.name} is linked again: another build folder wrote it" for path in step.foreign()
            )


def _undone(plan: Plan) -> Iterator[tuple[Stamp, Step]]:
    stamps: set[Stamp] = set()
    for step in plan.steps:
        # A Copy step compares the files itself.
        if step.stamp and step.stamp not in stamps and not isinstance(step, Copy):
            stamps.add(step.stamp)
            if not step.stamp.holds():
                yield step.stamp, step


def _configure(stamp: Stamp, changes: Sequence[CMakeChange]) -> Iterator[str]:
    if stamp.made is not None and not stamp.made.exists():
        yield "CMake runs: this folder is not configured"
    elif changes:
        yield from cmake.change_notes(changes)
    else:
        yield "CMake runs again: the last run failed, or CMake or a file of tritonsmith changed"


def _flags_matter(settings: Settings, bare: Settings) -> Iterator[str]:
    """Yield one sentence for each setting that differs without the flags of the last build."""
    alone = {key: value for key, value, _ in keys_of(bare)}
    for key, value, _ in keys_of(settings):
        # `build-triton` without those flags may configure anew, which surprises who
        # only repeats the command.
        if alone[key] != value:
            yield f"settings of the last build: {key} = {value!r}; without flags, the value is {alone[key]!r}"


def _built_before(build: Path) -> tuple[str, ...]:
    """Return the libraries and programs that Ninja built here and that are still in its graph."""
    # The log of durations also has outputs that a later configure dropped; Ninja
    # would refuse them as targets.
    names = {
        name
        for name in ninja_graph.durations(build)
        if not name.startswith("/") and (name.endswith(_ENDS) or name.startswith("bin/"))
    }
    return tuple(sorted(ninja_graph.commands(build, {name for name in names if (build / name).exists()})))
