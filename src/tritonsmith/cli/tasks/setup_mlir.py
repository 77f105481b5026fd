"""`setup-mlir`: install or build the LLVM/MLIR that the Triton checkout pins."""

from __future__ import annotations

from typing import Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import CommaList, flag
from tritonsmith.cli.tasks.options import (
    DRY_RUN,
    ENV,
    FORCE,
    JOBS,
    LLVM_DIR,
    LLVM_SOURCE,
    NINJA_TARGET,
    RECONFIGURE,
    SHA256,
    SOURCE,
)
from tritonsmith.cli.tasks.task import task
from tritonsmith.core import configs
from tritonsmith.core.command_line import command


@task(tables=True, name="setup-mlir")
def setup_mlir(
    context: Any,
    env: str = ENV,
    source: str = SOURCE,
    provider: str = flag("provider of LLVM: auto, system, store, prebuilt or source", ""),
    llvm_dir: str = LLVM_DIR,
    llvm_source: str = LLVM_SOURCE,
    sha256: str = SHA256,
    any_commit: bool = flag("accept an LLVM that is not at the pin", default=False),
    build_type: str = flag("Debug, RelWithDebInfo, Release or MinSizeRel", ""),
    assertions: bool | None = flag("build LLVM with assertions", None),
    targets: CommaList = flag("code generators: Native,NVPTX,AMDGPU", ()),
    scope: str = flag("what to build: closure (what Triton links and tests), python-module, all", ""),
    target: tuple[str, ...] = NINJA_TARGET,
    jobs: int | None = JOBS,
    dry_run: bool = DRY_RUN,
    reconfigure: bool = RECONFIGURE,
    force: bool = FORCE,
) -> None:
    """Install or build the LLVM/MLIR that the Triton checkout pins."""
    from tritonsmith.build.llvm import setup_mlir as use_case
    from tritonsmith.build.triton import commands
    from tritonsmith.core.envs import session, settings

    flags = {
        "triton.source": source or None,
        "llvm.provider": provider or None,
        "llvm.dir": llvm_dir or None,
        "llvm.source": llvm_source or None,
        "llvm.sha256": sha256 or None,
        "llvm.any-commit": any_commit or None,
        "llvm.build-type": build_type or None,
        "llvm.assertions": assertions,
        "llvm.targets": targets or None,
        "llvm.scope": scope or None,
        "llvm.ninja-targets": target or None,
        "toolchain.jobs": jobs,
    }
    chosen = settings.load(env, flags)
    space, located = commands.find_triton(chosen)
    pin_will_do = not use_case.wants_sources(chosen)
    if dry_run and located.fetch.steps and not pin_will_do:
        output.plan(located.fetch, rest="the sources, which are not downloaded yet")
        return
    if not dry_run:
        commands.bring_sources(chosen, located, pin_will_do=pin_will_do)
    prepared, choice = use_case.prepare(chosen, space, located, force=force, again=reconfigure)
    output.choice(choice)
    output.warnings(prepared.warnings)
    if dry_run:
        known = configs.load("resources")["cpu-seconds"]["llvm-closure"]
        built = choice.provider == "source" and chosen.llvm.scope == "closure"
        measured = known.get(chosen.llvm.build_type) if built else None
        receipt = space.env(chosen.name).receipt("setup-mlir")
        output.plan(prepared.plan, about=output.time_of(prepared.plan, receipt, measured))
        return
    with session.opened("setup-mlir", chosen.name, shared=True) as running:
        commands.execute(prepared, running)
    named = output.unusual(env)  # others say themselves how they are built
    following = command("build-triton", env=named) if named else command("build-triton", debug=True)
    output.done(f"LLVM for {chosen.name!r}: {choice.prefix}", running, following)
