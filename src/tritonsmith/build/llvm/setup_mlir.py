"""`setup-mlir`: provide an environment with an LLVM from the quickest source."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tritonsmith.build import cmake, precompiled_headers, preflight
from tritonsmith.build.cmake import bounded_jobs
from tritonsmith.build.llvm import prebuilt, source
from tritonsmith.build.llvm.prebuilt import Consumer, StoreEntryUpdate
from tritonsmith.build.llvm.providers import ProviderChoice, ProviderInputs, choose
from tritonsmith.build.llvm.source import BuildTools
from tritonsmith.build.preflight import PreparedBuild
from tritonsmith.build.store.store import Store, find_uses, open_store, this_user
from tritonsmith.build.triton import recipe
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.build.triton.source import TritonSource, request_for, request_for_revision
from tritonsmith.core.envs.settings import Settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Step, download
from tritonsmith.facts import checkout as checkouts
from tritonsmith.facts import llvm_tree, machine, tools
from tritonsmith.facts.checkout import lit_programs
from tritonsmith.facts.llvm_tree import LlvmRequest, LlvmTree
from tritonsmith.wheels import venv


def prepare(
    settings: Settings, space: Workspace, located: TritonSource, *, force: bool = False, again: bool = False
) -> tuple[PreparedBuild, ProviderChoice]:
    """Prepare an LLVM/MLIR for the env's Triton.

    `force` continues despite the preflight's findings; `again` configures even if nothing changed.

    Raises:
        FactError: no provider fits.
        PreflightError: the build would fail.
    """
    request = _request(settings, located)
    means = build_tools(settings)
    store = open_store(space, settings.llvm.store)
    named = settings.llvm.dir
    inputs = ProviderInputs(
        workspace=space,
        means=means,
        # A named LLVM is the only one offered: none that happens to be installed stands in for it.
        installed=(llvm_tree.read(Path(named)),) if named else llvm_tree.installed(),
        source=source.locate(settings.llvm.source),
        reachable=download.reachable,
        store=store,
        entries=store.entries(),
        consumer=_consumer(settings, space, located, means, again=again),
        again=again,
    )
    choice = choose(request, inputs)
    warnings = [*choice.warnings]
    # Only these providers compile; the preflight predicts failures of compiles.
    if choice.provider in ("source", "store") and choice.plan.steps:
        warnings += _preflight(request, settings, means, store, force=force)
        # Entries are shared: what is configured again here is rebuilt for everybody.
        others = _others(store, space, settings.name, choice.entry) if again else ""
        if others:
            warnings.append(f"{choice.entry} is also used by {others}; changes are rebuilt for all of them")
    update = None
    if choice.entry:
        root = located.root if located.root.is_dir() else None
        user = this_user(space.env(settings.name), root, choice.entry)
        update = StoreEntryUpdate(store, choice.entry, user, choice.describe)
    receipt = _receipt(request, settings, means, choice)
    # A tree that is not ours, or is already complete, gets no file from this run.
    beside = choice.prefix if choice.describe else None
    return PreparedBuild(choice.plan, tuple(warnings), receipt, beside, store_update=update), choice


def build_tools(settings: Settings) -> BuildTools:
    """Collect the tools that build an LLVM here."""
    host = machine.read()
    compilers = tools.compilers(
        compiler=settings.toolchain.compiler,
        linker=settings.toolchain.linker,
        launcher=settings.cache.launcher,
    )
    return BuildTools(
        machine=host,
        compilers=compilers,
        tools=cmake.own_tools(),
        jobs=bounded_jobs(host, settings.toolchain, settings.llvm.debug_info),
        precompiled=precompiled_headers.used_for_llvm(settings, compilers),
        cache=settings.cache,
    )


def _preflight(
    request: LlvmRequest, settings: Settings, means: BuildTools, store: Store, *, force: bool
) -> list[str]:
    """Return warnings about a build of LLVM.

    Raises:
        PreflightError: it would fail.
    """
    linker, free = settings.toolchain.linker, machine.disk_free(store.root)
    host, compilers = means.machine, means.compilers
    problems = [
        *preflight.llvm(
            request, host, compilers, means.jobs, linker=linker, disk_free=free, where=store.root
        ),
        *preflight.cache(settings, compilers),
    ]
    return list(preflight.enforce(problems, force=force))


def _receipt(
    request: LlvmRequest, settings: Settings, means: BuildTools, choice: ProviderChoice
) -> dict[str, Any]:
    return {
        "env": settings.name,
        "provider": choice.provider,
        "prefix": choice.prefix,
        "entry": choice.entry,
        "kind": choice.kind,
        "commit": choice.commit,
        "pin": request.pin.commit if request.pin else "",
        "pin_build": request.pin.build if request.pin else None,
        "projects": request.projects,
        "build_type": settings.llvm.build_type,
        "assertions": settings.llvm.assertions,
        "targets": settings.llvm.targets,
        "scope": settings.llvm.scope,
        "ninja_targets": settings.llvm.ninja_targets,
        "compiler": means.compilers.cxx,
        "refused": dict(choice.refused),
    }


def _others(store: Store, space: Workspace, env: str, entry: str) -> str:
    """Describe the other users of an entry."""
    uses = find_uses(store, space, time.time()).of(entry)
    users = [use.in_words for use in uses if (use.user.workspace, use.user.env) != (str(space.root), env)]
    return ", ".join(dict.fromkeys(users))


def wants_sources(settings: Settings) -> bool:
    """Report whether Triton's sources decide what is built of LLVM."""
    llvm = settings.llvm
    return llvm.scope != "all" and not llvm.ninja_targets and llvm.provider in ("auto", "source")


def _request(settings: Settings, located: TritonSource) -> LlvmRequest:
    if located.root.is_dir():
        return request_for(settings, checkouts.read(located.root))
    request = request_for_revision(settings)
    # Only releases have their pin in the table; that of a branch is in its files.
    if request is None:
        raise FactError(
            f"cannot determine the LLVM pin of Triton {settings.triton.revision!r} without its sources",
            hints=[
                "run this in a checkout, or give one: --source PATH",
                'or set a release: revision = "3.5" under [triton]',
            ],
        )
    return request


def _consumer(
    settings: Settings, space: Workspace, located: TritonSource, means: BuildTools, *, again: bool
) -> Consumer | None:
    """Return the Triton that LLVM is built for; None if its sources are not available."""
    if not located.root.is_dir():
        return None
    checkout, env = checkouts.read(located.root), space.env(settings.name)

    # Triton is configured against the LLVM's CMake package before LLVM is compiled, in a folder of its own:
    # its build.ninja then tells which libraries and tools it needs.
    def configure(tree: LlvmTree) -> tuple[tuple[Step, ...], Path]:
        inputs = Inputs(
            settings=settings,
            checkout=checkout,
            llvm=tree,
            python=venv.base_interpreter(settings.python.interpreter),
            machine=means.machine,
            compilers=means.compilers,
            tools=means.tools,
            jobs=means.jobs,
            workspace=space,
            env=env,
        )
        return recipe.configure(inputs, env.probe, phase=prebuilt.PHASE_PROBE, again=again), env.probe

    return Consumer(configure, lit_programs(checkout.root), prebuilt.key(settings, checkout))
