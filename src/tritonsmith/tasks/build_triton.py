"""`build-triton`, `install-triton` and `link-compile-commands`."""

from __future__ import annotations

from typing import Any

from tritonsmith.errors import UsageError
from tritonsmith.tasks.task import count, given, some, split, task, tri

_COMMON = {
    "env": "environment (an env file's name or path)",
    "source": "Triton checkout or git URL",
    "llvm_dir": "an LLVM to use instead of the one that setup-mlir gave",
    "debug": "the same as --build-type Debug",
    "build_type": "CMake's four, TritonRelBuildWithAsserts or TritonBuildWithO1",
    "backends": "folders of third_party/: amd,nvidia",
    "plugin_dir": "out-of-tree backend; may be repeated",
    "proton": "build the profiler",
    "no_proton": "leave the profiler out",
    "jobs": "compile jobs (0: what cores and memory allow)",
    "dry_run": "print the plan as a shell script, and do nothing",
    "force": "go on in spite of what the preflight found",
}
_BUILD = {
    **_COMMON,
    "sanitizer": "address, undefined or thread",
    "target": "Ninja target to build instead of all: triton-opt; may be repeated",
    "cmake_arg": "one more -DNAME=VALUE, written --cmake-arg=-DNAME=VALUE; may be repeated",
    "reconfigure": "configure even if nothing changed",
}


@task(tables=True, help=_BUILD, iterable=["target", "cmake_arg", "plugin_dir"])
def build_triton(
    context: Any,
    target: Any,
    cmake_arg: Any,
    plugin_dir: Any,
    env: str = "dev",
    source: str = "",
    llvm_dir: str = "",
    debug: bool = False,
    build_type: str = "",
    backends: str = "",
    sanitizer: str = "",
    proton: bool = False,
    no_proton: bool = False,
    jobs: str = "",
    dry_run: bool = False,
    reconfigure: bool = False,
    force: bool = False,
) -> None:
    """Configure and build Triton from a checkout."""
    from tritonsmith.builder.triton import commands
    from tritonsmith.envs import session, settings
    from tritonsmith.tasks import output

    flags = _flags(
        source, llvm_dir, debug, build_type, backends, plugin_dir, tri(proton, no_proton, "proton"), jobs
    )
    flags |= {
        "triton.sanitizer": given(sanitizer),
        "triton.targets": some(target),
        "triton.cmake-args": some(cmake_arg),
    }
    chosen = settings.load(env, flags)
    space, located = commands.find_triton(chosen)
    if dry_run and located.fetch.steps:
        output.plan(located.fetch)
        output.warnings(("the rest depends on the sources, which are not here yet",))
        return
    commands.bring_sources(chosen, located)
    prepared = commands.build_triton(chosen, space, located, force=force, again=reconfigure)
    if chosen.llvm.debug_libraries:
        from tritonsmith.builder.debug_library import command as debug_libraries

        prepared = debug_libraries.with_listed(prepared, chosen, space, located)
    output.warnings(prepared.warnings)
    if dry_run:
        output.plan(prepared.plan)
        return
    output.notes(prepared.plan.notes)
    with session.opened("build-triton", chosen.name) as running:
        commands.execute(prepared, running)
    output.done(f"Triton for {chosen.name!r}: {running.env.build / 'bin'}", running, "invoke install-triton")
    output.debuggers(running.env.build)


@task(tables=True, help=_COMMON, iterable=["plugin_dir"])
def install_triton(
    context: Any,
    plugin_dir: Any,
    env: str = "dev",
    source: str = "",
    llvm_dir: str = "",
    debug: bool = False,
    build_type: str = "",
    backends: str = "",
    proton: bool = False,
    no_proton: bool = False,
    jobs: str = "",
    dry_run: bool = False,
    force: bool = False,
) -> None:
    """Install the checkout into the environment, editable, and test it."""
    from tritonsmith.builder.triton import commands
    from tritonsmith.envs import session, settings
    from tritonsmith.kernels import smoke_test
    from tritonsmith.kernels.compile import disassemblers, targets
    from tritonsmith.tasks import output
    from tritonsmith.ui import console, tables

    flags = _flags(
        source, llvm_dir, debug, build_type, backends, plugin_dir, tri(proton, no_proton, "proton"), jobs
    )
    chosen = settings.load(env, flags, commands.last_build(env))
    space, located = commands.find_triton(chosen)
    if dry_run and located.fetch.steps:
        output.plan(located.fetch)
        output.warnings(("the rest depends on the sources, which are not here yet",))
        return
    commands.bring_sources(chosen, located)
    wanted, programs = targets.proof(chosen.triton.backends), disassemblers.locate(space)
    proof = smoke_test.plan(space.env(chosen.name), wanted, programs)
    prepared = commands.install_triton(chosen, space, located, proof, force=force)
    output.warnings(prepared.warnings)
    if chosen.llvm.debug_libraries:
        from tritonsmith.builder.debug_library import command as debug_libraries

        output.warnings(debug_libraries.missing(chosen, space, located))
    if dry_run:
        output.plan(prepared.plan)
        return
    with session.opened("install-triton", chosen.name) as running:
        commands.execute(prepared, running)
    if smoke_test.PHASE in prepared.plan.phases:
        console.out().print(tables.stages(smoke_test.read_response(running.env.path)))
    output.done(f"import triton works in {running.env.python}", running, "invoke link-compile-commands")


@task(tables=True, help={name: _COMMON[name] for name in ("env", "source", "dry_run")})
def link_compile_commands(context: Any, env: str = "dev", source: str = "", dry_run: bool = False) -> None:
    """Link one compile_commands.json of Triton and LLVM for clangd."""
    from tritonsmith.builder.triton import commands
    from tritonsmith.envs import session, settings
    from tritonsmith.tasks import output

    chosen = settings.load(env, {"triton.source": given(source)})
    space, located = commands.find_triton(chosen)
    prepared = commands.link_compile_commands(chosen, space, located)
    if dry_run:
        output.plan(prepared.plan)
        return
    with session.opened("link-compile-commands", chosen.name) as running:
        commands.execute(prepared, running)
    output.done(f"clangd reads {located.root / 'compile_commands.json'}", running)


def _flags(
    source: str,
    llvm_dir: str,
    debug: bool,
    build_type: str,
    backends: str,
    plugin_dir: Any,
    proton: bool | None,
    jobs: str,
) -> dict[str, Any]:
    if debug and build_type not in ("", "Debug"):
        raise UsageError(
            f"--debug and --build-type {build_type} contradict each other", hints=["leave one out"]
        )
    return {
        "triton.source": given(source),
        "llvm.dir": given(llvm_dir),
        "triton.build-type": "Debug" if debug else given(build_type),
        "triton.backends": split(backends),
        "triton.plugin-dirs": some(plugin_dir),
        "triton.proton": proton,
        "toolchain.jobs": count(jobs, "jobs"),
    }
