"""Group `python`, second half: Triton against torch, its LLVM and its bindings; imports and a compile."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from tritonsmith.core import untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.plan import files
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.core.process import capture
from tritonsmith.core.text import version_key
from tritonsmith.doctor.check import (
    DoctorContext,
    Finding,
    NotApplicableError,
    check,
    error,
    note,
    ok,
    skipped,
    warning,
)
from tritonsmith.doctor.pins import install as pairs
from tritonsmith.facts import (
    elf,
    installed_tritons,
    libtriton,
    llvm_tree,
    package_owners,
    pytorch_pins,
    tools,
)
from tritonsmith.facts.checkout import TritonCheckout
from tritonsmith.facts.libtriton import Libtriton
from tritonsmith.facts.package_owners import Distribution
from tritonsmith.facts.python_env import PythonEnv

if TYPE_CHECKING:
    from tritonsmith.compiler.targets import Target
    from tritonsmith.facts.missing_names import MissingName


_BINDINGS = ("pybind11", "nanobind")
_PTXAS = ("backends/nvidia/bin/ptxas*", "*/cuda/bin/ptxas")  # in the package; the second is from 2.x
_TIMEOUT = 120.0  # seconds; a cold import of torch reads gigabytes
_ARCHITECTURES = {"arm64": "aarch64"}  # macOS's name to that in ELF files
# Prints the last line of the traceback, because standard error is not kept.
_IMPORT = """
import sys, traceback
try:
    import {name}
    print("version", getattr({name}, "__version__", "unknown"), getattr({name}, "__file__", None))
except BaseException as error:
    print("failed", traceback.format_exception_only(type(error), error)[-1].strip().splitlines()[-1])
"""


@check("python.torch", "what torch requires of Triton")
def torch(subject: DoctorContext) -> Iterator[Finding]:
    """Compare the installed Triton with what torch requires."""
    # torch.compile uses private parts of the one Triton that a PyTorch release is tested with.
    python = subject.need_packages()
    owners = package_owners.owners(python.distributions)
    at_hand = next(
        (distribution for distribution in python.distributions if distribution.name == "torch"), None
    )
    if at_hand is None:
        yield (
            note(f"{', '.join(owner.title for owner in owners)} without torch")
            if owners
            else skipped("neither torch nor Triton installed")
        )
        return
    requires = package_owners.required_triton(at_hand, python.minor)
    text = f"{at_hand.title} requires {requires or 'no Triton'}"
    if not owners:
        lacks = (
            "torch.compile does not work on GPUs"
            if requires
            else "CPU builds and builds from source need none"
        )
        commands = _wanted(requires, subject)
        yield note(f"{text}; no Triton installed", str(at_hand.info), affects=lacks, commands=commands)
        return
    yield _pair(at_hand, requires, owners, subject)


def _pair(
    at_hand: Distribution, requires: str, owners: tuple[Distribution, ...], subject: DoctorContext
) -> Finding:
    """Return the verdict of `invoke pins --installed`."""
    beside = tuple(
        pairs.Owner(owner.name, owner.version, package_owners.commit_in(owner.version)) for owner in owners
    )
    release = pairs.release_of_torch(at_hand.version)
    # One rule for both: `invoke pins --installed` must not disagree with the doctor.
    agrees, reasons = pairs.judge(pairs.Torch(at_hand.version, "", requires), beside, release)
    text, where = "; ".join(reasons), str(at_hand.info)
    if agrees is not False:
        return Finding("ok" if agrees else "note", text, where)
    # Whoever works on Triton has one that no torch requires, and knows it: a note is enough.
    own = any(owner.editable for owner in owners)
    return Finding(
        "note" if own else "warning",
        text,
        where,
        affects="torch.compile uses internals that this Triton lacks or has changed",
        remedy="ignore this if you built this Triton yourself on purpose"
        if own
        else "install the Triton that this torch requires",
        commands=() if own else _wanted(requires, subject),
    )


def _wanted(requires: str, subject: DoctorContext) -> tuple[str, ...]:
    """Return the command that installs the Triton that a torch requires."""
    if not subject.python:
        return (command("env-triton", env=subject.named),) if requires else ()
    # Without the marker (`; platform_system == "Linux"`), which pip has already judged
    # true for this interpreter.
    plain = requires.partition(";")[0].strip()
    return (shlex.join((str(subject.python), "-m", "pip", "install", plain)),) if plain else ()


@check("python.packages", "what other packages require of torch and Triton")
def packages(subject: DoctorContext) -> Iterator[Finding]:
    """Check packages with their own kernels, such as vLLM and SGLang, which are built for one torch."""
    python = subject.need_packages()
    there = {distribution.name: distribution for distribution in python.distributions}
    relevant = {"torch", *package_owners.known_names()}
    met, unmet = [], False
    for owner in python.distributions:
        if owner.name in relevant:
            continue
        for line, requirement in package_owners.requirements(owner, python.minor):
            # What is missing altogether is pip's affair (`pip check`); here only what is there
            # in a wrong version counts.
            installed = there.get(package_owners.normalised(requirement.name))
            if installed is None or installed.name not in relevant or not installed.version:
                continue
            if requirement.specifier.contains(installed.version, prereleases=True):
                met.append(f"{owner.title}: {line}")
            else:
                unmet = True
                yield _unmet(owner, line, installed)
    if met:
        yield ok("; ".join(met))
    elif not unmet:
        yield skipped("no other package here requires the installed torch or Triton")


def _unmet(owner: Distribution, line: str, installed: Distribution) -> Finding:
    return warning(
        f"{owner.title} requires {line}; {installed.title} is installed",
        str(owner.info),
        affects="its libraries are built for that torch, and its kernels were tested with that Triton",
        remedy=f"install {owner.name} with what it requires, or a release of it for {installed.title}",
        commands=(command("pins", package=owner.name),) if owner.name in pytorch_pins.package_names() else (),
    )


@check("python.llvm-revision", "the LLVM in the installed libtriton.so")
def llvm_revision(subject: DoctorContext) -> Iterator[Finding]:
    """Read from the library itself which LLVM it was built from."""
    python = subject.need_packages()
    package = package_of(python)
    libraries = libtriton.find(package) if package else ()
    if package is None or not libraries:
        raise NotApplicableError(
            f"no libtriton.so in {package}" if package else "import triton would find nothing"
        )
    for path in libraries:
        yield _library(libtriton.read(path), python, subject)


def _library(library: Libtriton, python: PythonEnv, subject: DoctorContext) -> Finding:
    where = str(library.path)
    host = _ARCHITECTURES.get(subject.host.arch, subject.host.arch)
    if library.machine and library.machine != host:
        affects = f"it does not load on {host} (triton#2921)"
        return error(f"it is built for {library.machine}", where, affects=affects)
    tag = python.tag
    # A free-threaded Python has an ABI of its own, and loads no abi3.
    stable = library.tag == "abi3" and not python.free_threaded
    if library.tag.startswith(("cpython", "abi3")) and not stable and library.tag != tag:
        affects = "it does not load (triton#4995)"
        commands = installing(subject)
        return error(f"it is built for {library.tag}, not {tag}", where, affects=affects, commands=commands)
    if not library.llvm_version:
        return note("cannot read which LLVM it contains", where)
    text = f"LLVM {library.llvm_version}, {library.llvm_commit or 'commit not recorded'}"
    # A wrong LLVM inside the library shows nowhere else: the version of the wheel is that of the sources.
    expected, whose = _wanted_llvm(python, subject)
    if library.llvm_commit and expected and not llvm_tree.same_commit(library.llvm_commit, expected):
        return warning(
            f"{text}; {whose} {expected[:12]}",
            where,
            affects="IR and code may differ from what others get with this version",
            remedy="it was built with another LLVM; rebuild or reinstall it if that is not intended",
            commands=installing(subject) if sources(subject) else (),
        )
    same = f", that of {whose.removesuffix(' has')}" if library.llvm_commit and expected else ""
    return ok(text + same, where)


def _wanted_llvm(python: PythonEnv, subject: DoctorContext) -> tuple[str, str]:
    """Return the expected LLVM, and its origin: the checkout's pin, or that version's published wheel."""
    owners = package_owners.owners(python.distributions)
    tree = sources(subject)
    # An editable install belongs to the checkout; a wheel was built by somebody else,
    # with the LLVM of the table.
    if any(owner.editable for owner in owners):
        return (tree.pin.commit, "the checkout's pin is") if tree and tree.pin else ("", "")
    for owner in owners:
        for release in pytorch_pins.releases():
            if owner.name == "triton" and release.cuda.version == owner.version and release.wheel.llvm:
                return release.wheel.llvm, f"the published wheel {owner.version} has"
    return "", ""


@check("python.bindings", "pybind11 or nanobind, in the version that the checkout requires")
def bindings(subject: DoctorContext) -> Iterator[Finding]:
    """Compare pybind11 or nanobind with what the checkout requires."""
    # A compiler error is the better outcome: a module that is built with another version may crash.
    python, tree = subject.packages, sources(subject)
    if python is None or tree is None or python.executable != subject.env.python:
        raise NotApplicableError("no checkout built in this Python")
    versions = dict(python.dists)
    for line in tree.requires:
        requirement = Requirement(line)
        if requirement.name not in _BINDINGS:
            continue
        there = versions.get(requirement.name)
        text = (
            f"{requirement.name} {there or 'is not installed'}; the checkout requires {requirement.specifier}"
        )
        if there and requirement.specifier.contains(there, prereleases=True):
            yield ok(text, python.purelib)
        else:
            yield warning(
                text,
                str(python.purelib),
                affects="the Python module does not compile",
                remedy="rebuild: this installs what the checkout requires",
                commands=(command("build-triton", env=subject.named),),
            )


@check("python.import", "import triton and torch, in a separate process", deep=True)
def imports(subject: DoctorContext) -> Iterator[Finding]:
    """Import triton and torch, each in its own process."""
    # Whatever the other checks say, libraries may fail to load: a missing GLIBCXX, an undefined symbol.
    python = subject.need_packages()
    names = ["triton"] if package_of(python) else []
    names += [distribution.name for distribution in python.distributions if distribution.name == "torch"][:1]
    for name in names:
        yield _imported(name, python)
    if not names:
        yield skipped("neither triton nor torch installed")


def _imported(name: str, python: PythonEnv) -> Finding:
    began = time.monotonic()
    argv = (str(python.executable.absolute()), "-B", "-c", _IMPORT.format(name=name))
    # In /, where nothing shadows the package: `python -c` searches the current folder first.
    output = capture(argv, cwd=Path("/"), timeout=_TIMEOUT)
    took = time.monotonic() - began
    verdict, _, rest = (output or "").rpartition("\n")[2].partition(" ")
    if verdict == "version":
        return ok(f"import {name}: {rest}, {took:.1f} s", python.executable)
    if output is None:
        # `capture` returns None for a process that a signal ended and for one that hung: only
        # the time tells them apart.
        rest = f"no answer in {_TIMEOUT:.0f} s" if took >= _TIMEOUT else "the process crashed"
    return error(
        f"import {name}: {rest}",
        str(python.executable),
        affects="nothing that imports it runs",
        remedy="the text is the last line of the traceback; see python.owners and python.llvm-revision",
        commands=(shlex.join((str(python.executable), "-c", f"import {name}")),),
    )


@check("python.ptxas", "the installed ptxas runs", deep=True)
def ptxas(subject: DoctorContext) -> Iterator[Finding]:
    """Run ptxas, as every compile for NVIDIA does."""
    python = subject.need_packages()
    package = package_of(python)
    programs = list(installed_ptxas(package)) if package else []
    named = subject.environ.get("TRITON_PTXAS_PATH")
    programs += [Path(named)] if named else []
    for path in programs:
        yield _assembler(path, subject)
    if not programs:
        yield skipped("no ptxas installed with Triton")


def _assembler(path: Path, subject: DoctorContext) -> Finding:
    affects = "nothing compiles for NVIDIA GPUs"
    host = _ARCHITECTURES.get(subject.host.arch, subject.host.arch)
    if not path.is_file():
        return error("TRITON_PTXAS_PATH does not name a file", str(path), affects=affects)
    # Read from the file before it is run: the shell's "Exec format error" would say nothing of the cause.
    # Wheels have brought the ptxas of another architecture to arm64.
    machine = elf.machine_of(path)
    if machine and machine != host:
        text = f"{path.name} is for {machine}, this machine is {host} (triton#2921, triton#3134)"
        return error(text, str(path), affects=affects)
    if not os.access(path, os.X_OK):
        commands = (shlex.join(("chmod", "+x", str(path))),)
        return error(f"{path.name} is not executable", str(path), affects=affects, commands=commands)
    version = tools.version_of(path)
    if not version:
        return error(f"{path.name} --version fails", str(path), affects=affects)
    return ok(f"{path.name} {version}", path)


def installed_ptxas(package: Path) -> tuple[Path, ...]:
    """Return every ptxas that came with a Triton."""
    return tuple(path for pattern in _PTXAS for path in sorted(package.glob(pattern)))


def package_of(python: PythonEnv) -> Path | None:
    """Return the folder that `import triton` finds in an interpreter; None without a complete package."""
    finders = installed_tritons.import_finders(python.sites, python.distributions)
    resolved = installed_tritons.resolve_import(python.path, finders)
    return resolved.folder if resolved and not resolved.namespace and resolved.folder.is_dir() else None


def sources(subject: DoctorContext) -> TritonCheckout | None:
    """Return the checkout that the env runs; None if it runs a released wheel."""
    return None if subject.settings.triton.wheel else subject.checkout


def installing(subject: DoctorContext) -> tuple[str, ...]:
    """Return the command that installs the checkout; empty for a Python outside the tool's environments."""
    return () if subject.python else (command("install-triton", env=subject.named),)


# Group `python`: compatibility of `triton_kernels` with the Triton beside it; nothing is imported.

_NAME = "triton_kernels"
_VENDORED = ("vllm/third_party",)  # vllm/utils/import_utils.py: if `import triton_kernels` finds nothing
_FIRST = (3, 4)  # the first release of Triton with python/triton_kernels in its tree
_SHOWN = 3


@check("python.triton-kernels", "triton_kernels against the Triton beside it")
def triton_kernels(subject: DoctorContext) -> Iterator[Finding]:
    """Compare each triton_kernels with the Triton beside it."""
    # It is written for the Triton of its own commit, requires none, and its version is always 1.0.0.
    python = subject.need_packages()
    folders = tuple(_installed(python))
    if not folders:
        raise NotApplicableError(f"no {_NAME} installed")
    triton = package_of(python)
    if triton is None or not libtriton.find(triton):
        raise NotApplicableError(f"{_NAME} is installed, but no complete Triton")
    for folder in folders:
        yield _fits(folder, triton, python, subject)


def _installed(python: PythonEnv) -> Iterator[Path]:
    """Yield copies that an import may find: the first on the path or of a finder, and of each vendor."""
    # An editable install leaves no folder on the path, but a finder, a module that setuptools writes into
    # site-packages, with the mapping of names to folders in its text.
    finders = (
        hook for site in python.sites for hook in sorted(site.glob(f"__editable___{_NAME}_*_finder.py"))
    )
    mapped = (package_owners.finder_mapping(hook).get(_NAME) for hook in finders)
    own = (*(entry / _NAME for entry in python.path), *filter(None, mapped))
    for places in (own, *(tuple(entry / folder / _NAME for entry in python.path) for folder in _VENDORED)):
        if there := next((place for place in places if untrusted.is_file(place / "__init__.py")), None):
            yield there


def _fits(folder: Path, triton: Path, python: PythonEnv, subject: DoctorContext) -> Finding:
    from tritonsmith.facts import missing_names  # noqa: PLC0415 - few environments have triton_kernels

    version = subject.installed_triton
    missing = missing_names.find(folder, triton)
    title = _title(folder, python)
    if not missing:
        return ok(f"{title} uses only names that Triton {version} has", folder)
    # A name used at the top of a module fails at import, for every user; one used inside a
    # function fails for who calls it.
    failing = tuple(use for use in missing if not use.function)
    names = ", ".join(dict.fromkeys(use.name for use in failing or missing))
    remedy, commands = _remedy(folder, python, version)
    return Finding(
        "error" if failing else "warning",
        f"{title} uses what Triton {version} lacks: {names}",
        str(folder),
        affects=f"importing these fails: {_places(failing)} (triton#7818, vllm#39664)"
        if failing
        else f"these calls fail: {_places(missing)}",
        remedy=remedy,
        commands=commands,
    )


def _title(folder: Path, python: PythonEnv) -> str:
    """Return a title: `triton_kernels of sgl-kernel 0.3.5`, `triton_kernels 1.0.0 (v3.5.0)`."""
    if folder.parent.name == "third_party":
        return f"{_NAME} in {folder.parent.parent.name}"
    for distribution in python.distributions:
        record = (
            package_owners.text_of_file(distribution.info / "RECORD")
            if distribution.site == folder.parent
            else ""
        )
        if distribution.name == package_owners.normalised(_NAME):
            return f"{_NAME} {distribution.version}{_origin(distribution.info)}"
        if f"\n{_NAME}/" in f"\n{record}":
            return f"{_NAME} of {distribution.title}"
    return _NAME


def _origin(info: Path) -> str:
    """Return the tag or commit that pip installed it from."""
    try:
        source = untrusted.read_json(info / "direct_url.json")["vcs_info"]
        name = source.get("requested_revision") or source["commit_id"][:12]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
    return f" ({name})"


def _places(missing: tuple[MissingName, ...]) -> str:
    shown = [f"{use.file}:{use.line}" + (f" {use.function}" if use.function else "") for use in missing]
    more = len(shown) - _SHOWN
    return ", ".join(shown[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _remedy(folder: Path, python: PythonEnv, version: str) -> tuple[str, tuple[str, ...]]:
    """Return the remedy in words, and as commands."""
    if folder.parent.name == "third_party":
        package = folder.parent.parent.name
        advice = f"install the Triton that this {package} requires, or a {package} for this Triton"
        return advice, (command("pins", package=package),)
    # No tag before 3.4 has the folder, so no pip command could install a match.
    if version_key(version)[:2] < _FIRST:
        return f"remove it: {_NAME} needs Triton 3.4 or later", ()
    tag = version.partition("+")[0]
    url = f"git+https://github.com/triton-lang/triton@v{tag}#subdirectory=python/{_NAME}"
    pip = (str(python.executable), "-m", "pip", "install", "--no-deps", "--force-reinstall")
    advice = "install that of the same release, or, for a Triton of your own, of the same checkout"
    return advice, (shlex.join((*pip, f"{_NAME} @ {url}")),)


# The deepest check: compile a kernel in the interpreter under test; needs no GPU.

_OLDEST = (3, 0)  # `triton.compile(..., target=GPUTarget)`, which does not query the driver


@check("python.compile", "vector-add compiles, for this machine's GPU or for cuda:80", deep=True)
def compiles(subject: DoctorContext) -> Iterator[Finding]:
    """Compile vector-add, which needs libtriton, a backend, ptxas and a writable cache."""
    from tritonsmith.compiler import interpreter as triton_python  # noqa: PLC0415 - only `--deep` compiles
    from tritonsmith.compiler import up  # noqa: PLC0415 - only `--deep` compiles

    python = subject.interpreter
    version = subject.installed_triton
    if python is None or not version or version_key(version)[:2] < _OLDEST:
        raise NotApplicableError("no Triton 3.0 or later installed")
    requested = _targets(subject)
    with files.scratch() as place:
        try:
            plan = up.smoke_test(place, python, requested, triton_python.locate_programs(subject.space))
            subject.space.run(plan, "doctor", quiet=True, log=place / "log", environ=subject.environ)
        except CommandFailedError as failure:
            # The last line of a traceback is the exception; what precedes it is in the log.
            last = [line for line in failure.output if line.strip()][-1:]
            yield error(
                f"Triton {version} does not compile vector-add for {requested[0]}: {' '.join(last)}",
                str(python),
                affects="no kernel can be compiled with this Triton",
                remedy="see python.import and python.ptxas; for the full output run this",
                commands=(f"{python} -c 'import triton'",),
            )
            return
        answer = up.read_response(place)
    for result in answer["results"]:
        stages = ", ".join(result["stages"])
        yield ok(f"{result['target']} in {result['seconds']:.1f} s: {stages}", python)


def _targets(subject: DoctorContext) -> tuple[Target, ...]:
    from tritonsmith.compiler import targets  # noqa: PLC0415 - only `--deep` compiles

    arches = [gpu.arch.replace(".", "") for gpu in subject.gpus.of("nvidia") if gpu.arch]
    here = tuple(targets.parse(f"cuda:{arch}") for arch in dict.fromkeys(arches))
    return here or targets.proof(("nvidia",))
