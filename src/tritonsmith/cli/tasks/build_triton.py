"""`build-triton`: configure and build Triton."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import flag
from tritonsmith.cli.tasks.options import (
    BUILD_FOR,
    DRY_RUN,
    ENV,
    FORCE,
    NINJA_TARGET,
    RECONFIGURE,
    BuildOptions,
)
from tritonsmith.cli.tasks.task import task
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import UsageError

if TYPE_CHECKING:
    from tritonsmith.build.prepared_build import PreparedBuild
    from tritonsmith.build.triton.check_includes import IncludeCheck


@task(tables=True, name="build-triton")
def build_triton(
    context: Any,
    how: BuildOptions,
    env: str = ENV,
    sanitizer: str = flag("sanitizer: address, undefined or thread", ""),
    for_: str = BUILD_FOR,
    target: tuple[str, ...] = NINJA_TARGET,
    cmake_arg: tuple[str, ...] = flag("-DNAME=VALUE, written --cmake-arg=-DNAME=VALUE (repeatable)", ()),
    dry_run: bool = DRY_RUN,
    reconfigure: bool = RECONFIGURE,
    precompiled_headers: str = flag("auto, on or off", ""),
    check_includes: bool = flag(
        "only compile what differs from a branch, without precompiled headers", default=False
    ),
    wheel: bool = flag("also make a wheel for a colleague, with this build's libtriton", default=False),
    base: str = flag("with --check-includes: branch to compare with; empty for upstream's main", ""),
    force: bool = FORCE,
) -> None:
    """Configure and build Triton from a checkout."""
    from tritonsmith.build.triton import commands
    from tritonsmith.core.envs import session, settings

    flags = {
        **build_settings(how),
        "triton.sanitizer": sanitizer or None,
        "triton.for": for_ or None,
        "triton.targets": target or (() if for_ else None),
        "triton.cmake-args": cmake_arg or None,
        "triton.precompiled-headers": precompiled_headers or None,
    }
    if base and not check_includes:
        raise UsageError("--base requires --check-includes")
    if check_includes and (for_ or target):
        raise UsageError(
            "--check-includes links nothing, so --for and --target have no meaning with it",
            hints=["it compiles the files that differ from a branch: --base BRANCH"],
        )
    if wheel and (for_ or target or check_includes):
        raise UsageError(
            "--wheel builds everything that setup.py does",
            why="--for, --target and --check-includes build less",
            hints=["omit them"],
        )
    # The check is of the build that is there: other settings would configure it anew.
    chosen = settings.load(env, flags, commands.last_build(env) if check_includes else None)
    space, located = commands.find_triton(chosen)
    if dry_run and located.fetch.steps:
        output.plan(located.fetch, rest="the sources, which are not downloaded yet")
        return
    commands.bring_sources(chosen, located)
    if dry_run and (first := commands.plan_before_llvm(chosen, space, located)):
        output.plan(first, rest=f"the LLVM: `{command('setup-mlir', env=output.unusual(env))}` provides it")
        return
    if check_includes:
        from tritonsmith.build.triton import check_includes as includes

        check = includes.prepare(chosen, space, located, base, force=force, again=reconfigure)
        _check_includes(check, chosen.name, dry_run=dry_run)
        return
    if wheel:
        _wheel(commands.prepare_wheel(chosen, space, located, force=force), chosen.name, dry_run=dry_run)
        return
    prepared = commands.prepare_build(chosen, space, located, force=force, again=reconfigure)
    if chosen.llvm.debug_libraries:
        from tritonsmith.build.debug_library import command as debug_libraries

        prepared = debug_libraries.with_listed(prepared)
    output.warnings(prepared.warnings)
    if dry_run:
        receipt = space.env(chosen.name).receipt("build-triton")
        known = configs.load("resources")["cpu-seconds"]["triton-build"]
        measured = known.get(chosen.triton.build_type)
        output.plan(prepared.plan, about=output.time_of(prepared.plan, receipt, measured))
        return
    output.notes(prepared.plan.notes)
    with session.opened("build-triton", chosen.name) as running:
        commands.execute(prepared, running)
    following = command("install-triton", env=output.unusual(env))
    output.done(f"Triton for {chosen.name!r}: {running.env.build / 'bin'}", running, following)
    output.debuggers(running.env.build)


def _wheel(prepared: PreparedBuild, env: str, *, dry_run: bool) -> None:
    from tritonsmith.build.triton import commands, install
    from tritonsmith.core.envs import session

    output.warnings(prepared.warnings)
    if dry_run:
        output.plan(prepared.plan)
        return
    output.notes(prepared.plan.notes)
    with session.opened("build-triton", env) as running:
        commands.execute(prepared, running)
    output.done(f"wheel: {install.made_wheel(running.env)}", running)


def _check_includes(check: IncludeCheck, env: str, *, dry_run: bool) -> None:
    from tritonsmith.build.triton import check_includes
    from tritonsmith.core.envs import session

    output.warnings(check.warnings)
    if dry_run:
        output.plan(check.plan)
        return
    if not check.changed:
        output.notes([f"nothing to check: no C++ file has changed since {check.base}"])
        return
    with session.opened("build-triton", env) as running:
        unchecked = check_includes.execute(check, running)
    output.warnings(f"not checked, because this build does not compile it: {path}" for path in unchecked)
    count = len(check.changed) - len(unchecked)
    output.done(f"no missing include: {count} files checked, changed since {check.base}", running)


def build_settings(how: BuildOptions) -> dict[str, Any]:
    """Return the settings by name; None for those that no flag overrides.

    Raises:
        UsageError: two flags contradict each other.
    """
    if how.debug and how.build_type not in ("", "Debug"):
        raise UsageError(
            f"--debug and --build-type {how.build_type} contradict each other", hints=["omit one of them"]
        )
    return {
        "triton.source": how.source or None,
        "llvm.dir": how.llvm_dir or None,
        "triton.build-type": "Debug" if how.debug else how.build_type or None,
        "triton.backends": how.backends or None,
        "triton.plugin-dirs": how.plugin_dir or None,
        "triton.proton": how.proton,
        "toolchain.jobs": how.jobs,
    }
