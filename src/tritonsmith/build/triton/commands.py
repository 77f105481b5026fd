"""`build-triton`, `install-triton` and `link-compile-commands`: from facts to plans.

Each command reads facts and plans from them; the plan is shown (a dry run) or executed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from tritonsmith.atlas import tablegen
from tritonsmith.build import cmake, compile_commands, compiler_cache, precompiled_headers, preflight
from tritonsmith.build.cmake import bounded_jobs
from tritonsmith.build.compiler_cache import Folders
from tritonsmith.build.debug_library import relink
from tritonsmith.build.preflight import PreparedBuild
from tritonsmith.build.triton import install, recipe, source, suspects
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.build.triton.source import TritonSource, locate, request_for, request_for_revision
from tritonsmith.core import redact, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import receipts, settings, workspace
from tritonsmith.core.envs.receipts import Session
from tritonsmith.core.envs.settings import Layer, Settings, explain, find, load, name_of
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError, SmithError, StepError, UsageError
from tritonsmith.core.plan import BuildObjects, Plan, Write, digest, locks
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.facts import checkout, installed_tritons, llvm_history, llvm_tree, machine, python_env, tools
from tritonsmith.facts import checkout as checkouts
from tritonsmith.facts.checkout import TritonCheckout
from tritonsmith.facts.llvm_tree import LlvmRequest, LlvmTree
from tritonsmith.wheels import venv

RECEIPT_BESIDE = "tritonsmith-receipt.json"
_ANOTHER_BUILDS = 4 * 3600.0  # seconds to wait while another environment builds the same checkout
# Settings that decide what is built. Those of speed, such as jobs and caches, come from the env each time.
_REMEMBERED = (
    "llvm.dir",
    "triton.build-type",
    "triton.backends",
    "triton.plugin-dirs",
    "triton.proton",
    "triton.sanitizer",
    "triton.cmake-args",
    "triton.werror",
    "triton.precompiled-headers",
)


def prepare_build(
    settings: Settings, space: Workspace, located: TritonSource, *, force: bool = False, again: bool = False
) -> PreparedBuild:
    """Prepare Triton's configure and build.

    Args:
        settings: settings of the env.
        space: the workspace.
        located: the checkout.
        force: continue despite the preflight's findings.
        again: configure even if nothing changed.

    Raises:
        FactError: there is no checkout, or no LLVM yet.
        PreflightError: the build would fail.
    """
    inputs, request, warnings = gather_checked(settings, space, located, force=force, again=again)
    if settings.llvm.debug_libraries:
        # `with_listed` adds the step that writes this file.
        inputs = replace(inputs, after_project=relink.file(inputs.env))
    inputs, tried = (inputs, ()) if force else _with_suspects(inputs, request)
    plan = recipe.plan(inputs, again=again)
    last = receipts.read(inputs.env.receipt("build-triton"))
    setup_receipt = receipts.read(inputs.env.receipt("setup-mlir"))
    pins = (
        *source.pin_notes(last, request, inputs.llvm),
        *source.newer_archive(setup_receipt, request, settings.name),
    )
    notes = (*pins, *cmake.change_notes(cmake.pending_changes(plan)))
    return _prepared(replace(plan, notes=(*plan.notes, *tried, *notes)), inputs, request, warnings)


def plan_before_llvm(settings: Settings, space: Workspace, located: TritonSource) -> Plan | None:
    """Plan the part of a build that does not need the LLVM; None if the environment has one.

    Raises:
        FactError: there is no checkout, or no interpreter.
    """
    env, checkout = space.env(settings.name), checkouts.read(located.root)
    if settings.llvm.dir or receipts.read(env.receipt("setup-mlir")):
        return None
    python, proton = venv.base_interpreter(settings.python.interpreter), settings.triton.proton
    steps = recipe.before_llvm(checkout, env, python, space, machine.read(), proton=proton).steps
    return Plan(f"Triton {checkout.version} ({settings.triton.build_type}) in {env.build}", steps)


def prepare_install(
    settings: Settings, space: Workspace, located: TritonSource, proof: Plan, *, force: bool = False
) -> PreparedBuild:
    """Prepare the editable install; missing parts of Triton are built first.

    Args:
        settings: settings of the env.
        space: the workspace.
        located: the checkout.
        proof: steps that show that the result works; they run last, if the era supports them.
        force: continue despite the preflight's findings.

    Raises:
        FactError: there is no checkout, or no LLVM yet.
        PreflightError: the build would fail, or upstream's setup.py would delete something.
    """
    inputs, request, warnings, tried = _for_setup_py(settings, space, located, force=force)
    plan = install.plan(inputs, occupied=_occupied(inputs))
    if _provable(inputs):
        plan += proof
    if attempt := receipts.unfinished(inputs.env):
        tried = (*tried, f"continuing the {attempt.task} that did not finish: {_kind(settings)}")
    return _prepared(replace(plan, notes=(*plan.notes, *tried)), inputs, request, warnings)


def prepare_wheel(
    settings: Settings, space: Workspace, located: TritonSource, *, force: bool = False
) -> PreparedBuild:
    """Prepare a wheel; missing parts of Triton are built first.

    Args:
        settings: settings of the env.
        space: the workspace.
        located: the checkout.
        force: continue despite the preflight's findings.

    Raises:
        FactError: there is no checkout, or no LLVM yet.
        PreflightError: the build would fail, or upstream's setup.py would delete something.
    """
    inputs, request, warnings, tried = _for_setup_py(settings, space, located, force=force)
    plan = install.wheel(inputs, occupied=_occupied(inputs))
    prepared = _prepared(replace(plan, notes=(*plan.notes, *tried)), inputs, request, warnings)
    return replace(prepared, receipt=prepared.receipt | {"wheels": inputs.env.path / install.WHEELS})


def _for_setup_py(
    settings: Settings, space: Workspace, located: TritonSource, *, force: bool
) -> tuple[Inputs, LlvmRequest, tuple[str, ...], tuple[str, ...]]:
    """Read all facts for upstream's setup.py; return inputs, request, preflight warnings and notes."""
    inputs, request = gather(settings, space, located)
    problems = _problems(inputs, request)
    problems += preflight.setup_py(inputs, compile_commands.database_link(inputs.checkout.root))
    warnings = preflight.enforce(problems, force=force)
    inputs, tried = (inputs, ()) if force else _with_suspects(inputs, request)
    return inputs, request, warnings, tried


def _occupied(inputs: Inputs) -> bool:
    """Report whether pip's own build folder exists, and is not the tool's link."""
    folder = install.pip_build_dir(inputs.checkout, inputs.python)
    return folder.exists() and not folder.is_symlink()


def _with_suspects(inputs: Inputs, request: LlvmRequest) -> tuple[Inputs, tuple[str, ...]]:
    """Add files to compile first if the LLVM is not the pin and was never built against; return notes."""
    tree, pin, root = inputs.llvm, request.pin, inputs.checkout.root
    if pin is None or request.fit(tree.commit) == "pin":
        return inputs, ()
    last = receipts.succeeded(inputs.env)
    # An LLVM that was built against once needs no test: the objects are either there or compile.
    if (last.get("pin"), last.get("llvm"), last.get("llvm_commit")) == (
        pin.commit,
        str(tree.prefix),
        tree.commit,
    ):
        return inputs, ()  # this LLVM worked before
    # Of an LLVM without a commit, a distribution's, the release date tells on
    # which side of the pin it lies.
    released = None if tree.commit else checkout.llvm_branched(tree.major)
    bumps = suspects.towards(llvm_history.bumps_around(root), released)
    chosen = suspects.choose(root, bumps, inputs.settings.triton.targets)
    unknown = (
        "the history of this checkout does not show which files depend on the LLVM (a shallow clone?), "
        "so no file is tried before the build"
    )
    batches = suspects.batches(root, chosen, inputs.jobs.compile)
    return replace(inputs, suspects=batches), () if chosen else (unknown,)


def _kind(settings: Settings) -> str:
    """Describe the build that continues."""
    return f"{settings.triton.build_type}, backends {', '.join(settings.triton.backends)}"


def _provable(inputs: Inputs) -> bool:
    """Report whether the result can compile a kernel here, without a GPU."""
    checkout, settings = inputs.checkout, inputs.settings.triton
    # 2.x needs a driver to compile at all, and a sanitizer's runtime must be preloaded by hand.
    if not checkout.has("nvidia-backend") or settings.sanitizer:
        return False
    # Before 3.5 the AMD backend calls ROCm's linker, which may not be installed.
    own_lld = checkout.has("needs-lld")
    return "nvidia" in settings.backends or ("amd" in settings.backends and own_lld)


def link_compile_commands(settings: Settings, space: Workspace, located: TritonSource) -> PreparedBuild:
    """Prepare the merged compilation database and its link.

    Raises:
        FactError: nothing is configured yet, or a folder lies in the way.
    """
    env = space.env(settings.name)
    checkout = checkouts.read(located.root)
    receipt = receipts.read(env.receipt("setup-mlir")) or {}
    # Triton's first, because the merge keeps the first entry of a file.
    folders = [env.build, *([Path(receipt["prefix"])] if "prefix" in receipt else [])]
    candidates = (folder / compile_commands.COMPILE_COMMANDS for folder in folders)
    databases = tuple(path for path in candidates if path.is_file())
    place = compile_commands.database_link(checkout.root)
    plan = compile_commands.link_plan(place, env, databases)
    return PreparedBuild(plan, (), {"link": place.path, "was": place.state, "databases": databases})


def execute(prepared: PreparedBuild, session: Session) -> None:
    """Run a prepared plan and write its receipt; a failure is raised with its first error explained.

    Raises:
        StepError: a step failed; the error has the first error, its cause and a remedy.
    """
    shelf = prepared.store_update
    with shelf.hold(session.task) if shelf else nullcontext():
        if shelf:
            session.run_unseen(shelf.announce())
        # The lock of the environment is held by the caller. This one is the checkout's: every environment
        # links its libtriton.so into the same folder of sources.
        with _one_at_a_time(prepared, session), _attempted(prepared, session):
            session.run(prepared.plan)
        beside = (prepared.beside / RECEIPT_BESIDE,) if prepared.beside and prepared.beside.is_dir() else ()
        # The receipt records success, and what it names must be published by then.
        if shelf:
            session.run_unseen(shelf.steps())
        ended = receipts.ended_steps(session.env) if prepared.checkout else ()
        answers = tools.unsaved_answers()
        learned = (Write(*answers, phase="receipt"),) if answers else ()
        session.leave_receipt(prepared.receipt, *beside, also=(*learned, *ended))


@contextmanager
def _one_at_a_time(prepared: PreparedBuild, session: Session) -> Iterator[None]:
    """Hold the lock of a build's checkout; wait for a build of it in another environment."""
    if prepared.checkout is None:
        yield
        return
    root = prepared.checkout.root
    with locks.hold(
        session.env.root / f"checkout-{digest(str(root))}.lock",
        purpose=f"{session.task} --env {session.env.name}",
        busy=f"building {root}",
        patience=_ANOTHER_BUILDS,
    ):
        yield


@contextmanager
def _attempted(prepared: PreparedBuild, session: Session) -> Iterator[None]:
    """Explain a failure; for a build of Triton, also record that it began and how it failed."""
    about = (session.env, session.task, prepared.receipt, session.log)
    builds = prepared.checkout is not None
    if builds:
        # Written before the build starts: a run that is killed cannot write anything any more.
        session.run_unseen(receipts.unfinished_steps(*about))
    try:
        yield
    except SmithError as error:
        # The error is explained once, here, where the output is still at hand; the
        # record keeps the explanation.
        explained = _explained(error, prepared) if isinstance(error, CommandFailedError) else error
        if builds:
            session.run_unseen(receipts.unfinished_steps(*about, explained))
        if explained is error:
            raise
        raise explained from error


def _explained(failure: CommandFailedError, prepared: PreparedBuild) -> StepError:
    from tritonsmith.build import diagnose  # noqa: PLC0415 - its patterns take time to compile

    llvm, pin, checkout = prepared.llvm_in_words, prepared.pin_in_words, prepared.checkout
    step, backends = failure.step, prepared.receipt.get("backends", ())
    if checkout and isinstance(step, BuildObjects):
        return suspects.explain(failure, step, llvm=llvm, pin=pin, checkout=checkout, backends=backends)
    return diagnose.explain(failure, llvm=llvm, pin=pin, dirty=bool(checkout and checkout.dirty))


def gather(
    settings: Settings, space: Workspace, located: TritonSource, *, again: bool = False
) -> tuple[Inputs, LlvmRequest]:
    """Read all facts that Triton's recipe needs; `again` renews the choices that a build folder keeps.

    Raises:
        FactError: there is no checkout, no LLVM, or no interpreter.
    """
    checkout = checkouts.read(located.root)
    env = space.env(settings.name)
    # Resolved once, so that the plan, the preflight and the receipt name the same targets.
    targets = recipe.resolve_targets(settings.triton, checkout.root)
    settings = replace(settings, triton=replace(settings.triton, targets=targets))
    request = request_for(settings, checkout)
    tree = _llvm_of(settings, space, env, request, checkout)
    host = machine.read()
    compilers = tools.compilers(
        compiler=settings.toolchain.compiler,
        linker=settings.toolchain.linker,
        launcher=settings.cache.launcher,
        llvm_bin=tree.bin,
    )
    inputs = Inputs(
        settings=settings,
        checkout=checkout,
        llvm=tree,
        python=venv.base_interpreter(settings.python.interpreter),
        machine=host,
        compilers=compilers,
        tools=cmake.own_tools(),
        jobs=bounded_jobs(host, settings.toolchain, settings.llvm.debug_info),
        workspace=space,
        env=env,
        after_project=relink.existing(env),
        llvm_sources=_sources(tree, env),
    )
    return replace(inputs, precompiled=_precompiled(inputs, again=again)), request


def gather_checked(
    settings: Settings, space: Workspace, located: TritonSource, *, force: bool = False, again: bool = False
) -> tuple[Inputs, LlvmRequest, tuple[str, ...]]:
    """Read all facts, and return them with the warnings of the preflight.

    Args:
        settings: settings of the env.
        space: the workspace.
        located: the checkout.
        force: continue despite the preflight's findings.
        again: renew the choices that a build folder keeps.

    Raises:
        FactError: there is no checkout, no LLVM, or no interpreter.
        PreflightError: the build would fail.
    """
    inputs, request = gather(settings, space, located, again=again)
    return inputs, request, preflight.enforce(_problems(inputs, request), force=force)


def _precompiled(inputs: Inputs, *, again: bool) -> dict[str, str]:
    """Return the headers to precompile: the last configure's, unless `again` or with another LLVM."""
    here = Folders(inputs.checkout.root, inputs.env.build, inputs.workspace.root)
    shared = compiler_cache.shared(inputs.compilers, inputs.machine.system, here) is not None
    if not precompiled_headers.used_for_triton(inputs.settings, inputs.compilers, shared=shared):
        return {}
    file = inputs.env.build / cmake.CACHE_FILE
    last = cmake.recorded_values(untrusted.read_text(file)) if file.is_file() else {}
    # Another choice of headers recompiles everything that uses one: it is kept while the build folder is.
    same = not again and last.get("LLVM") == inputs.llvm.in_words
    return precompiled_headers.choose_headers(
        inputs.checkout.root, inputs.settings.triton.backends, last if same else {}
    )


def last_build(env: str) -> Layer | None:
    """Return the settings of Triton's last build, flags included, so that `install-triton` uses the same.

    Args:
        env: name or path of the env file.
    """
    folder = workspace.default().env(name_of(find(env)))
    attempt, last = receipts.unfinished(folder), last_settings(folder)
    name = f"the last {receipts.succeeded(folder).get('task')}"
    # A build that failed or was interrupted counts: its folder is configured that way, and partly compiled.
    if attempt and attempt.settings:
        name = f"the last {attempt.task}, which did not finish"
    if last is None:
        return None
    hidden = _hidden(env, name, last)
    return name, {key: value for key, value in last.items() if key not in hidden}


def flags_of_last_build(env: str) -> dict[str, Any]:
    """Return settings of the last build that differ from the env file: those from its flags."""
    layer = last_build(env)
    if layer is None:
        return {}
    own = {key: value for key, value, _ in explain(load(env, only_shown=True))}
    # JSON has no tuples, which the settings have.
    last = {key: tuple(value) if isinstance(value, list) else value for key, value in layer[1].items()}
    return {key: value for key, value in last.items() if own.get(key) != value}


def last_settings(env: EnvDir) -> dict[str, Any] | None:
    """Return the settings of the last build, finished or not; None without one."""
    attempt = receipts.unfinished(env)
    return (attempt.settings if attempt else {}) or receipts.succeeded(env).get("settings")


def _repeated(env: EnvDir) -> tuple[str, ...]:
    """Return the hint to repeat the flags of the last build, if it had an LLVM of its own."""
    last = last_settings(env) or {}
    llvm, kind = last.get("llvm.dir"), last.get("triton.build-type")
    if not llvm:
        return ()
    again = command("build-triton", env=env.name, build_type=kind, llvm_dir=llvm)
    return (f"or repeat the flags of the last build: {again}", "permanent flags belong in an env file")


def _hidden(env: str, name: str, last: Mapping[str, Any]) -> frozenset[str]:
    """Return keys whose recorded values lack a secret: the env file still has these.

    Raises:
        UsageError: the values came from flags and are not recorded.
    """
    hidden = {key for key, value in last.items() if redact.MARK in str(value)}
    if hidden:
        now = {key: redact.data(value) for key, value, _ in explain(load(env, only_shown=True))}
        # A secret that is still in the env file comes from there; one from a flag is gone.
        if lost := sorted(key for key in hidden if now[key] != last[key]):
            raise UsageError(
                f"{name} got a secret from a flag, and secrets are not recorded: {', '.join(lost)}",
                hints=["put the secret into the env file", "or rebuild without it: invoke build-triton"],
            )
    return frozenset(hidden)


def find_triton(settings: Settings) -> tuple[Workspace, TritonSource]:
    """Return the workspace and the checkout that a task works on."""
    space = workspace.default()
    return space, locate(settings, space, Path.cwd())


def bring_sources(settings: Settings, located: TritonSource, *, pin_will_do: bool = False) -> None:
    """Fetch the checkout if the env names a URL and there is none yet.

    Args:
        settings: settings of the env.
        located: the location of the sources.
        pin_will_do: a released version needs no sources, as its pin is known without them.
    """
    if located.fetch.steps and not (pin_will_do and request_for_revision(settings)):
        with receipts.open_session("fetch-triton", settings.name) as running:
            running.run(located.fetch)


def _problems(inputs: Inputs, request: LlvmRequest) -> list[preflight.Problem]:
    free = machine.disk_free(inputs.env.path)
    packages = venv.site_packages(inputs.env, inputs.python)
    return list(
        preflight.triton(inputs, request, disk_free=free, lit=python_env.installed_version(packages, "lit"))
    )


def _llvm_of(
    settings: Settings, space: Workspace, env: EnvDir, request: LlvmRequest, checkout: TritonCheckout
) -> LlvmTree:
    if settings.llvm.dir:
        return llvm_tree.read(Path(settings.llvm.dir))
    receipt = receipts.read(env.receipt("setup-mlir"))
    if receipt is None:
        raise FactError(
            f"environment {env.name!r} has no LLVM yet",
            where=env.receipt("setup-mlir"),
            hints=[
                f"run `{command('setup-mlir', env=env.name)}` first",
                *_repeated(env),
                "or use an installed LLVM: --llvm-dir /usr/lib/llvm-NN",
            ],
        )
    try:
        tree = llvm_tree.read(Path(receipt["prefix"]))
    except FactError as error:
        raise FactError(
            f"the LLVM of environment {env.name!r} no longer exists",
            where=receipt["prefix"],
            why=error.why,
            hints=[f"run `{command('setup-mlir', env=env.name)}` again"],
        ) from error

    def stored() -> list[Path]:
        from tritonsmith.build.llvm import prebuilt  # noqa: PLC0415 - only where the pin changed
        from tritonsmith.build.store import store  # noqa: PLC0415

        needs = prebuilt.wanted(request, machine.read(), prebuilt.key(settings, checkout))
        match = store.open_store(space, settings.llvm.store).find(needs)
        return [match.entry.path] if match.entry and match.complete else []

    return source.right_llvm(tree, request, receipt, stored, env.name)


def _sources(tree: LlvmTree, env: EnvDir) -> Path | None:
    """Return the sources of the LLVM's build, or those given to `debug-library` for it."""
    last = (receipts.read(env.receipt("debug-library")) or {}).get("sources")
    return llvm_tree.source_of(tree.prefix) or (Path(last) if last else None)


def _prepared(plan: Plan, inputs: Inputs, request: LlvmRequest, warnings: tuple[str, ...]) -> PreparedBuild:
    tree = inputs.llvm
    not_the_pin = request.pin is not None and request.fit(tree.commit) != "pin"
    words = f"{tree.version} in {tree.prefix}" + (
        f", commit {tree.commit}" if tree.commit else ", commit not recorded"
    )
    pin = f"{request.pin.commit} ({request.pin.file})" if request.pin else "unknown"
    # An LLVM at the pin is not named in errors, because it cannot be their cause.
    near = words if not_the_pin else ""
    receipt = receipt_of(inputs, request)
    return PreparedBuild(
        plan, warnings, receipt, inputs.env.build, near, pin, checkout=inputs.checkout, inputs=inputs
    )


def receipt_of(inputs: Inputs, request: LlvmRequest) -> dict[str, Any]:
    """Return the inputs of a build, for its receipt."""
    settings, checkout, tree = inputs.settings, inputs.checkout, inputs.llvm
    return {
        "env": settings.name,
        "source": checkout.root,
        "version": checkout.version,
        "commit": checkout.commit,
        "dirty": checkout.dirty,
        "pin": request.pin.commit if request.pin else "",
        "llvm": tree.prefix,
        "llvm_version": tree.version,
        "llvm_commit": tree.commit,
        "build_type": settings.triton.build_type,
        "backends": settings.triton.backends,
        "targets": settings.triton.targets,
        "python": inputs.python.version,
        "requirements": recipe.requirements(checkout),
        "compiler": inputs.compilers.cxx,
        "linker": inputs.compilers.linker,
        "launcher": inputs.compilers.launcher,
        "build": inputs.env.build,
        "settings": {key: value for key, value, _ in explain(settings) if key in _REMEMBERED},
    }


def sources_to_read(source_text: str, env: str, python: Path | None) -> Path:
    """Return the sources of Triton that explain things: a checkout, or an installed Triton.

    Args:
        source_text: a checkout; empty for that of the environment, or the one around the current folder.
        env: name of an environment; empty for the current folder's checkout first.
        python: an interpreter whose installed Triton is read; None for none.

    Raises:
        FactError: there are no such sources.
    """
    space = workspace.default()
    if python:
        if triton := installed_tritons.of_python(python):
            return _sources_of_installed(triton.where)
        raise FactError("this Python has no Triton", where=python, hints=["--source CHECKOUT"])
    if source_text:
        _, located = find_triton(load("dev", {"triton.source": source_text}))
        # A fetch that failed leaves an empty clone.
        if not located.root.is_dir() or located.fetch.steps:
            hints = ["clone it first", "--source PATH"]
            raise FactError("no checkout of Triton here", where=located.root, hints=hints)
        return located.root
    around = None if env else checkout.enclosing(Path.cwd())
    if around:
        return around
    name = load(env or "dev").name
    built = last_build(env or "dev")
    built_from = str((built[1] if built else {}).get("triton.source") or "")
    if built_from and Path(built_from).is_dir():
        return Path(built_from)
    installed = installed_tritons.of_env(space.env(name)) if env else installed_tritons.here(os.environ)
    installed = installed or (None if env else installed_tritons.newest(space))
    if installed:
        return _sources_of_installed(installed.where)
    raise FactError(
        "no sources of Triton, and no installed one",
        where=space.env(name).path if env else Path.cwd(),
        hints=[
            f"get the sources: git clone {load('dev').triton.source}, then --source triton",
            f"or a released Triton, which takes a minute: {command('up')}",
        ],
    )


def _sources_of_installed(site: Path) -> Path:
    # An editable installation leads back into its checkout, which has more than the Python files.
    package = (site / "triton").resolve()
    return checkout.enclosing(package) or package


def llvms_to_read(folder: str, env: str) -> list[Path]:
    """Return the LLVM in a folder; without one, the environment's LLVM and those of the system.

    Raises:
        FactError: the folder has no llvm-tblgen.
    """
    if folder:
        path = Path(folder).expanduser().absolute()
        if not tablegen.program(path):
            raise FactError("this LLVM has no llvm-tblgen beside MLIR's .td files", where=path)
        return [path]
    receipt = receipts.read(workspace.default().env(load(env or "dev").name).receipt("setup-mlir"))
    own = [Path(str(receipt["prefix"]))] if receipt and receipt.get("prefix") else []
    return [*own, *(tree.prefix for tree in llvm_tree.installed())]


def files_behind_choice(source_text: str, llvms: Sequence[Path]) -> tuple[Path, ...]:
    """Return files and folders that decide what `sources_to_read` and `llvms_to_read` return, without an env.

    Args:
        source_text: the checkout, as it was given; empty for the one around the current folder.
        llvms: all LLVMs that were returned.

    Returns:
        Paths, some of which are missing; empty if the choice has other reasons, too: an installed Triton.
    """
    own = settings.files_behind("dev")
    there = Path(source_text).expanduser().is_dir() if source_text else checkout.enclosing(Path.cwd())
    if not own or not there:  # not a clone that a URL stands for either
        return ()
    receipt = workspace.default().env(load("dev").name).receipt("setup-mlir")
    around = () if source_text else checkout.signs_around(Path.cwd())
    of_llvms = (path for llvm in llvms for path in tablegen.files_behind(llvm))
    return *own, receipt, *around, *llvm_tree.files_behind(), *of_llvms
