"""`build-triton --explain`: what the next build will rebuild, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import flag
from tritonsmith.cli.tasks.options import BUILD_FOR, ENV, JSON, NINJA_TARGET, SOURCE
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.errors import UsageError
from tritonsmith.core.ui import console

if TYPE_CHECKING:
    from tritonsmith.build.explain.command import Explanation

_SHOWN = 20  # rows


@task(name="explain")
def explain(
    context: Any,
    env: str = ENV,
    source: str = SOURCE,
    for_: str = BUILD_FOR,
    target: tuple[str, ...] = NINJA_TARGET,
    llvm: bool = flag("explain the LLVM that is built for the environment, not Triton", default=False),
    cache_debug: Path | None = flag("CCACHE_DEBUGDIR of a build: explain its cache misses", None),
    cache_before: Path | None = flag("CCACHE_DEBUGDIR of an earlier build, to compare with", None),
    json: bool = JSON,
) -> None:
    """Explain what the next build will rebuild, and why."""
    if cache_debug or cache_before:
        _misses(cache_debug, cache_before, json=json)
        return
    from tritonsmith.build.explain import command as use_case
    from tritonsmith.build.triton import commands
    from tritonsmith.core.envs import settings

    flags: dict[str, Any] = {"triton.source": source or None, "triton.for": for_ or None}
    chosen = settings.load(env, flags, commands.last_build(env))
    space, located = commands.find_triton(chosen)
    if llvm:
        found = use_case.of_llvm(space.env(chosen.name), target)
    else:
        bare = settings.load(env, flags)
        found = use_case.of_triton(chosen, space, located, bare, target)
    if json:
        console.out().print_json(data=found.as_json(), ensure_ascii=True)
        return
    _print(found)


def _misses(after: Path | None, before: Path | None, *, json: bool) -> None:
    from dataclasses import asdict

    from tritonsmith.build.explain.reasons import explain_misses

    if not (after and before):
        raise UsageError(
            "--cache-debug and --cache-before go together",
            hints=[
                "build twice, before and after, each with CCACHE_DEBUG=1 CCACHE_DEBUGDIR=/an/empty/folder",
            ],
        )
    found = explain_misses(after, before)
    if json:
        console.out().print_json(data={"schema": 1, **asdict(found)}, ensure_ascii=True)
        return
    _list([f"{_some(row.files)}: {row.why}" for row in found.rows])
    console.out().print(f"{found.hits} answered by the cache, {found.misses} not", markup=False)


def _list(reasons: list[str]) -> None:
    for reason in reasons[:_SHOWN]:
        console.out().print(f"- {reason}", markup=False)
    if (more := len(reasons) - _SHOWN) > 0:
        console.out().print(f"- ... and {more} more reasons: --json has them all", markup=False)


def _some(files: tuple[str, ...]) -> str:
    return files[0] if len(files) == 1 else f"{len(files)} objects ({files[0]}, ...)"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _print(found: Explanation) -> None:
    from tritonsmith.core.ui.units import duration

    output.notes(found.notes)
    if found.nothing:
        console.out().print(f"nothing to do in {found.folder}", markup=False)
        return
    for sentence in found.own:
        console.out().print(f"- {sentence}", markup=False)
    for sentence in found.regeneration:
        console.out().print(f"- Ninja runs CMake first: {sentence}; the graph may change then", markup=False)
    _list([row.why for row in found.rows])
    totals = found.totals
    unknown = f", {totals.unknown} never run before" if totals.unknown else ""
    console.out().print(
        f"{_count(totals.compiles, 'compile')}, {_count(totals.links, 'link')}, "
        f"{_count(totals.others, 'other step')}; "
        f"one after the other, at the speed of the last build: {duration(totals.seconds)}{unknown}",
        markup=False,
    )
