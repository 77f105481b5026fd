"""The part of LLVM to build: all, or only what this Triton links, runs and tests with.

Triton configures against an LLVM that is configured and not yet built; its graph then names every file of
LLVM that it uses. So the list always comes from the current checkout, and a later request for more builds
only the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.build import cmake
from tritonsmith.build.llvm.request import LlvmRequest
from tritonsmith.build.llvm.source import PHASE_BUILD, BuildTools
from tritonsmith.core.envs.schema import Settings
from tritonsmith.core.plan import BuildUsed, Step, digest
from tritonsmith.facts.checkout import TritonCheckout
from tritonsmith.facts.llvm_tree import LlvmTree

PHASE_PROBE = "what Triton uses of LLVM"
_PYTHON_MODULE = "triton"  # CMake's target of libtriton.so, in every era


@dataclass(frozen=True)
class Consumer:
    """The Triton for which an LLVM is built.

    Attributes:
        configure: returns the steps that configure it against a given unbuilt LLVM, and its build folder.
        programs: programs that its tests call.
        closure: key of its closure, from `key`.
    """

    configure: Callable[[LlvmTree], tuple[tuple[Step, ...], Path]]
    programs: tuple[str, ...]
    closure: str = ""


def build(
    prefix: Path, request: LlvmRequest, means: BuildTools, consumer: Consumer | None
) -> tuple[Step, ...]:
    """Return the steps that build the request in a configured folder; everything without a consumer."""
    settings, jobs, tools = request.settings, means.jobs.compile, means.tools
    named = settings.ninja_targets
    if named or settings.scope == "all" or consumer is None:
        built = cmake.build_targets(prefix, tools, targets=named, jobs=jobs, phase=PHASE_BUILD)
        return (built, *cmake.keep_graph(prefix, phase=PHASE_BUILD))
    # Triton's CMake looks for these programs while it configures, and fails without them.
    first = _before_configure(request)
    steps: tuple[Step, ...] = ()
    if first:
        steps = (cmake.build_targets(prefix, tools, targets=first, jobs=jobs, phase=PHASE_BUILD),)
    # Triton can configure against an LLVM that is configured and not built; its build.ninja then names
    # every file of LLVM that it links or runs. So no list is kept by hand, and the closure fits every era.
    configured, probe = consumer.configure(promised(prefix, request))
    whole = settings.scope == "closure"
    return (
        *steps,
        *configured,
        BuildUsed(
            ninja=tools.ninja,
            tree=prefix,
            user=probe,
            of=() if whole else (_PYTHON_MODULE,),
            programs=consumer.programs if whole else (),
            jobs=jobs,
            phase=PHASE_BUILD,
        ),
        *cmake.keep_graph(prefix, phase=PHASE_BUILD),
    )


def key(settings: Settings, checkout: TritonCheckout) -> str:
    """Return a key that determines a checkout's needs, options included; empty where only Ninja can tell.

    It is empty if the sources are changed, lie in several places, or are not under git.
    """
    triton = settings.triton
    # Changed sources may need more of LLVM tomorrow: then only Ninja can tell, each time.
    if not checkout.commit or checkout.dirty or triton.plugin_dirs:
        return ""
    return f"{checkout.commit}+{digest(sorted(triton.backends), triton.proton, triton.cmake_args)[:8]}"


def promised(prefix: Path, request: LlvmRequest) -> LlvmTree:
    """Describe the LLVM that will exist once it is configured, as Triton's recipe needs it."""
    settings = request.settings
    return LlvmTree(
        prefix=prefix,
        version="",
        commit="",
        build_type=settings.build_type,
        assertions=settings.assertions,
        rtti=False,
        targets=frozenset(settings.targets),
        packages=frozenset(request.projects),
        tools=frozenset(),
        static=not settings.shared,
        build_tree=True,
    )


def _before_configure(request: LlvmRequest) -> tuple[str, ...]:
    """Return the programs that Triton's configure expects to be built already."""
    programs = {"needs-filecheck": "FileCheck", "needs-clang": "clang"}
    return tuple(name for feature, name in programs.items() if feature in request.features)
