"""`setup-mlir`: an LLVM/MLIR that fits the Triton checkout."""

from __future__ import annotations

from typing import Any

from tritonsmith.tasks.task import count, given, some, split, task, tri

_HELP = {
    "env": "environment (an env file's name or path)",
    "source": "Triton checkout or git URL",
    "provider": "auto, system, store, prebuilt or source",
    "llvm_dir": "prefix of an installed LLVM, for the provider system",
    "llvm_source": "LLVM sources for the provider source: git URL, checkout or tarball",
    "sha256": "checksum of a tarball's URL, or of a prebuilt archive that has none",
    "any_commit": "accept an LLVM that is not at the pin",
    "build_type": "Debug, RelWithDebInfo, Release or MinSizeRel",
    "assertions": "build LLVM with assertions",
    "no_assertions": "build LLVM without assertions",
    "targets": "code generators: Native,NVPTX,AMDGPU",
    "scope": "closure (what this Triton links and tests with), python-module or all",
    "target": "Ninja target to build instead of a scope; may be repeated",
    "jobs": "compile jobs (0: what cores and memory allow)",
    "dry_run": "print the plan as a shell script, and do nothing",
    "reconfigure": "configure even if nothing changed",
    "force": "go on in spite of what the preflight found",
}


@task(tables=True, help=_HELP, iterable=["target"])
def setup_mlir(
    context: Any,
    target: Any,
    env: str = "dev",
    source: str = "",
    provider: str = "",
    llvm_dir: str = "",
    llvm_source: str = "",
    sha256: str = "",
    any_commit: bool = False,
    build_type: str = "",
    assertions: bool = False,
    no_assertions: bool = False,
    targets: str = "",
    scope: str = "",
    jobs: str = "",
    dry_run: bool = False,
    reconfigure: bool = False,
    force: bool = False,
) -> None:
    """Install or build the LLVM/MLIR that the Triton checkout pins."""
    from tritonsmith.builder.llvm import setup_mlir as use_case
    from tritonsmith.builder.triton import commands
    from tritonsmith.envs import session, settings
    from tritonsmith.tasks import output

    flags = {
        "triton.source": given(source),
        "llvm.provider": given(provider),
        "llvm.dir": given(llvm_dir),
        "llvm.source": given(llvm_source),
        "llvm.sha256": given(sha256),
        "llvm.any-commit": any_commit or None,
        "llvm.build-type": given(build_type),
        "llvm.assertions": tri(assertions, no_assertions, "assertions"),
        "llvm.targets": split(targets),
        "llvm.scope": given(scope),
        "llvm.ninja-targets": some(target),
        "toolchain.jobs": count(jobs, "jobs"),
    }
    chosen = settings.load(env, flags)
    space, located = commands.find_triton(chosen)
    pin_will_do = not use_case.wants_sources(chosen)
    if dry_run and located.fetch.steps and not pin_will_do:
        output.plan(located.fetch)
        output.warnings(("the rest depends on the sources, which are not here yet",))
        return
    if not dry_run:
        commands.bring_sources(chosen, located, pin_will_do=pin_will_do)
    prepared, choice = use_case.prepare(chosen, space, located, force=force, again=reconfigure)
    output.choice(choice)
    output.warnings(prepared.warnings)
    if dry_run:
        output.plan(prepared.plan)
        return
    with session.opened("setup-mlir", chosen.name, shared=True) as running:
        commands.execute(prepared, running)
    output.done(f"LLVM for {chosen.name!r}: {choice.prefix}", running, "invoke build-triton --debug")
