"""The trees that `setup-mlir` stores: upstream's archive, or the part of LLVM that a Triton needs.

Triton can configure against an LLVM that is configured and not yet built; its graph then names every file of
LLVM that it uses. So the list always comes from the current checkout, and a later request for more builds
only the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tritonsmith.build import cmake
from tritonsmith.build.llvm.source import PHASE_BUILD, BuildTools, SourceTree
from tritonsmith.build.store import describe_tree, store
from tritonsmith.build.store.describe_tree import Known
from tritonsmith.build.store.entry import Abi, Closure, Key, LlvmNeeds, StoreManifest
from tritonsmith.build.store.store import Store, User
from tritonsmith.core import configs
from tritonsmith.core.envs.settings import Scope, Settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.plan import BuildUsed, Download, Extract, Plan, Remove, Step, digest, stamped
from tritonsmith.core.text import version_key
from tritonsmith.facts import git, llvm_tree
from tritonsmith.facts.checkout import TritonCheckout
from tritonsmith.facts.llvm_tree import LlvmRequest, LlvmTree
from tritonsmith.facts.machine import Machine

PHASE_DOWNLOAD = "download LLVM"
PHASE_EXTRACT = "extract LLVM"
PHASE_PROBE = "what Triton uses of LLVM"
_PYTHON_MODULE = "triton"  # CMake's target of libtriton.so, in every era


@dataclass(frozen=True)
class PrebuiltArchive:
    """Upstream's archive for one pin and one kind of machine.

    Attributes:
        url: expected URL.
        sha256: its checksum; empty where upstream publishes none.
        suffix: `ubuntu-x64` ...
        note: a reason why it may not run here or why another suffix was chosen; may be empty.
    """

    url: str
    sha256: str
    suffix: str
    note: str = ""

    @property
    def name(self) -> str:
        """The file name without its extension."""
        return self.url.rsplit("/", 1)[-1].removesuffix(".tar.gz")


def suffix_for(machine: Machine, version: str) -> str:
    """Return upstream's suffix for a machine, by its own rules; empty where it builds none.

    Old versions of Triton had one more rule.
    """
    if machine.system == "Linux" and not machine.glibc:
        return ""  # musl: every build links glibc
    for rule in configs.load("triton-eras")["prebuilt"]["suffix"]:
        if _matches(rule, machine, version):
            return str(rule["suffix"])
    return ""


def archive_for(request: LlvmRequest, machine: Machine, base_url: str = "") -> PrebuiltArchive | None:
    """Return the archive for a request; None without a pin, or if none is built for this machine.

    `base_url` is a mirror with the same files; empty for upstream's.
    """
    # Upstream's rules are data: which distributions get which archive has changed with its releases.
    suffix = suffix_for(machine, request.version)
    if not suffix or request.pin is None:
        return None
    table = configs.load("triton-eras")["prebuilt"]
    sums = dict(request.pin.sha256)
    note = ""
    abi = table["abi"].get(suffix)
    # Upstream chooses the suffix by the distribution's name, and its ubuntu archive needs a newer glibc
    # than some Ubuntus have (triton#7088).
    if abi and _too_old(machine, abi):
        note = (
            f"the {suffix} build needs glibc {abi['glibc']} and GLIBCXX_{abi['glibcxx']}, "
            f"this machine has glibc {machine.glibc or '?'} and GLIBCXX_{machine.glibcxx or '?'}; "
            f"using {abi['instead']} instead"
        )
        suffix = abi["instead"]
    build = f"-{request.pin.build}" if request.pin.build is not None else ""
    url = str(table["url"]).format(hash8=request.pin.commit[:8], suffix=suffix, build=build)
    if base_url:
        url = f"{base_url.rstrip('/')}/{url.rsplit('/', 1)[-1]}"
    return PrebuiltArchive(url, sums.get(suffix, "") or request.settings.sha256, suffix, note)


def plan(archive: PrebuiltArchive, workspace: Workspace, store: Store) -> Plan:
    """Return the recipe: download, verify, extract, and rename to the final name last."""
    target = store.path(archive.name)
    file = workspace.downloads / archive.url.rsplit("/", 1)[-1]
    steps = stamped(
        (
            Download(archive.url, archive.sha256, file, phase=PHASE_DOWNLOAD),
            # Without a stamp the content of a folder of this name is unknown.
            Remove((target,), store.owner, phase=PHASE_EXTRACT),
            Extract(file, target, store.owner, phase=PHASE_EXTRACT),
        ),
        store.root / f".{archive.name}.done",
        target,
    )
    return Plan(f"upstream's prebuilt LLVM in {target}", steps, (archive.note,) if archive.note else ())


def at_hand(archive: PrebuiltArchive, workspace: Workspace, store: Store) -> bool:
    """Report whether the archive is already downloaded or unpacked, so that no server is needed."""
    file = workspace.downloads / archive.url.rsplit("/", 1)[-1]
    steps = plan(archive, workspace, store).steps
    return file.is_file() or all(step.stamp and step.stamp.holds() for step in steps)


def _matches(rule: dict[str, Any], machine: Machine, version: str) -> bool:
    if (rule["system"], rule["machine"]) != (machine.system, machine.arch):
        return False
    if "os" in rule and rule["os"] != machine.os_id:
        return False
    if "until" in rule and version_key(version)[:2] > version_key(rule["until"]):
        return False
    return "glibc" not in rule or version_key(machine.glibc) <= version_key(rule["glibc"])


def _too_old(machine: Machine, abi: dict[str, str]) -> bool:
    glibcxx = version_key(machine.glibcxx)
    return version_key(machine.glibc) < version_key(abi["glibc"]) or (
        bool(glibcxx) and glibcxx < version_key(abi["glibcxx"])
    )


@dataclass(frozen=True)
class StoreEntryUpdate:
    """The changes of one run to the store: `user` uses an entry that is built, extended or already complete.

    `describe` reads the finished tree; None for an entry that stays as it is.
    """

    store: Store
    entry: str
    user: User
    describe: Callable[[], StoreManifest] | None = None

    def hold(self, purpose: str) -> AbstractContextManager[None]:
        """Lock the entry if the run changes something in it."""
        return self.store.hold(self.entry, purpose=purpose) if self.describe else nullcontext()

    def announce(self) -> tuple[Step, ...]:
        """Register the user of an entry that is about to be built, which may take several runs."""
        # A build takes hours, perhaps in several runs, between which `store --gc` must not delete it.
        return store.announce_user(self.store, self.user) if self.describe else ()

    def steps(self) -> tuple[Step, ...]:
        """Return the steps that publish the entry and register its user; none in a read-only store."""
        if not self.store.writable:
            return ()
        published = self.store.publish(self.describe()) if self.describe else ()
        return (*published, *store.register_user(self.store, self.user))


def wanted(request: LlvmRequest, machine: Machine, triton: str) -> LlvmNeeds:
    """Return this Triton's requirements on an entry; `triton` is the `closure.key` of its closure."""
    settings = request.settings
    return LlvmNeeds(
        commit=request.pin.commit if request.pin else "",
        any_commit=settings.any_commit,
        build_type=settings.build_type,
        assertions=settings.assertions,
        debug_info=settings.debug_info,
        targets=frozenset(settings.targets),
        packages=frozenset(request.projects) & {"mlir", "lld", "clang"},
        tools=frozenset(request.tools),
        scope=settings.scope,
        triton=triton,
        shared=settings.shared,
        build=request.pin.build if request.pin and not settings.any_commit else None,
        machine=Abi(machine.system, machine.arch, machine.glibc, machine.glibcxx),
    )


def built(
    store: Store, key: Key, request: LlvmRequest, machine: Machine, triton: str, tree: SourceTree
) -> Callable[[], StoreManifest]:
    """Return a function that describes the build tree of a key once it is built."""

    def describe_it() -> StoreManifest:
        known = Known(
            commit=tree.commit,
            diff=(git.changes(tree.path) or "unknown") if tree.dirty else "",
            projects=request.projects,
            scope=_scope(request),
            closures=_closures(request, triton),
            source=str(tree.path),
        )
        # Closures of an earlier run count only if its manifest still exists: it is removed if flags or
        # sources change, and then only what this run requested is rebuilt.
        before = store.entry(key.name).manifest
        return describe_tree.built(
            key, llvm_tree.read(store.path(key.name)), machine, known=known, before=before
        )

    return describe_it


def grown(
    store: Store, manifest: StoreManifest, request: LlvmRequest, triton: str
) -> Callable[[], StoreManifest]:
    """Return a function that updates an entry's description once more of it is built."""

    def describe_it() -> StoreManifest:
        # Another environment may have extended the entry while this one was building.
        now = store.entry(manifest.name).manifest or manifest
        prefix = store.path(now.name)
        tree = llvm_tree.read(prefix)
        return replace(
            now,
            tools=tuple(sorted(tree.tools)),
            libraries=tuple(path.name for path in describe_tree.libraries(prefix)),
            scope="all" if "all" in (now.scope, _scope(request)) else now.scope,
            closures=tuple(dict.fromkeys((*now.closures, *_closures(request, triton)))),
        )

    return describe_it


def _scope(request: LlvmRequest) -> Scope:
    """Return the requested scope; single targets are less than any scope."""
    return "python-module" if request.settings.ninja_targets else request.settings.scope


def _closures(request: LlvmRequest, triton: str) -> tuple[Closure, ...]:
    settings = request.settings
    part = settings.scope != "all" and not settings.ninja_targets
    return (Closure(triton, settings.scope),) if part and triton else ()


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
    # No list of libraries is kept by hand: Triton's own build.ninja names them, in every era.
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
    """Return a key that determines a checkout's needs, options included; empty where only Ninja can tell."""
    triton = settings.triton
    # Changed sources may need more of LLVM tomorrow: then only Ninja can tell, each time.
    # The same holds for sources that lie in several places, or are not under git.
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
