"""Make a corpus of public kernels from a recipe: packages of the registry, and what their operations launch.

RECIPE.toml              the packages, by version and hash
NAME_driver.py           a program that calls public operations of a package
captured/NAME.toml       what the driver launched: signatures, options and grids; no source

The sources of kernels come from the packages when the corpus is made, so no foreign code is distributed.
"""

from __future__ import annotations

import re
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tritonsmith.compiler import capture, targets
from tritonsmith.compiler.kernels import kernel_list
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import ConfigError, InterruptedRunError, SmithError, UsageError, did_you_mean
from tritonsmith.core.plan import (
    Download,
    Extract,
    MakeDir,
    Plan,
    Step,
    UnpackPackage,
    Write,
    digest,
    files,
    locks,
)
from tritonsmith.core.text import counted
from tritonsmith.lab import corpus as corpora
from tritonsmith.lab.corpus import Corpus, CorpusChange
from tritonsmith.wheels import ptxas, venv

CAPTURED = "captured"
TASK = "corpus.make"
# Python puts a script's folder before all others: `vllm.py` that imports vllm would import itself.
_DRIVER = "_driver"
_INTERRUPTED = 128 + signal.SIGINT
_PATIENCE = 600.0  # seconds; another run that unpacks a package of some 300 MB
_NAMED = 6  # kernels of one message
_HEAD = "Launches of a driver of the public corpus, as captured when the corpus was recorded."
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_ARCHIVE = ".tar.gz"
_NOT_REACHED = "not reached: "  # what `operations.operation` prints about an operation that fails


@dataclass(frozen=True)
class PublicPackage:
    """A package whose kernels belong to the corpus.

    Attributes:
        name: its name in the registry.
        version: its exact version.
        license: the SPDX expression of its licence.
        sha256: the hashes of its wheels, or that of its source archive; pip takes the wheel for a platform.
        drivers: the programs that call its operations; paths relative to the recipe.
        needs: pinned requirements that its drivers import.
        stand_ins: modules that it imports and that its drivers do without.
        loads: patterns of files that it loads by a name made at run time, as `mine/backend/_nvidia/*`: no
            import statement tells that its kernels need them. Those count that import from the folder around
            it, `mine/backend`.
        source: the URL of its source archive, if it has no wheels.
        generated: it generates its kernels when it runs, so only its driver can list them; it is the
            environment's, and not unpacked.
    """

    name: str
    version: str
    license: str
    sha256: tuple[str, ...]
    drivers: tuple[str, ...]
    needs: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()
    source: str = ""
    generated: bool = False

    @property
    def requirement(self) -> str:
        """The package as a file of requirements names it."""
        return " ".join(
            [f"{self.name}=={self.version}", *(f"--hash=sha256:{value}" for value in self.sha256)]
        )


@dataclass(frozen=True)
class Recipe:
    """A recipe.

    Attributes:
        device: the GPU that the drivers see.
        python: the release of Python whose wheels are taken, so that the files are the same everywhere.
        platforms: the tags of platforms whose wheels are taken, the best first.
        package: the packages.
        most: how many specializations of one function are kept.
        seconds: time after which a driver is killed.
    """

    device: str
    python: str
    platforms: tuple[str, ...]
    package: tuple[PublicPackage, ...]
    most: int = 4
    seconds: int = 3600


@dataclass(frozen=True)
class PackageResult:
    """The kernels that one driver of a package launches.

    Attributes:
        package: the package.
        driver: the driver; empty if the package could not be unpacked.
        changes: what happened to each of its kernels in the corpus.
        not_reached: operations that launched nothing, each with the error.
        stale: names of kernels whose source differs from that when they were captured.
        error: the reason why none of its kernels was added; None if they were.
    """

    package: PublicPackage
    driver: str = ""
    changes: tuple[CorpusChange, ...] = ()
    not_reached: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    error: SmithError | None = None

    @property
    def title(self) -> str:
        """The package, and the driver if the package has several."""
        return self.package.name + (
            f" ({self.driver})" if len(self.package.drivers) > 1 and self.driver else ""
        )


def shipped() -> Path:
    """Return the recipe that ships with the tool."""
    return configs.data_dir("configs") / "corpus" / "public.toml"


def read(path: Path) -> Recipe:
    """Read a recipe.

    Raises:
        ConfigError: it cannot be read, a key is unknown or has a wrong value, or a driver is missing.
    """
    try:
        table = untrusted.read_toml(path)
        rows = [_fields(Recipe, table, "the recipe"), *table.get("package", ())]
        table = rows[0] | {
            "package": [_fields(PublicPackage, row, row.get("name", "a package")) for row in rows[1:]]
        }
        recipe: Recipe = untrusted.typed(Recipe, table, "the recipe")
    except OSError as error:
        raise ConfigError("cannot read this recipe", where=path, why=error.strerror) from error
    except (ValueError, AttributeError) as error:
        raise ConfigError("this is not a recipe of a corpus", where=path, why=str(error)) from error
    if recipe.most < 1 or recipe.seconds < 1:
        raise ConfigError("`most` and `seconds` of a recipe are at least 1", where=path)
    for package in recipe.package:
        if why := _contradiction(package):
            raise ConfigError(f"{package.name} of this recipe cannot be right", where=path, why=why)
        for driver in package.drivers:
            if not (path.parent / driver).is_file():
                raise ConfigError(f"a driver of {package.name} is missing", where=path.parent / driver)
    return recipe


def _contradiction(package: PublicPackage) -> str:
    """Return the reason why a package cannot be as the recipe says; empty if nothing is known against it."""
    if not package.sha256 and not package.generated:
        return "sha256: the hashes of its wheels are missing, or that of its source archive"
    if package.source and len(package.sha256) > 1:
        return f"sha256: its source is one archive, and here are {len(package.sha256)} hashes"
    for value in package.sha256:
        if not _SHA256.fullmatch(value):
            return f"sha256: a SHA-256 has 64 hex digits, and {value!r} is none"
    for pattern in package.loads:
        parts = pattern.split("/")
        # `**` alone is any number of folders, and as the last part it matches no file before Python 3.13.
        if {"", ".", ".."} & {*parts} or parts[-1] == "**" or any("**" in part != "**" for part in parts):
            return f"loads: {pattern!r} is not a pattern of files in the package, such as 'mine/backend/*.py'"
    # An archive is found by its URL, so a version that was changed alone would name the sources of another.
    archive = package.source.rpartition("/")[2].removesuffix(_ARCHIVE)
    if package.source and _canonical(archive) != _canonical(f"{package.name}-{package.version}"):
        return f"source: {archive}{_ARCHIVE} is not the archive of {package.name} {package.version}"
    return ""


def _canonical(name: str) -> str:
    """Return a name as PEP 503 compares it: archives have `mamba_ssm`, the registry has `mamba-ssm`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def choose(recipe: Recipe, names: Sequence[str]) -> tuple[PublicPackage, ...]:
    """Return the packages with these names; all if there are no names.

    Raises:
        UsageError: the recipe has no such package.
    """
    known = {package.name: package for package in recipe.package}
    for name in names:
        if name not in known:
            raise UsageError(f"the recipe has no package {name!r}", hints=did_you_mean(name, known))
    return tuple(known[name] for name in dict.fromkeys(names)) if names else recipe.package


def make(
    recipe: Recipe,
    path: Path,
    packages: Sequence[PublicPackage],
    corpus: Corpus,
    python: Callable[[], Path],
    space: Workspace,
    *,
    record: bool,
) -> Iterator[PackageResult]:
    """Add the kernels of packages to a corpus, and yield the result of each driver.

    Args:
        recipe: the recipe.
        path: its file.
        packages: the packages of it to add.
        corpus: the corpus, which nobody else changes meanwhile.
        python: returns an interpreter with Triton and torch; called where a driver runs, and nowhere else.
        space: the workspace, which holds the packages.
        record: run the drivers, and write what they launch beside the recipe, instead of reading that.

    Raises:
        InterruptedRunError: ^C; what was added stays.
    """
    for package in packages:
        runs = record or package.generated
        try:
            # `uv tool install` leaves pip out of the tool's environment.
            interpreter = python() if runs or find_spec("pip") is None else Path(sys.executable)
            folders = _unpack(recipe, package, interpreter, space, needs=runs)
        except InterruptedRunError:
            raise
        except SmithError as error:  # the other packages are no worse for it
            yield PackageResult(package, error=error)
            continue
        for name in package.drivers:
            driver, errors = path.parent / name, ""
            listed = path.parent / CAPTURED / f"{driver.stem.removesuffix(_DRIVER)}.toml"
            try:
                if runs:
                    to = folders[0] / listed.name if package.generated else listed
                    errors = _record(recipe, package, driver, to, folders, interpreter, space)
                    listed = to
                yield _added(package, name, listed, folders[0], corpus, space, errors)
            except InterruptedRunError:
                raise
            except SmithError as error:
                yield PackageResult(package, name, error=error)


def _unpack(
    recipe: Recipe, package: PublicPackage, python: Path, space: Workspace, *, needs: bool
) -> list[Path]:
    """Unpack a package, and what its drivers import beside it if they run; return the folders."""
    wheels = ["--only-binary=:all:", "--python-version", recipe.python, "--implementation", "cp"]
    wheels += [word for tag in recipe.platforms for word in ("--platform", tag)]
    unpacked = [
        # Not built by pip: a setup.py may need torch and a compiler of CUDA, and is foreign code.
        SourceArchive(package)
        if package.source
        else UnpackedRequirements(
            package.name, () if package.generated else (package.requirement,), tuple(wheels)
        )
    ]
    if package.needs and needs:
        name = f"{package.name}-needs"
        # For the Python that imports them, by its own pip.
        unpacked.append(UnpackedRequirements(name, package.needs, ("--only-binary=:all:",), python))
    folders = [each.folder(space) for each in unpacked]
    place = folders[0].parent
    files.make_folder(place)
    # Two corpora may be made at once, and share the packages.
    with locks.hold(place / ".lock", purpose=TASK, busy="unpacking packages", patience=_PATIENCE):
        for each in unpacked:
            plan = Plan(f"unpack {each.folder(space).name}", each.steps(space, python))
            space.run(plan, TASK, quiet=not plan.steps)
    return folders


def _record(
    recipe: Recipe,
    package: PublicPackage,
    driver: Path,
    to: Path,
    folders: Sequence[Path],
    python: Path,
    space: Workspace,
) -> str:
    """Run a driver, and write what it launches; return its standard error.

    Raises:
        SmithError: it fails or does not end: an older list stays, as the new one would be a part of it.
    """
    prepared = capture.prepare(
        [str(driver)],
        targets.parse(recipe.device),
        recipe.device,
        # Beside the package, so that the list names the package's files relative to itself.
        folders[0] / f"{driver.stem}.toml",
        python,
        space,
        package.stand_ins,
        folders,
    )
    # Standard output belongs to --json; and what counts of the other comes again in the result.
    prepared = replace(prepared, step=replace(prepared.step, both=True))
    captured = capture.execute(prepared, space, feed=lambda _: None, seconds=recipe.seconds)
    # The terminal sends ^C to the driver too.
    if captured.code == _INTERRUPTED:
        raise InterruptedRunError("interrupted; what was added to the corpus stays")
    capture.check(captured, prepared)
    if captured.code:
        raise SmithError(
            f"the driver ended with exit code {captured.code}", where=driver, why=captured.failure or None
        )
    entries = kernel_list.read(prepared.out)
    own = [entry for entry in entries if package.generated or _is_own(entry)]
    if not own:
        raise SmithError("the driver launched no kernel of the package", where=driver)
    write = Write(to, _shortened(own, recipe.most), phase="record")
    space.run(Plan("record", (write,)), TASK, quiet=True)
    foreign = dict.fromkeys(entry.kernel for entry in entries if not _is_own(entry))
    notes = [
        f"{_NOT_REACHED}{name}: not in a file of the package" for name in foreign if not package.generated
    ]
    return "\n".join([captured.errors, *notes])


def _is_own(entry: ListedKernel) -> bool:
    """Report whether a kernel is in a file of the package that was captured."""
    # torch.compile writes sources, which the capture keeps beside its list; torch and `needs` are elsewhere.
    first = entry.file.partition("/")[0]
    return first not in ("", "..") and not first.endswith(".sources")


def _shortened(captured: Sequence[ListedKernel], most: int) -> str:
    """Return the text of a list of captured kernels with a few specializations of each function."""
    by_function: defaultdict[tuple[str, str], list[ListedKernel]] = defaultdict(list)
    for entry in captured:
        by_function[entry.file, entry.kernel].append(entry)
    kept = []
    for entries in by_function.values():
        # From first to last and not the first ones: drivers go from type to type, and from size to size.
        step = max(1, -(-len(entries) // most))
        kept += entries[::step]
    # Flags choose the targets; and a line of the driver tells nothing about a kernel.
    rows = (kernel_list.row(replace(entry, targets=(), launched_from=())) for entry in kept)
    return kernel_list.render_kernels(rows, _HEAD)


def _added(
    package: PublicPackage,
    driver: str,
    listed: Path,
    folder: Path,
    corpus: Corpus,
    space: Workspace,
    errors: str,
) -> PackageResult:
    update = corpora.add(corpus, listed, folder, package.loads)
    space.run(update.plan, TASK, quiet=True)
    return PackageResult(
        package,
        driver,
        update.changes,
        tuple(
            line.removeprefix(_NOT_REACHED) for line in errors.splitlines() if line.startswith(_NOT_REACHED)
        ),
        tuple(entry.name for entry in kernel_list.read(listed) if entry.changed(folder)),
    )


@dataclass(frozen=True)
class UnpackedRequirements:
    """Packages of the registry in a folder of their own, which any number of corpora share.

    Attributes:
        name: the beginning of the folder's name.
        requirements: as a file of requirements has them, with hashes.
        flags: pip's flags for choosing among their files.
        python: the interpreter that they are for; None if the flags say that.
    """

    name: str
    requirements: tuple[str, ...]
    flags: tuple[str, ...]
    python: Path | None = None

    @property
    def text(self) -> str:
        """The content of the file of requirements."""
        return "".join(f"{line}\n" for line in self.requirements)

    @property
    def phase(self) -> str:
        """The name of its steps on the screen: a package of 300 MB takes minutes."""
        return f"unpack {self.name}"

    def folder(self, space: Workspace) -> Path:
        """Return the folder."""
        return space.toolchain / "corpus" / f"{self.name}-{digest(self.text, str(self.python))[:8]}"

    def steps(self, space: Workspace, python: Path) -> tuple[Step, ...]:
        """Return the steps that unpack them, unless they are there."""
        dest = self.folder(space)
        if not self.requirements:
            return () if dest.is_dir() else (MakeDir(dest, phase=self.phase),)
        # pip takes hashes from a file only.
        file = dest.with_name(f"{dest.name}.txt")
        pip = venv.pip_install(self.python or ptxas.pip_python(python), "--no-deps", *self.flags)
        unpack = UnpackPackage(pip, f"--requirement={file}", dest, space.root, phase=self.phase)
        return () if dest.is_dir() else (Write(file, self.text, phase=self.phase), unpack)


@dataclass(frozen=True)
class SourceArchive:
    """The source archive of a package, unpacked and not built: Triton kernels are Python."""

    package: PublicPackage

    def folder(self, space: Workspace) -> Path:
        """Return the folder."""
        key = digest(self.package.source, self.package.sha256)[:8]
        return space.toolchain / "corpus" / f"{self.package.name}-{key}"

    def steps(self, space: Workspace, python: Path) -> tuple[Step, ...]:  # noqa: ARG002 - as for wheels
        """Return the steps that unpack it, unless it is there."""
        dest, (sha256,) = self.folder(space), self.package.sha256
        archive = dest.with_name(f"{dest.name}{_ARCHIVE}")
        phase = f"unpack {self.package.name}"
        if dest.is_dir():
            return ()
        # Its files are in a folder NAME-VERSION, which is left out.
        return (
            Download(self.package.source, sha256, archive, phase=phase),
            Extract(archive, dest, space.root, phase=phase),
        )


def _fields(kind: type, row: dict[str, Any], place: str) -> dict[str, Any]:
    """Return a table by the names of a class's fields.

    Raises:
        ValueError: a key belongs to no field. A misspelled `stand-ins` would otherwise be dropped silently.
    """
    table = {key.replace("-", "_"): value for key, value in row.items()}
    if unknown := set(table) - {field.name for field in fields(kind)}:
        raise ValueError(f"{place} has an unknown key: {', '.join(sorted(unknown))}")
    return table


def lines(result: PackageResult) -> Iterator[str]:
    """Yield the result of a driver: a line, and one for each kernel and operation that is missing."""
    package = result.package
    states: Counter[str] = Counter(change.state for change in result.changes)
    parts = ", ".join(f"{states[state]} {state}" for state in corpora.STATES if states[state])
    what = str(result.error.what) if result.error else parts or "no kernels"
    yield f"{result.title} {package.version} ({package.license}): {what}"
    if result.stale:
        names = ", ".join(result.stale[:_NAMED]) + (" ..." if len(result.stale) > _NAMED else "")
        kernels = counted(len(result.stale), "kernel")
        yield f"  the source of {kernels} changed since the capture ({names}); --record captures anew"
    lost = [change for change in result.changes if change.state == "not added"]
    yield from (f"  not added: {change.name}: {change.why}" for change in lost[:_NAMED])
    if len(lost) > _NAMED:
        yield f"  not added: {len(lost) - _NAMED} more; --json has them all"
    yield from (f"  not reached: {reason}" for reason in result.not_reached)


def as_json(corpus: Corpus, results: Sequence[PackageResult]) -> dict[str, Any]:
    """Return the results as JSON data."""
    rows = [
        {
            "name": result.package.name,
            "version": result.package.version,
            "license": result.package.license,
            "driver": result.driver,
            "kernels": [
                {"name": change.name, "state": change.state, "why": change.why} for change in result.changes
            ],
            "not_reached": list(result.not_reached),
            "stale": list(result.stale),
            "error": str(result.error) if result.error else None,
        }
        for result in results
    ]
    return {"schema": 1, "corpus": str(corpus.folder), "packages": rows}
