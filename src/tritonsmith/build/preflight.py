"""Failures that can be predicted, reported before a build starts, and the plan that passed these checks."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.specifiers import SpecifierSet

from tritonsmith.build import compiler_cache
from tritonsmith.build.cmake import Jobs
from tritonsmith.build.compile_commands import DatabaseLink
from tritonsmith.build.triton import recipe, suspects
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs.settings import DebugInfo, Settings
from tritonsmith.core.errors import PreflightError
from tritonsmith.core.plan import Plan
from tritonsmith.facts import checkout, tools
from tritonsmith.facts.checkout import TritonCheckout
from tritonsmith.facts.llvm_tree import LlvmRequest
from tritonsmith.facts.machine import Machine
from tritonsmith.facts.tools import Compilers

if TYPE_CHECKING:  # a build that has nothing to do needs no store
    from tritonsmith.build.llvm.prebuilt import StoreEntryUpdate
    from tritonsmith.build.triton.recipe import Inputs


_OWN_BACKENDS = ("nvidia", "amd")  # upstream's
_REGISTERS = b"RegisterTritonDialects.h"


@dataclass(frozen=True)
class Problem:
    """One predictable failure.

    Attributes:
        id: short name, the same in tests and docs.
        what: description of the failure.
        remedy: a command, or a change to make.
        fatal: the build cannot succeed; otherwise the problem is a warning.
    """

    id: str
    what: str
    remedy: str
    fatal: bool = True


def enforce(problems: Iterable[Problem], *, force: bool) -> tuple[str, ...]:
    """Raise an error if a problem is fatal, unless forced; return the warnings.

    Raises:
        PreflightError: a problem is fatal; the error has all of them and their remedies.
    """
    known = list(problems)
    fatal = [problem for problem in known if problem.fatal]
    if fatal and not force:
        raise PreflightError(
            "this build would fail; nothing was started",
            why="\n".join(f"[{problem.id}] {problem.what}" for problem in fatal),
            hints=[
                *(f"[{problem.id}] {problem.remedy}" for problem in fatal),
                "to ignore preflight errors: --force",
            ],
        )
    return tuple(f"[{problem.id}] {problem.what} ({problem.remedy})" for problem in known)


def triton(inputs: Inputs, request: LlvmRequest, *, disk_free: float, lit: str = "") -> Iterator[Problem]:
    """Yield the problems of `build-triton`.

    `disk_free` is in GiB, on the disk of the build folder. `lit` is its version in the env's venv; empty if
    the venv does not exist yet.
    """
    yield from _llvm(inputs, request)
    yield from _newer_compiler(inputs)
    yield from _lit(inputs, lit)
    yield from _tools(inputs.compilers, inputs.machine, linker=inputs.settings.toolchain.linker)
    yield from cache(inputs.settings, inputs.compilers)
    yield from _cmake_version(inputs)
    yield from _python(inputs)
    yield from _backends(inputs)
    yield from _bin(inputs, inputs.settings.triton.targets)
    yield from _nvidia(inputs)
    yield from resources(inputs.machine, inputs.jobs, inputs.settings.llvm.debug_info)
    need = configs.load("resources")["disk"]["triton-build"]
    yield from _disk(disk_free, need, inputs.env.path)


def cache(settings: Settings, compilers: Compilers) -> Iterator[Problem]:
    """Yield the settings under `[cache]` that are unavailable or incompatible."""
    icecc = bool(settings.cache.distribute) and tools.find("icecc") is not None
    rows = compiler_cache.problems(settings.cache, compilers, settings.llvm.debug_info, icecc=icecc)
    for name, what, remedy in rows:
        # The other settings have no effect; these two fail each compile.
        yield Problem(name, what, remedy, fatal=name in ("no-icecc", "sccache-split-dwarf"))


def llvm(
    request: LlvmRequest,
    machine: Machine,
    compilers: Compilers,
    jobs: Jobs,
    *,
    linker: str,
    disk_free: float,
    where: Path,
) -> Iterator[Problem]:
    """Yield the problems of `setup-mlir` with the provider `source`.

    `linker` is `lld`, `mold` or `default`, as requested; `disk_free` is in GiB, for the build folder `where`.
    """
    yield from _tools(compilers, machine, linker=linker)
    yield from resources(machine, jobs, request.settings.debug_info)
    if not request.settings.ninja_targets:
        disk, settings = configs.load("resources")["disk"], request.settings
        share = 1.0 if settings.scope == "all" else disk["llvm-closure-share"]
        yield from _disk(
            disk_free, disk["llvm-build"][settings.build_type] * share + disk["llvm-sources"], where
        )


def resources(machine: Machine, jobs: Jobs, debug_info: DebugInfo) -> Iterator[Problem]:
    """Check that the jobs fit into memory."""
    need = configs.load("resources")["memory"]
    for kind, count, each in (
        ("compile", jobs.compile, need["compile-job"]),
        ("link", jobs.link, need["link-job"][debug_info]),
    ):
        needed = count * each
        if needed > machine.memory_gib:
            yield Problem(
                "memory",
                f"{count} {kind} jobs at {each:g} GiB need {needed:.0f} GiB; "
                f"this machine (or its cgroup) has {machine.memory_gib:.1f} GiB",
                "use fewer jobs: --jobs N, or link-jobs in the env file's [toolchain]",
                # The estimates are for the worst file; up to twice the memory, swap and luck may do.
                fatal=needed > 2 * machine.memory_gib,
            )


def _disk(free: float, need: float, where: Path) -> Iterator[Problem]:
    if free < need:
        yield Problem(
            "disk",
            f"the build needs about {need:.0f} GiB; {free:.1f} GiB are free in {where}",
            "free some space, or set TRITONSMITH_HOME to a folder on a larger disk",
        )


def _llvm(inputs: Inputs, request: LlvmRequest) -> Iterator[Problem]:
    tree = inputs.llvm
    install = next(iter(request.remedy(tree)), "install the missing parts")
    for missing in request.lacks(tree):
        yield Problem(
            "llvm-lacks",
            f"LLVM {tree.version} in {tree.prefix} lacks {missing}",
            f"{install}, or build an LLVM: invoke setup-mlir --provider source",
        )
    # Not fatal: the sources of a pin compile with many neighbouring LLVMs, and the suspects show within a
    # minute whether this is one.
    fit = request.fit(tree.commit)
    if fit != "pin" and request.pin:
        about = f"commit {tree.commit[:12]}" if tree.commit else "a distribution's build without a commit"
        yield Problem(
            "llvm-not-the-pin",
            f"LLVM {tree.version} in {tree.prefix} ({about}) is not the pin {request.describe_pin()}",
            "files that use a changed API will fail; invoke setup-mlir provides the pin",
            fatal=False,
        )


def _tools(compilers: Compilers, machine: Machine, *, linker: str) -> Iterator[Problem]:
    if compilers.cxx is None:
        yield Problem(
            "no-compiler",
            "clang++ is not on PATH",
            "install clang (Debian: apt install clang), or set one: [toolchain] compiler",
        )
    elif compilers.cc is None:
        yield Problem(
            "no-compiler",
            f"there is no C compiler next to {compilers.cxx.path}",
            "install the complete compiler package",
        )
    if compilers.linker is None and linker != "default" and machine.system != "Darwin":
        yield Problem(
            "no-linker",
            f"{linker} is not on PATH",
            f'install {linker} (Debian: apt install {linker}), or set linker = "default"',
        )


def _newer_compiler(inputs: Inputs) -> Iterator[Problem]:
    """Yield a warning if the compiler is newer than the checkout."""
    cxx, committed = inputs.compilers.cxx, inputs.checkout.committed
    # Upstream builds with -Werror, and each clang has warnings that its sources of that day
    # have never met (triton#7859).
    released = checkout.clang_released(cxx.major) if cxx and "clang" in cxx.path.name else None
    apple = inputs.machine.system == "Darwin"  # Apple has its own version numbers for clang
    if cxx is None or released is None or apple or not committed or committed[:10] >= released:
        return
    strict = inputs.settings.triton.werror
    yield Problem(
        "werror",
        f"clang {cxx.version} is newer (released {released}) than this checkout ({committed[:10]}), "
        f"and Triton is built with -Werror",
        "remove werror = true from the env file, or use an older compiler: [toolchain] compiler"
        if strict
        else f"these new warnings are not treated as errors: {' '.join(checkout.relaxed_warnings())}",
        fatal=False,
    )


def _lit(inputs: Inputs, version: str) -> Iterator[Problem]:
    requirement = checkout.lit_requirement()
    if version and not SpecifierSet(requirement.removeprefix("lit")).contains(version):
        pip = f"{inputs.env.python} -m pip install {shlex.quote(requirement)}"
        what = f"lit {version} in {inputs.env.venv} rejects Triton's test/lit.cfg.py"
        yield Problem("lit", what, pip, fatal=False)


def _cmake_version(inputs: Inputs) -> Iterator[Problem]:
    requirement = next((name for name in inputs.checkout.requires if name.startswith("cmake")), "cmake")
    specifier = SpecifierSet(requirement.removeprefix("cmake"))
    version = inputs.tools.cmake_version
    if version and not specifier.contains(version):
        yield Problem(
            "cmake-version",
            f"CMake is {version}; this Triton requires {requirement}",
            "run ./bootstrap, which installs a suitable CMake",
        )


def _python(inputs: Inputs) -> Iterator[Problem]:
    python, (oldest, newest) = inputs.python, inputs.checkout.python
    if not python.headers:
        yield Problem(
            "python-headers",
            f"Python.h is missing for {python.executable} ({python.include})",
            f"install it (Debian: apt install python{python.minor}-dev)",
        )
    # Upstream builds wheels for these versions; its sources may compile with others.
    minor = int(python.minor.split(".")[1])
    if not int(oldest.split(".")[1]) <= minor <= int(newest.split(".")[1]):
        yield Problem(
            "python-version",
            f"Python {python.version}; this Triton supports {oldest} to {newest}",
            "set another interpreter: [python] interpreter",
            fatal=False,
        )


def _backends(inputs: Inputs) -> Iterator[Problem]:
    folder = inputs.checkout.root / "third_party"
    if not inputs.checkout.has("nvidia-backend"):
        return
    for name in inputs.settings.triton.backends:
        if not (folder / name).is_dir():
            yield Problem(
                "backend", f"this checkout has no backend {name!r} ({folder / name})", "correct --backends"
            )


def _bin(inputs: Inputs, targets: tuple[str, ...]) -> Iterator[Problem]:
    """Check that no program of bin/ includes the headers of a backend that is left out."""
    backends, root = inputs.settings.triton.backends, inputs.checkout.root
    missing = [
        name for name in _OWN_BACKENDS if inputs.checkout.has(f"bin-needs-{name}") and name not in backends
    ]
    # By the sources and not by a list: programs came and went with the eras.
    sources = [path for path in (root / "bin").glob("*.cpp") if _REGISTERS in untrusted.read_bytes(path)]
    programs = set(targets) & {path.stem for path in sources}
    if missing and (suspects.builds_all(targets) or programs):
        what = ", ".join(sorted(programs)) or "triton-opt and the other programs"
        yield Problem(
            "bin-backends",
            f"{what} will not compile: bin/RegisterTritonDialects.h includes headers of "
            f"{' and '.join(missing)}, which --backends {','.join(backends)} leaves out",
            "to build only libtriton: build-triton with --target triton; to build everything: "
            f"--backends {','.join((*backends, *missing))}",
        )


def _nvidia(inputs: Inputs) -> Iterator[Problem]:
    """Check that the CUDA headers exist or a step of the plan provides them."""
    if not inputs.checkout.has("nvidia-backend") or "nvidia" not in inputs.settings.triton.backends:
        return
    names = {part.name for part in recipe.components(inputs.checkout, inputs.workspace, proton=False)}
    header = inputs.checkout.root / "third_party" / "nvidia" / "backend" / "include" / "cuda.h"
    if "cudart" not in names and not header.is_file():
        yield Problem(
            "cuda-headers",
            f"{header} is missing, and the checkout does not name a version to install",
            "copy the CUDA headers there",
        )


def setup_py(inputs: Inputs, place: DatabaseLink) -> Iterator[Problem]:
    """Yield problems that upstream's setup.py would cause; `place` is the path of compile_commands.json."""
    # setup.py knows no targets, and builds everything.
    if inputs.settings.triton.targets:
        yield from _bin(inputs, ())
    # Both came with 3.5: the variable, and `update_symlink`, which deletes a folder in
    # its way and fails on a file.
    links_itself = inputs.checkout.has("build-dir-variable")
    if links_itself and place.state in ("folder", "file"):
        does = "delete" if place.state == "folder" else "fail on"
        yield Problem(
            "compile-commands",
            f"setup.py would {does} the {place.state} {place.path} (upstream's update_symlink)",
            "move it away, or run `invoke link-compile-commands`, which keeps a plain file as a backup",
        )


@dataclass(frozen=True)
class PreparedBuild:
    """A plan that is ready to be shown or run.

    Attributes:
        plan: the plan.
        warnings: problems that may occur later.
        receipt: inputs of the build, for the receipt.
        beside: folder that gets a copy of the receipt, if any.
        llvm_in_words: description of the LLVM if it is known not to be the pin; empty otherwise.
        pin_in_words: description of the pin.
        checkout: Triton's checkout, if Triton is built.
        inputs: facts and settings of a build of Triton.
        store_update: changes to the store of LLVMs; None for none.
    """

    plan: Plan
    warnings: tuple[str, ...]
    receipt: dict[str, Any]
    beside: Path | None = None
    llvm_in_words: str = ""
    pin_in_words: str = ""
    store_update: StoreEntryUpdate | None = None
    checkout: TritonCheckout | None = None
    inputs: Inputs | None = None
