"""The provider `source`: LLVM from git, from a checkout, or from a tarball, and its configure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tritonsmith import configs
from tritonsmith.build import cmake
from tritonsmith.build.cmake import CmakeTools
from tritonsmith.build.jobs import Jobs
from tritonsmith.build.llvm_request import LlvmRequest
from tritonsmith.envs.schema import LlvmSettings
from tritonsmith.envs.workspace import Workspace
from tritonsmith.errors import FactError, UsageError
from tritonsmith.facts import llvm_tree
from tritonsmith.facts.machine import Machine
from tritonsmith.facts.tools import Compilers
from tritonsmith.plan import Download, Extract, GitFetch, MakeDir, Plan, Remove, Run, Step
from tritonsmith.plan.steps import digest, stamped

_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
_FULL = 40  # hex digits of a commit
_SCHEMES = ("http://", "https://", "file://", "ssh://", "git://", "git@")
PHASE_SOURCES = "LLVM sources"
PHASE_CONFIGURE = "configure LLVM"
PHASE_BUILD = "build LLVM"


@dataclass(frozen=True)
class LlvmSource:
    """Where LLVM's sources come from.

    Attributes:
        kind: a git remote, a checkout on this disk, or a tarball.
        location: URL or absolute path.
        commit: HEAD of a checkout; empty otherwise.
    """

    kind: Literal["git", "checkout", "tarball"]
    location: str
    commit: str = ""


def locate(source: str) -> LlvmSource:
    """Tell what `[llvm] source` names.

    Args:
        source: path or URL; empty for upstream's repository.

    Raises:
        FactError: a path where there is nothing of use.
    """
    if not source:
        return LlvmSource("git", str(configs.load("triton-eras")["llvm-source"]["repositories"][0]))
    if source.startswith(_SCHEMES):
        return LlvmSource("tarball" if source.endswith(_ARCHIVES) else "git", source)
    path = Path(source).expanduser().absolute()
    if (path / "llvm" / "CMakeLists.txt").is_file():
        return LlvmSource("checkout", str(path), llvm_tree.source_commit(path))
    if path.is_file() and path.name.endswith(_ARCHIVES):
        return LlvmSource("tarball", str(path))
    if (path / "HEAD").is_file() or (path / ".git").exists():
        return LlvmSource("git", str(path))
    raise FactError(
        "these are no sources of LLVM",
        where=path,
        why="neither a checkout (llvm/CMakeLists.txt), nor a git repository, nor a tar archive",
        hints=["name a checkout, a git URL, or a tarball: --llvm-source PATH_OR_URL"],
    )


@dataclass(frozen=True)
class SourceTree:
    """Sources that will be there once the steps have run.

    Attributes:
        path: folder that holds `llvm/`.
        commit: as far as it is known.
        steps: what brings them there.
    """

    path: Path
    commit: str
    steps: tuple[Step, ...]


def obtain(source: LlvmSource, request: LlvmRequest, workspace: Workspace) -> SourceTree:
    """Steps that bring the sources at the pin. A tree of the user's is read, never changed.

    Raises:
        UsageError: there is no pin to fetch, or a tarball's URL has no checksum.
    """
    if source.kind == "tarball":
        return _tarball(source, request, workspace)
    if source.kind == "checkout" and (request.settings.any_commit or request.fit(source.commit) == "pin"):
        return SourceTree(Path(source.location), source.commit, ())
    if request.pin is None:
        raise UsageError(
            "nothing says which commit of LLVM is wanted",
            hints=[
                "stand in a Triton checkout, or name one: --source PATH",
                "with LLVM sources of your own: --llvm-source PATH --any-commit",
            ],
        )
    return _worktree(source, request, request.pin.commit, workspace)


def _worktree(source: LlvmSource, request: LlvmRequest, commit: str, workspace: Workspace) -> SourceTree:
    path = workspace.sources / f"llvm-{commit[:12]}"
    steps: list[Step] = []
    if source.kind == "checkout":
        repository = Path(source.location)
    else:
        if len(commit) < _FULL:
            raise UsageError(
                "a remote gives a commit only by all of its digits",
                why=f"the pin is {request.describe_pin()}",
                hints=["name a clone of LLVM that has it: --llvm-source PATH"],
            )
        repository = workspace.sources / "llvm-project"
        upstream = configs.load("triton-eras")["llvm-source"]["repositories"]
        urls = tuple(upstream) if source.location in upstream else (source.location,)
        steps.append(GitFetch(repository, urls, commit, phase=PHASE_SOURCES))
    git = ("git", "-C", str(path))
    add = (
        "git",
        "-C",
        str(repository),
        "worktree",
        "add",
        "--force",  # once for a path that git knows and that is gone,
        "--force",  # and once more where an interrupted `add` left its lock
        "--detach",
        "--no-checkout",
        str(path),
        commit,
    )
    steps += [
        MakeDir(workspace.sources, phase=PHASE_SOURCES),
        Remove((path,), workspace.root, phase=PHASE_SOURCES),  # half a worktree of an interrupted run
        Run(add, cwd=workspace.sources, phase=PHASE_SOURCES),
        Run((*git, "sparse-checkout", "set", *_folders(request)), cwd=workspace.sources, phase=PHASE_SOURCES),
        Run((*git, "checkout", "--force", "--detach", commit), cwd=workspace.sources, phase=PHASE_SOURCES),
    ]
    return SourceTree(path, commit, stamped(steps, workspace.sources / f".llvm-{commit[:12]}.done", path))


def _tarball(source: LlvmSource, request: LlvmRequest, workspace: Workspace) -> SourceTree:
    sha256 = request.settings.sha256
    steps: list[Step] = []
    if source.location.startswith(_SCHEMES):
        if not sha256:
            raise UsageError(
                "a tarball from a URL needs its checksum",
                where=source.location,
                hints=["add --sha256 HEX (or sha256 = in the env file's [llvm])"],
            )
        archive = workspace.downloads / source.location.rsplit("/", 1)[-1]
        steps.append(Download(source.location, sha256, archive, phase=PHASE_SOURCES))
    else:
        archive = Path(source.location)
    folders = _folders(request)
    stem = archive.name.split(".tar")[0].removesuffix(".orig")
    path = workspace.sources / f"{stem}-{digest(*folders)[:8]}"
    steps.append(Remove((path,), workspace.root, phase=PHASE_SOURCES))
    steps.append(
        Extract(archive, path, workspace.root, only=folders, sha256=sha256 or None, phase=PHASE_SOURCES)
    )
    return SourceTree(path, "", stamped(steps, workspace.sources / f".{path.name}.done", path))


def _folders(request: LlvmRequest) -> tuple[str, ...]:
    table = configs.load("triton-eras")["llvm-source"]
    extra = [name for project in request.projects for name in table["project-folders"].get(project, ())]
    return (*table["folders"], *extra)


def build_dir(tree: SourceTree, request: LlvmRequest, workspace: Workspace) -> Path:
    """Build folder for these sources and settings: readable, and different where the result is."""
    settings = request.settings
    name = tree.commit[:12] or tree.path.name
    asserts = "-asserts" if settings.assertions else ""
    key = digest(request.projects, settings.targets, settings.debug_info, str(tree.path))[:8]
    return workspace.llvm / f"{name}-{settings.build_type}{asserts}-{key}"


def plan(
    tree: SourceTree,
    request: LlvmRequest,
    workspace: Workspace,
    machine: Machine,
    compilers: Compilers,
    tools: CmakeTools,
    jobs: Jobs,
    *,
    again: bool = False,
) -> Plan:
    """The recipe: sources, configure, build.

    Args:
        tree: from `obtain`.
        request: what for.
        workspace: where the build folder lies.
        machine: system and architecture.
        compilers: what compiles and links.
        tools: CMake and Ninja.
        jobs: bounds of parallel work.
        again: configure even if nothing changed.
    """
    build = build_dir(tree, request, workspace)
    variables = cache_variables(request, machine, compilers, jobs)
    configure = cmake.configure(
        tree.path / "llvm", build, variables, tools, phase=PHASE_CONFIGURE, again=again
    )
    targets = request.settings.ninja_targets
    compile_ = cmake.build_targets(build, tools, targets=targets, jobs=jobs.compile, phase=PHASE_BUILD)
    make = MakeDir(build, phase=PHASE_CONFIGURE)
    return Plan(f"LLVM/MLIR from source in {build}", (*tree.steps, make, *configure, compile_))


def cache_variables(
    request: LlvmRequest, machine: Machine, compilers: Compilers, jobs: Jobs
) -> dict[str, str]:
    """LLVM's CMake variables: the blog recipe's, and what each era needs more."""
    settings = request.settings
    split = (
        settings.debug_info == "split" and machine.system == "Linux" and settings.build_type in _WITH_SYMBOLS
    )
    variables = {
        "CMAKE_BUILD_TYPE": settings.build_type,
        "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
        **cmake.compiler_variables(
            compilers, system=machine.system, flags=_flags(settings), linker_flags=False
        ),
        "LLVM_ENABLE_PROJECTS": ";".join(request.projects),
        "LLVM_TARGETS_TO_BUILD": ";".join(settings.targets),
        "LLVM_ENABLE_ASSERTIONS": _on(settings.assertions),
        "LLVM_OPTIMIZED_TABLEGEN": _on(settings.build_type == "Debug" or settings.assertions),
        "LLVM_PARALLEL_COMPILE_JOBS": str(jobs.compile),
        "LLVM_PARALLEL_LINK_JOBS": str(jobs.link),
        "LLVM_USE_SPLIT_DWARF": _on(split),
        "LLVM_INSTALL_UTILS": "ON",  # FileCheck, which Triton's build copies (triton#10616)
        "LLVM_BUILD_TESTS": "OFF",
        "LLVM_INCLUDE_BENCHMARKS": "OFF",
        "LLVM_INCLUDE_DOCS": "OFF",
        "LLVM_INCLUDE_EXAMPLES": "OFF",
        "LLVM_ENABLE_LIBXML2": "OFF",
        "LLVM_ENABLE_TERMINFO": "OFF",
        "LLVM_ENABLE_ZSTD": "OFF",
        "MLIR_ENABLE_BINDINGS_PYTHON": "OFF",
    }
    if compilers.linker and machine.system != "Darwin":
        variables["LLVM_USE_LINKER"] = cmake.linker_name(compilers)
    return variables


_WITH_SYMBOLS = ("Debug", "RelWithDebInfo")


def _flags(settings: LlvmSettings) -> str:
    return {"split": "", "full": "", "lines": "-gline-tables-only", "none": "-g0"}[settings.debug_info]


def _on(value: bool) -> str:
    return "ON" if value else "OFF"
