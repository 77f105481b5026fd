"""The provider `source`: LLVM from git, from a checkout, or from a tarball, and its configure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from tritonsmith.build import cmake, compiler_cache, precompiled_headers
from tritonsmith.build.cmake import CmakeTools, Jobs
from tritonsmith.build.compiler_cache import Folders
from tritonsmith.build.store.entry import Compiler, Key
from tritonsmith.compiler import debugger_init
from tritonsmith.core import configs
from tritonsmith.core.envs.settings import SPLIT_DWARF, CacheSettings, LlvmSettings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import (
    Download,
    Extract,
    GitFetch,
    MakeDir,
    Remove,
    Run,
    Step,
    digest,
    stamped,
)
from tritonsmith.core.plan.steps.fetch import GitRemote
from tritonsmith.facts import git as facts_git
from tritonsmith.facts.llvm_tree import LlvmRequest
from tritonsmith.facts.machine import Machine
from tritonsmith.facts.tools import Compilers

_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
_FULL = 40  # hex digits of a commit
_SCHEMES = ("http://", "https://", "file://", "ssh://", "git://", "git@")
PHASE_SOURCES = "LLVM sources"
PHASE_CONFIGURE = "configure LLVM"
PHASE_BUILD = "build LLVM"
_TARGET_OPTIONS = Path(__file__).with_name("target_options.cmake")


@dataclass(frozen=True)
class LlvmSource:
    """The origin of LLVM's sources.

    Attributes:
        kind: a git remote, a checkout on this disk, or a tarball.
        location: URL or absolute path.
        commit: HEAD of a checkout; empty otherwise.
        dirty: tracked files of that checkout differ from it.
        problem: the reason why git does not tell the commit of a repository.
    """

    kind: Literal["git", "checkout", "tarball"]
    location: str
    commit: str = ""
    dirty: bool = False
    problem: str = ""


def locate(source: str) -> LlvmSource:
    """Classify the value of `[llvm] source`: a path or URL; empty for upstream's repository.

    Raises:
        FactError: the path has no usable sources.
    """
    if not source:
        return LlvmSource("git", str(configs.load("triton-eras")["llvm-source"]["repositories"][0]))
    if source.startswith(_SCHEMES):
        return LlvmSource("tarball" if urlsplit(source).path.endswith(_ARCHIVES) else "git", source)
    path = Path(source).expanduser().absolute()
    if (path / "llvm" / "CMakeLists.txt").is_file():
        head = facts_git.head(path)
        return LlvmSource("checkout", str(path), head.commit, head.dirty, head.problem)
    if path.is_file() and path.name.endswith(_ARCHIVES):
        return LlvmSource("tarball", str(path))
    if (path / "HEAD").is_file() or (path / ".git").exists():
        return LlvmSource("git", str(path))
    raise FactError(
        "not a source tree of LLVM",
        where=path,
        why="this is neither a checkout (llvm/CMakeLists.txt) nor a git repository nor a tar archive",
        hints=["give a checkout, a git URL, or a tarball: --llvm-source PATH_OR_URL"],
    )


@dataclass(frozen=True)
class SourceTree:
    """Sources that exist once the steps have run.

    Attributes:
        path: folder that holds `llvm/`.
        commit: their commit, as far as it is known.
        steps: steps that fetch them.
        dirty: the user changed them.
        archive: the tarball's checksum, or its name and size; empty for others.
    """

    path: Path
    commit: str
    steps: tuple[Step, ...]
    dirty: bool = False
    archive: str = ""


def obtain(source: LlvmSource, request: LlvmRequest, workspace: Workspace) -> SourceTree:
    """Return the steps that fetch the sources at the pin.

    Raises:
        UsageError: there is no pin to fetch, the commit of the sources is unknown, or a tarball's URL has no
            checksum.
    """
    if source.kind == "tarball":
        return _tarball(source, request, workspace)
    # The user's own tree is read, and never moved to another commit: elsewhere it lends its objects only.
    if source.kind == "checkout" and (request.settings.any_commit or request.fit(source.commit) == "pin"):
        return SourceTree(Path(source.location), source.commit, (), source.dirty)
    if source.kind == "checkout" and not source.commit:
        raise UsageError(
            "the commit of these sources is unknown",
            where=source.location,
            why=source.problem or "there is no git repository, as if a tarball had been unpacked here",
            hints=["build them as they are: --any-commit", "or give the tarball: --llvm-source FILE.tar.xz"],
        )
    if request.pin is None:
        raise UsageError(
            "the wanted LLVM commit is unknown",
            hints=[
                "run this in a Triton checkout, or give one: --source PATH",
                "or use your own LLVM sources: --llvm-source PATH --any-commit",
            ],
        )
    return _worktree(source, request, request.pin.commit, workspace)


def _worktree(source: LlvmSource, request: LlvmRequest, commit: str, workspace: Workspace) -> SourceTree:
    path = workspace.sources / f"llvm-{commit[:12]}"
    steps: list[Step] = []
    # A blobless fetch brings no contents: the checkout fetches them, and needs the login again.
    login: tuple[tuple[str, str], ...] = ()
    if source.kind == "checkout":
        repository = Path(source.location)
    else:
        if len(commit) < _FULL:
            raise UsageError(
                "fetching a commit from a remote needs its full hash",
                why=f"the pin is {request.describe_pin()}",
                hints=["give a clone of LLVM that contains the commit: --llvm-source PATH"],
            )
        repository = workspace.sources / "llvm-project"
        upstream = configs.load("triton-eras")["llvm-source"]["repositories"]
        urls = tuple(upstream) if source.location in upstream else (source.location,)
        steps.append(GitFetch(repository, urls, commit, phase=PHASE_SOURCES))
        login = GitRemote.of(source.location).env
    git = ("git", "-C", str(path))
    # `--force` once for a path that git lists but that is gone, twice if an interrupted `add` left it
    # locked. Without a checkout, so that only the folders that are needed are written.
    add = ("git", "-C", str(repository), "worktree", "add", "--force", "--force", "--detach", "--no-checkout")
    steps += [
        MakeDir(workspace.sources, phase=PHASE_SOURCES),
        Remove((path,), workspace.root, phase=PHASE_SOURCES),  # half a worktree of an interrupted run
        *(
            Run(argv, cwd=workspace.sources, env=login, phase=PHASE_SOURCES)
            for argv in (
                (*add, str(path), commit),
                (*git, "sparse-checkout", "set", *_folders(request)),
                (*git, "checkout", "--force", "--detach", commit),
            )
        ),
    ]
    return SourceTree(path, commit, stamped(steps, workspace.sources / f".llvm-{commit[:12]}.done", path))


def _tarball(source: LlvmSource, request: LlvmRequest, workspace: Workspace) -> SourceTree:
    sha256 = request.settings.sha256
    steps: list[Step] = []
    if source.location.startswith(_SCHEMES):
        if not sha256:
            raise UsageError(
                "a tarball from a URL needs a checksum",
                where=source.location,
                hints=["add --sha256 HEX (or sha256 = in the env file's [llvm])"],
            )
        archive = workspace.downloads / urlsplit(source.location).path.rsplit("/", 1)[-1]
        steps.append(Download(source.location, sha256, archive, phase=PHASE_SOURCES))
    else:
        archive = Path(source.location)
    folders = _folders(request)
    stem = archive.name.split(".tar")[0].removesuffix(".orig")
    identity = sha256 or _weak_identity(archive)
    path = workspace.sources / f"{stem}-{digest(identity, *folders)[:8]}"
    steps.append(Remove((path,), workspace.root, phase=PHASE_SOURCES))
    steps.append(
        Extract(archive, path, workspace.root, only=folders, sha256=sha256 or None, phase=PHASE_SOURCES)
    )
    unpack = stamped(steps, workspace.sources / f".{path.name}.done", path)
    return SourceTree(path, "", unpack, archive=identity)


def _weak_identity(archive: Path) -> str:
    """Return a substitute for the checksum of a tarball that has none."""
    return f"{archive.name}:{archive.stat().st_size if archive.is_file() else 0}"


def _folders(request: LlvmRequest) -> tuple[str, ...]:
    table = configs.load("triton-eras")["llvm-source"]
    extra = [name for project in request.projects for name in table["project-folders"].get(project, ())]
    return (*table["folders"], *extra)


@dataclass(frozen=True)
class BuildTools:
    """The tools and facts of an LLVM build; `precompiled` injects precompiled headers."""

    machine: Machine
    compilers: Compilers
    tools: CmakeTools
    jobs: Jobs
    precompiled: bool = False
    cache: CacheSettings = field(default_factory=CacheSettings)


def key(tree: SourceTree, request: LlvmRequest, means: BuildTools) -> Key:
    """Return the key of this build in the store. The scope is not part of it: a build grows in place."""
    settings, compilers = request.settings, means.compilers
    debug = configs.load("llvm-options")["debug-info"]
    kind = settings.debug_info if settings.build_type in debug["types"] else "none"
    options = {
        # With the compiler's options: before there were any, `lines` and `none` had all debug information.
        "debug-info": " ".join((kind, *debug["less"].get(kind, ()))),
        "projects": ";".join(request.projects),
        "shared": _on(settings.shared),
        "targets": ";".join(settings.targets),
    }
    if settings.build_type == "Debug" and not settings.optimized_tablegen:
        options["table-generators"] = "as the rest"
    # Modified sources, and those without a commit, have one build whatever their changes are: it is rebuilt
    # in place, as expected of sources under development. A tarball is identified by its content.
    if tree.dirty or not tree.commit:
        options["sources"] = tree.archive or str(tree.path)
    cxx, linker = compilers.cxx, compilers.linker
    return Key(
        source=tree.commit or tree.path.name,
        diff="changed" if tree.dirty else "",
        build_type=settings.build_type,
        assertions=settings.assertions,
        options=tuple(options.items()),
        compiler=Compiler(str(cxx.path), cxx.name, cxx.version) if cxx else Compiler(),
        libstdcxx=means.machine.glibcxx,
        linker=f"{linker.name} {linker.version}" if linker else "",
    )


def configure(
    tree: SourceTree,
    request: LlvmRequest,
    build: Path,
    means: BuildTools,
    *,
    root: Path | None = None,
    again: bool = False,
) -> tuple[Step, ...]:
    """Return the steps that fetch and configure the sources; `build` is in the marked folder `root`.

    `again`: configure even if nothing changed.
    """
    folders = _shared(tree, build, means)
    variables = cache_variables(request, means, folders)
    run = cmake.configure(
        tree.path / "llvm", build, variables, means.tools, phase=PHASE_CONFIGURE, root=root, again=again
    )
    links = (
        *compiler_cache.steps(folders, phase=PHASE_CONFIGURE),
        *debugger_init.steps(build, relative=folders is not None, llvm=tree.path, phase=PHASE_CONFIGURE),
    )
    return (*tree.steps, MakeDir(build, phase=PHASE_CONFIGURE), *run, *links)


def _shared(tree: SourceTree, build: Path, means: BuildTools) -> Folders | None:
    """Return the folders for relative debug info, which only a remote cache needs."""
    # On this machine LLVM is not compiled twice, so only other machines benefit.
    here = Folders(tree.path, build, build)
    shared = compiler_cache.shared(means.compilers, means.machine.system, here)
    return shared if means.cache.remote else None


def cache_variables(
    request: LlvmRequest, means: BuildTools, folders: Folders | None = None
) -> dict[str, str]:
    """Return LLVM's CMake variables: the blog recipe's, those that each era needs, and faster settings."""
    settings, machine, compilers = request.settings, means.machine, means.compilers
    symbols = settings.build_type in configs.load("llvm-options")["debug-info"]["types"]
    split = settings.debug_info in SPLIT_DWARF and machine.system == "Linux" and symbols
    variables = {
        "CMAKE_BUILD_TYPE": settings.build_type,
        "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
        **cmake.compiler_variables(
            compilers,
            system=machine.system,
            launcher=_launcher(means, folders),
            flags=" ".join(compiler_cache.flags(folders)),
            linker_flags=False,
        ),
        "LLVM_ENABLE_PROJECTS": ";".join(request.projects),
        "LLVM_TARGETS_TO_BUILD": ";".join(settings.targets),
        "LLVM_ENABLE_ASSERTIONS": _on(settings.assertions),
        # LLVM's own way builds the table generators twice, optimised in a configuration of their own.
        "LLVM_OPTIMIZED_TABLEGEN": "OFF",
        "LLVM_PARALLEL_COMPILE_JOBS": str(means.jobs.compile),
        "LLVM_PARALLEL_LINK_JOBS": str(means.jobs.link),
        "LLVM_USE_SPLIT_DWARF": _on(split),
        # FileCheck, which Triton's build copies (triton#10616).
        "LLVM_INSTALL_UTILS": "ON",
        "LLVM_BUILD_TESTS": "OFF",
        "LLVM_INCLUDE_BENCHMARKS": "OFF",
        "LLVM_INCLUDE_DOCS": "OFF",
        "LLVM_INCLUDE_EXAMPLES": "OFF",
        # Libraries that LLVM finds by chance on this machine would be needed by libtriton.so on the next.
        "LLVM_ENABLE_LIBXML2": "OFF",
        "LLVM_ENABLE_TERMINFO": "OFF",
        "LLVM_ENABLE_ZSTD": "OFF",
        "MLIR_ENABLE_BINDINGS_PYTHON": "OFF",
        "BUILD_SHARED_LIBS": _on(settings.shared),
    }
    if settings.thin_archives and machine.system == "Linux" and not settings.shared:
        # A thin archive names objects instead of copying them, which saves time and disk. D leaves time
        # stamps out, T makes it thin; GNU's and LLVM's ar both accept this.
        create = "<CMAKE_AR> DqcT <TARGET> <LINK_FLAGS> <OBJECTS>"
        variables |= {"CMAKE_C_ARCHIVE_CREATE": create, "CMAKE_CXX_ARCHIVE_CREATE": create}
    if means.precompiled:
        variables |= precompiled_headers.llvm_variables()
    variables |= _target_options(settings)
    if compilers.linker and machine.system != "Darwin":
        variables["LLVM_USE_LINKER"] = cmake.linker_name(compilers)
    return variables


def _target_options(settings: LlvmSettings) -> dict[str, str]:
    """Return CMake's variables for options of single targets (`target_options.cmake`)."""
    table = configs.load("llvm-options")
    debug = table["debug-info"]
    rules: dict[str, dict[str, Sequence[str]]] = {}
    if settings.optimized_tablegen and settings.build_type == "Debug":
        rules |= table["table-generators"]
    if settings.build_type in debug["types"] and settings.debug_info in debug["less"]:
        if settings.debug_info in debug["whole"]:
            rules["whole"] = {"targets": debug["whole"][settings.debug_info]}
        rules["rest"] = {"targets": [".*"], "options": debug["less"][settings.debug_info]}
    if not rules:
        return {}
    variables = {"CMAKE_PROJECT_INCLUDE": str(_TARGET_OPTIONS), "TRITONSMITH_OPTIONS": ";".join(rules)}
    for name, rule in rules.items():
        variables |= {f"TRITONSMITH_{key.upper()}_{name}": ";".join(value) for key, value in rule.items()}
    return variables


def _launcher(means: BuildTools, folders: Folders | None) -> tuple[str, ...]:
    cached = compiler_cache.launcher(
        means.cache, means.compilers, folders, precompiled_headers=means.precompiled
    )
    # Another LLVM than the one that the headers were tried with may have a source that fails with them.
    return (*precompiled_headers.RETRY, *cached) if means.precompiled else cached


def _on(value: bool) -> str:
    return "ON" if value else "OFF"
