"""The candidates of a bisect, releases, nightlies and commits: how they are made ready and tested.

Neither the user's clone nor a Triton of theirs is changed. Builds have a clone of the tool's own, which
borrows the user's objects and moves from commit to commit, so that Ninja builds only what differs. What was
built leaves that clone; each commit gets an interpreter, its own Python files and links to its libraries.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from tritonsmith.build.llvm import setup_mlir
from tritonsmith.build.store import describe_tree, store
from tritonsmith.build.triton import commands, recipe
from tritonsmith.build.triton.source import TritonSource
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import receipts
from tritonsmith.core.envs.receipts import Session
from tritonsmith.core.envs.settings import Purpose, Settings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError, PreflightError, StepError
from tritonsmith.core.plan import (
    Link,
    MakeDir,
    Move,
    Plan,
    Remove,
    Run,
    Step,
    Write,
    digest,
    files,
    locks,
    stamped,
)
from tritonsmith.core.plan.steps.base import CHUNK
from tritonsmith.facts import checkout as checkouts
from tritonsmith.facts import git, llvm_tree, triton_history
from tritonsmith.facts.checkout import LIT_SITE
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab.bisect import history
from tritonsmith.lab.bisect.search import BUILD, LACKS, LLVM, NATIVE_TREE, READY, TOOLS, LlvmState
from tritonsmith.lab.journal import Observation, Verdict
from tritonsmith.wheels import venv

# Tests of Tritons that are ready: each Triton with its outcome, as they come.
Observations = Generator[tuple[Triton, Observation], None, None]
CandidateTests = Callable[[Sequence[Triton]], Observations]

PHASE = "commit to test"
_BUILD = "build-triton"  # what builds here are to their receipts and notes
_PACKAGE = "python/triton"
# Where upstream's setup.py links what third_party/NAME/PART has: the folder itself, or each one in it.
_LINKED = {
    "backend": f"{_PACKAGE}/backends/{{backend}}",
    "language": f"{_PACKAGE}/language/extra",
    "tools": f"{_PACKAGE}/tools/extra",
}
_BUILT = "build"  # among a commit's files: programs and the configuration of its lit tests
_SHORT = 12  # digits of a commit in a folder's name
_OURS = ("No space left on device", "Disk quota exceeded", "out of memory")  # no fault of the commit


class TritonTests(Protocol):
    """Tests of Tritons: a subject and the question about it."""

    def outcomes(self, tritons: Sequence[Triton]) -> Observations:
        """Test several Tritons, at once where that can be, and yield their outcomes as they come.

        Raises:
            SmithError: as `test` does.
        """

    def test(self, triton: Triton) -> Observation:
        """Test whether a Triton is bad.

        Raises:
            SmithError: neither an answer nor a reason to skip this Triton: the bisect stops, and may go on
                later.
        """


def one_by_one(test: Callable[[Triton], Observation]) -> CandidateTests:
    """Return tests of several Tritons, one after another."""
    return lambda tritons: ((triton, test(triton)) for triton in tritons)


# Upstream's archives from before June 2024 are no longer served (triton#4527), for example.
class NoLlvmError(StepError):
    """The LLVM of a pin cannot be had, so no commit that pins it can be tested."""


class Builds(Protocol):
    """Builds that make commits ready to test: `CommitBuilds`, and `llvm_range.LlcBuilds`."""

    def llvm_state(self, pin: str) -> LlvmState:
        """Return the origin of a pin's LLVM."""

    def built(self, commit: TritonCommit) -> dict[str, Any] | None:
        """Return the receipt of a commit's libraries; None if they must be built."""

    def last(self, pin: str) -> str:
        """Return the commit that was built last against the LLVM of a pin; empty if none was."""

    def make(self, commit: TritonCommit) -> Triton:
        """Make a commit ready, and name the interpreter that has it, or the llc.

        Raises:
            NoLlvmError: its LLVM cannot be had.
        """


@dataclass(frozen=True)
class Candidate:
    """A Triton that may be tested. Either `triton` or `commit` is set.

    Attributes:
        name: a release (`3.6.0`), a nightly's version, or a commit, all 40 digits.
        triton: of a release or a nightly.
        commit: of a clone, which may have to be built.
    """

    name: str
    triton: Triton | None = None
    commit: TritonCommit | None = None


def of_tritons(tritons: Sequence[Triton]) -> tuple[Candidate, ...]:
    """Return candidates for releases and nightlies."""
    return tuple(Candidate(triton.label, triton) for triton in tritons)


def of_commits(commits: Sequence[TritonCommit]) -> tuple[Candidate, ...]:
    """Return candidates for commits of Triton."""
    return tuple(Candidate(commit.commit, commit=commit) for commit in commits)


@dataclass(frozen=True)
class ReadyTriton:
    """A candidate that is ready to test.

    Attributes:
        triton: the Triton to test.
        seconds: wall time that it took to make it ready.
        metrics: these seconds, and those of its build.
    """

    triton: Triton
    seconds: float = 0.0
    metrics: Mapping[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class BisectSubject:
    """Tests candidates by tests of the Tritons that they become.

    Attributes:
        tests: of Tritons that are ready.
        builds: makes commits ready; None without a clone.
        jobs: candidates tested at once.
    """

    tests: CandidateTests
    builds: Builds | None = None
    jobs: int = 1

    def test(self, candidates: Sequence[Candidate]) -> Iterator[tuple[int, Observation]]:
        """Make candidates ready, then test them; yield places in `candidates` with observations as they come.

        A candidate that cannot be made ready is a skip.

        Raises:
            SmithError: the cause is no candidate, but a full disk, a missing compiler, an interrupt.
        """
        places = range(len(candidates))
        # A build may take an hour: without --jobs, a commit is tested and noted before the next one is built.
        one_by_one = self.jobs == 1 and any(candidate.commit for candidate in candidates)
        for group in [[place] for place in places] if one_by_one else [places]:
            yield from self._together(candidates, group)

    def _together(
        self, candidates: Sequence[Candidate], group: Sequence[int]
    ) -> Iterator[tuple[int, Observation]]:
        ready: dict[str, tuple[int, ReadyTriton]] = {}  # by label of the Triton
        failed: dict[tuple[str, str], Observation] = {}  # by native tree and LLVM, as others have
        for place in group:
            candidate = candidates[place]
            tree = (candidate.commit.native, candidate.commit.pin) if candidate.commit else None
            result = (tree and failed.get(tree)) or self._ready(candidate)
            if isinstance(result, ReadyTriton):
                ready[result.triton.label] = place, result
                continue
            yield place, result
            if tree and LACKS in result.metrics:  # the others of the group need not try the same build
                failed[tree] = replace(result, seconds=0.0)
        if not ready:
            return
        began = time.monotonic()
        with closing(self.tests([prepared.triton for _, prepared in ready.values()])) as outcomes:
            for triton, outcome in outcomes:
                place, prepared = ready[triton.label]
                if not candidates[place].commit:
                    yield place, outcome
                    continue
                # The seconds of a commit are those of its build, too, from which the next choice is made.
                seconds = prepared.seconds + time.monotonic() - began
                metrics = {**outcome.metrics, **prepared.metrics}
                yield place, replace(outcome, seconds=seconds, metrics=metrics)

    def _ready(self, candidate: Candidate) -> ReadyTriton | Observation:
        if candidate.commit:
            if self.builds is None:
                raise AssertionError("a commit needs a clone")
            return built(candidate.commit, self.builds)
        if candidate.triton is None:
            raise AssertionError(f"the candidate {candidate.name} is nothing")
        if why := history.install_nightly(candidate.triton):
            return Observation(Verdict.SKIP, why=why)
        return ReadyTriton(candidate.triton)


def built(commit: TritonCommit, builds: Builds) -> ReadyTriton | Observation:
    """Make a commit ready; return a skip with the reason if it cannot be built.

    Raises:
        SmithError: the cause is not the commit.
    """
    was_built, began = builds.built(commit) is not None, time.monotonic()
    try:
        triton = builds.make(commit)
    except (FactError, PreflightError, StepError) as error:
        why = reason(error)
        # To skip commits because of this machine would be a wrong answer after hours.
        if any(word in why for word in _OURS):
            raise
        kind = TOOLS if isinstance(error, PreflightError) else NATIVE_TREE
        # Where the libraries are there, only its own Python files could fail: that says nothing of others.
        lacks = LLVM if isinstance(error, NoLlvmError) else "" if was_built else kind
        metrics = {LACKS: lacks} if lacks else {}
        return Observation(Verdict.SKIP, why=why, seconds=time.monotonic() - began, metrics=metrics)
    seconds = time.monotonic() - began
    if was_built:
        return ReadyTriton(triton, seconds, {READY: seconds})
    took = (builds.built(commit) or {}).get("seconds")  # without its LLVM, which others have now
    return ReadyTriton(triton, seconds, {READY: seconds, BUILD: sum(took.values()) if took else seconds})


def reason(error: FactError | PreflightError | StepError) -> str:
    """Return a failure in one or two lines: what, and the first line of why."""
    return error.line


@dataclass(frozen=True)
class CommitBuilds:
    """Makes commits of one clone ready to test, with one way to build them.

    Attributes:
        clone: the user's; it is only read.
        settings: of the environment whose compiler, cache and LLVM are used.
        space: the workspace, in which everything goes.
        packages: folders of Python packages that a test needs in addition to Triton, such as PyTorch's.
        tests: paths of tests in a commit, which its folder gets as well.
        programs: build `triton-opt` and the other programs of the lit tests, not the Python module.
        url: the remote of a partial clone, from which the contents of files are fetched as they are needed;
            empty for a whole clone.
    """

    clone: Path
    settings: Settings
    space: Workspace
    packages: tuple[Path, ...] = ()
    tests: tuple[str, ...] = ()
    programs: bool = False
    url: str = ""
    _states: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def source(self) -> Path:
        """The clone of the tool's own, at the commit that was built last."""
        return self.space.sources / f"bisect-{digest(str(self.clone))[:8]}"

    def env(self, pin: str) -> EnvDir:
        """Return the environment in which commits of a pin are built; an installed LLVM has one for all."""
        folder = self.llvm_dir(pin)
        llvm = digest(folder)[:8] if folder else pin[:8]
        return self.space.env(f"{self.source.name}-{llvm or 'unpinned'}")

    def llvm_dir(self, pin: str) -> str:
        """Return the installed LLVM for a pin, of the settings or of their environment; empty for none."""
        if self.settings.llvm.dir:
            return self.settings.llvm.dir
        env = self.space.env(self.settings.name)
        chosen = receipts.read(env.receipt("setup-mlir"))
        if prefix := str((commands.last_settings(env) or {}).get("llvm.dir") or ""):
            built = receipts.succeeded(env)
            same = (built.get("settings") or {}).get("llvm.dir") == prefix
            commit, its_pin = (built.get("llvm_commit"), built.get("pin")) if same else ("", "")
        elif chosen and chosen["provider"] == "system" and Path(chosen["prefix"]).is_dir():
            prefix, commit, its_pin = str(chosen["prefix"]), chosen["commit"], chosen["pin"]
        else:
            return ""
        # An LLVM that the user took although it is not at the pin serves all pins.
        at_pin = llvm_tree.same_commit(str(commit or ""), str(its_pin or ""))
        return "" if at_pin and its_pin != pin else prefix

    def libraries(self, commit: TritonCommit) -> Path:
        """Return the folder of a commit's libraries, built or not: of its native tree, LLVM and settings."""
        settings = self._settings(commit)
        # From 3.4 to August 2026, one in seven of upstream's commits changes the code for NVIDIA in Python
        # alone: it shares its libraries with the commits around it.
        how = (*_how(settings), *self._states_of(settings))
        return self.space.root / "bisect" / "libraries" / digest(commit.native, commit.pin, *how)

    def _states_of(self, settings: Settings) -> Iterator[str]:
        """Yield the states of the folders that settings name by their paths alone."""
        readers: dict[str, Callable[[Path], str]] = dict.fromkeys(settings.triton.plugin_dirs, _sources_state)
        if settings.llvm.dir:
            readers[settings.llvm.dir] = describe_tree.state
        # Whoever works on LLVM, or on a backend of their own, builds it in the same folder again and again.
        for folder, read in readers.items():
            # Once in a run: a bisect asks for the libraries of thousands of commits, and LLVM has 600 files.
            if folder not in self._states:
                self._states[folder] = read(Path(folder).expanduser().absolute())
            yield self._states[folder]

    def content(self, commit: TritonCommit) -> str:
        """Return a key of everything that compiles depend on, which commits that compile alike share.

        Raises:
            FactError: git cannot list the commit's files.
        """
        # The LLVM, the settings and NVIDIA's toolchain, whose versions are native files, are in the first.
        return digest(self.libraries(commit).name, self.python_files(commit))

    def python_files(self, commit: TritonCommit) -> str:
        """Return a key of the files that Python imports.

        Raises:
            FactError: git cannot list the commit's files.
        """
        return triton_history.imported(self.clone, commit.commit, self._python_folders)

    def binaries(self, commit: TritonCommit) -> str:
        """Return a key of the content of a commit's libraries; empty if they are not built.

        Raises:
            FactError: a library cannot be read.
        """
        receipt = self.built(commit)
        if receipt is None:
            return ""
        folder = self.libraries(commit)
        # The path of one that is not the commit's own, such as a ptxas, has its version.
        links = {
            name: _checksum(Path(target)) if Path(target).is_relative_to(folder) else target
            for name, target in receipt["links"].items()
        }
        return digest(links)

    def interpreter(self, commit: TritonCommit) -> Path:
        """Return the interpreter of a commit, which `make` makes."""
        flavor = "-lit" if self.programs else "-pytest" if self.tests else ""
        # By the settings, too: a run with others would exchange the libraries under one that compiles. Not by
        # the key of the libraries: where the settings name no LLVM, that changes with the first build of the
        # environment, and a run that was stopped would not know its interpreters again.
        folder = self.env(commit.pin).path / "commits" / digest(*_how(self.settings))[:8]
        return folder / f"{commit.commit[:_SHORT]}{flavor}" / "bin" / "python"

    def built(self, commit: TritonCommit) -> dict[str, Any] | None:
        """Return the receipt of a commit's libraries, with `seconds` by phase and `links`; see `Builds`."""
        # Links may lead to a package that was removed meanwhile, or into a clone that is gone.
        receipt = receipts.read(self.libraries(commit) / "built.json")
        whole = receipt and all(Path(target).exists() for target in receipt["links"].values())
        return receipt if whole else None

    def llvm_state(self, pin: str) -> LlvmState:
        """Return the origin of a pin's LLVM: present, a download, or a build."""
        llvm = self.settings.llvm
        receipt = receipts.read(self.env(pin).receipt("setup-mlir"))
        if self.llvm_dir(pin) or (receipt and Path(receipt["prefix"]).is_dir()):
            return "ready"
        entries = store.open_store(self.space, llvm.store).entries()
        if any(
            entry.status == "ready" and entry.manifest and entry.manifest.commit == pin for entry in entries
        ):
            return "ready"
        return "source" if llvm.provider == "source" else "prebuilt"

    def last(self, pin: str) -> str:
        """See `Builds`."""
        return str((receipts.read(self.env(pin).receipt(_BUILD)) or {}).get("commit", ""))

    def make(self, commit: TritonCommit) -> Triton:
        """Make a commit ready, and name the interpreter that has it.

        Raises:
            SmithError: it cannot be built; a StepError, FactError or PreflightError is the commit's own.
        """
        env = self.env(commit.pin)
        self.space.claim()
        with (
            locks.hold(self.source.with_suffix(".lock"), purpose="bisect"),
            receipts.open_session(_BUILD, env.name) as running,
        ):
            running.run_unseen(borrowed_clone(self.clone, self.source, self.space, self.url))
            if self.built(commit) is None:
                self._build(commit, running)
            python = self._assemble(commit, running)
        return Triton(commit.commit[:_SHORT], python=str(python))

    def _settings(self, commit: TritonCommit) -> Settings:
        purpose: Purpose = "tests" if self.programs else "python"
        triton = replace(self.settings.triton, source=str(self.source), wheel="", for_=purpose, targets=())
        llvm = replace(self.settings.llvm, dir=self.llvm_dir(commit.pin))
        return replace(self.settings, name=self.env(commit.pin).name, triton=triton, llvm=llvm)

    def _build(self, commit: TritonCommit, running: Session) -> None:
        move = ("git", "checkout", "--quiet", "--force", "--detach", commit.commit)
        running.run_unseen((Run(move, cwd=self.source, phase=PHASE),))
        settings = self._settings(commit)
        located = TritonSource(self.source, Plan("Triton's sources are present"))
        if not settings.llvm.dir and receipts.read(running.env.receipt("setup-mlir")) is None:
            self._provide_llvm(commit, settings, located, running)
        prepared = commands.prepare_build(settings, self.space, located)
        commands.execute(prepared, running)
        running.run_unseen(tuple(self._keep(commit, running)))

    def _provide_llvm(
        self, commit: TritonCommit, settings: Settings, located: TritonSource, running: Session
    ) -> None:
        # Its seconds are counted apart: the next commit with this pin has this LLVM already.
        llvm = replace(running, task="setup-mlir", seconds={})
        try:
            prepared, _ = setup_mlir.prepare(settings, self.space, located)
            # The store of LLVMs belongs to all environments, so it has the lock of the workspace.
            with locks.hold(self.space.lock, purpose=command("setup-mlir", env=settings.name)):
                commands.execute(prepared, llvm)
        except (FactError, PreflightError, StepError) as error:
            raise NoLlvmError(
                f"LLVM {commit.pin[:8]} is not available: {error.what}",
                where=error.where,
                why=error.why,
                hints=error.hints,
            ) from error

    def _keep(self, commit: TritonCommit, running: Session) -> Iterator[Step]:
        """Move the products out of the clone, into which the next commit is built."""
        folder, checkout = self.libraries(commit), checkouts.read(self.source)
        if self.programs:
            place, subfolder, product = running.env.build / "bin", f"{_BUILT}/bin", "triton-opt"
            names = recipe.resolve_targets(self._settings(commit).triton, self.source)
            products = [place / name for name in names if (place / name).is_file()]
        else:
            place, subfolder, product = self.source / _PACKAGE / "_C", f"{_PACKAGE}/_C", "libtriton"
            products = sorted(place.glob("libtriton*.so"))
        if not products:
            raise FactError(f"the build produced no {product}", where=place, hints=[str(running.log)])
        links = {f"{subfolder}/{path.name}": folder / path.name for path in products}
        if self.programs and (llvm := (receipts.read(running.env.receipt(_BUILD)) or {}).get("llvm")):
            links[f"{subfolder}/FileCheck"] = Path(llvm) / "bin" / "FileCheck"
        for part in () if self.programs else recipe.components(checkout, self.space, proton=False):
            # Headers of several packages lie together in the clone; a program has its place with its version.
            links[str(part.dest.relative_to(self.source))] = part.dest if part.tree else part.source
        yield Remove((folder,), self.space.root, phase=PHASE)
        yield MakeDir(folder, phase=PHASE)
        yield from (Move(path, folder / path.name, phase=PHASE) for path in products)
        content = {
            "commit": commit.commit,
            "version": checkout.version,
            "links": {name: str(target) for name, target in links.items()},
            "seconds": running.seconds,
            "site": self._site(running.env),
        }
        # Last: a folder without it is one whose build was killed, and is made again.
        yield Write(folder / "built.json", receipts.render("bisect", content), phase=PHASE)

    def _assemble(self, commit: TritonCommit, running: Session) -> Path:
        """Give a commit an interpreter, which imports its Python files and libraries, and return its path."""
        receipt = self.built(commit) or {}
        python = self.interpreter(commit)
        folder = python.parents[1]
        files, base = folder / "source", venv.base_interpreter(self.settings.python.interpreter)
        site = folder / "lib" / f"python{base.minor}" / "site-packages"
        about = site / f"triton-{receipt['version']}+git{commit.commit[:8]}.dist-info"
        paths = self._python_paths(commit)
        take = (
            "git",
            "--work-tree",
            str(files),
            "checkout",
            "--quiet",
            "--force",
            commit.commit,
            "--",
            *paths,
        )
        import_path = "\n".join(map(str, (files / "python", *self.packages)))
        backends = sorted({path.split("/")[1] for path in paths if path.endswith("/backend")})
        points = "\n".join(("[triton.backends]", *(f"{name} = triton.backends.{name}" for name in backends)))
        steps = (
            Remove((folder,), self.space.root, phase=PHASE),
            MakeDir(files, phase=PHASE),
            # With an index of its own: that of the clone belongs to the commit that is built there.
            Run(take, cwd=self.source, env=(("GIT_INDEX_FILE", str(folder / "index")),), phase=PHASE),
            *(Link(files / name, files / target, phase=PHASE) for name, target in self._links(commit, paths)),
            *(Link(files / name, Path(target), phase=PHASE) for name, target in receipt["links"].items()),
            # Nothing is installed into it, and pip would take longer than all the rest. Python finds files of
            # the commit by a .pth, its version by METADATA, and Triton its backends by entry points.
            Run((str(base.executable), "-m", "venv", "--without-pip", str(folder)), cwd=folder, phase=PHASE),
            Write(site / "tritonsmith-bisect.pth", f"{import_path}\n", phase=PHASE),
            Write(
                # The version is what follows `triton-` in the folder's name.
                about / "METADATA",
                f"Metadata-Version: 2.1\nName: triton\nVersion: {about.stem[7:]}\n",
                phase=PHASE,
            ),
            Write(about / "entry_points.txt", f"{points}\n", phase=PHASE),
            *self._lit(running.env, files, receipt.get("site", "")),
        )
        running.run_unseen(stamped(steps, folder.with_suffix(".done"), python))
        return python

    def _site(self, env: EnvDir) -> str:
        """Return the configuration of the lit tests that CMake has made; empty where Python is tested."""
        file = env.build / "test" / LIT_SITE
        return untrusted.read_text(file) if self.programs and file.is_file() else ""

    def _lit(self, env: EnvDir, files: Path, site: str) -> Iterator[Step]:
        """Yield steps for lit, and for a configuration of the tests that names the files of this commit."""
        if not self.programs:
            return
        # CMake wrote absolute paths of the build folder, where the next commit is built soon.
        moved = site.replace(str(env.build), str(files / _BUILT)).replace(str(self.source), str(files))
        yield Write(files / _BUILT / "test" / LIT_SITE, moved, phase=PHASE)
        yield Link(files.parent / "bin" / "lit", env.venv / "bin" / "lit", phase=PHASE)

    def _python_paths(self, commit: TritonCommit) -> tuple[str, ...]:
        """Return the folders of a commit with what Python imports, and its tests."""
        return self._there(commit, *self._python_folders, *self.tests)

    @property
    def _python_folders(self) -> tuple[str, ...]:
        """The folders that Python imports from, of which a commit may lack some."""
        if self.programs:
            return ()
        backends = self.settings.triton.backends
        return (_PACKAGE, *(f"third_party/{name}/{part}" for name in backends for part in _LINKED))

    def _links(self, commit: TritonCommit, paths: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        """Yield the links of upstream's editable install: their path and what they lead to, in the commit."""
        for path in paths:
            if not path.startswith("third_party/"):
                continue
            _, backend, part = path.split("/")
            place = _LINKED[part].format(backend=backend)
            if part == "backend":
                yield place, path
                continue
            for inside in self._there(commit, f"{path}/"):
                yield f"{place}/{inside.rsplit('/', 1)[1]}", inside

    def _there(self, commit: TritonCommit, *paths: str) -> tuple[str, ...]:
        """Return which of the paths a commit has; for one that ends in `/`, the content of that folder."""
        # Without `-z`, git quotes names that are not ASCII (git-ls-tree(1)).
        answer = git.look(self.source, "ls-tree", "-z", "--name-only", commit.commit, "--", *paths)
        if answer is None or answer.code:
            why = answer.err if answer else "git did not finish in time"
            raise FactError("git cannot read this commit", where=f"{self.clone} at {commit.commit}", why=why)
        return tuple(name for name in answer.out.split("\0") if name)


def _how(settings: Settings) -> tuple[object, ...]:
    """Return the settings that decide what a build of a commit gives."""
    # The path of the clone is left out, since one native tree makes the same libraries in each.
    triton = replace(settings.triton, source="", revision="")
    return triton, settings.llvm, settings.python, settings.toolchain.compiler


def _checksum(file: Path) -> str:
    try:
        checksum = hashlib.sha256()
        with untrusted.opened(file) as stream:
            while piece := stream.read(CHUNK):
                checksum.update(piece)
        return checksum.hexdigest()
    except OSError as error:
        raise FactError("cannot read this library", where=file, why=error.strerror) from error


def _sources_state(folder: Path) -> str:
    """Return a digest that changes when the files of a folder do, except those of git and Python's cache."""
    states = []
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "__pycache__"))]
        states += [(str(path), *files.size_and_time(path)) for path in (Path(top, name) for name in names)]
    return digest(sorted(states))


def borrowed_clone(clone: Path, source: Path, space: Workspace, url: str = "") -> tuple[Step, ...]:
    """Return steps that make a clone without a copy of the objects.

    Args:
        clone: the user's.
        source: the new one; commits that are fetched into `clone` later are in it, too.
        space: the workspace.
        url: of the contents of files that `clone` lacks; empty for a whole clone.
    """
    partial, done = source.with_name(f"{source.name}.partial"), f".{source.name}.done"
    copy = ("git", "clone", "--quiet", "--shared", "--no-checkout", str(clone), str(partial))
    # `git clone --filter=blob:none` writes these; without them, git takes a missing blob for damage.
    lazily = {"url": url, "promisor": "true", "partialclonefilter": "blob:none"} if url else {}
    # Under another name at first: a clone that was killed half way looks like a whole one to git.
    steps = (
        MakeDir(space.sources, phase=PHASE),
        Remove((partial, source), space.root, phase=PHASE),
        Run(copy, cwd=space.sources, phase=PHASE),
        *(
            Run(("git", "config", f"remote.contents.{key}", value), cwd=partial, phase=PHASE)
            for key, value in lazily.items()
        ),
        Move(partial, source, phase=PHASE),
    )
    return stamped(steps, space.sources / done, source)
