"""Group `python`, second half: the installed Triton against torch, its LLVM and bindings; a test run."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

from tritonsmith.core.command_line import command
from tritonsmith.core.plan.process import capture
from tritonsmith.doctor.check import check
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import Finding, NotApplicableError, error, note, ok, skipped, warning
from tritonsmith.doctor.pins import installed_torch as pairs
from tritonsmith.facts import (
    distributions,
    import_resolution,
    libtriton,
    llvm_tree,
    package_pins,
    pytorch_pins,
    tools,
)
from tritonsmith.facts.checkout import TritonCheckout
from tritonsmith.facts.distributions import Distribution
from tritonsmith.facts.libtriton import Libtriton
from tritonsmith.facts.python_env import PythonEnv

_BINDINGS = ("pybind11", "nanobind")
_PTXAS = ("backends/nvidia/bin/ptxas*", "*/cuda/bin/ptxas")  # in the package; the second is from 2.x
_PATIENCE = 120.0  # seconds; a cold import of torch reads gigabytes
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
    """Compare torch with Triton: a PyTorch release is tested with one, and uses private parts of it."""
    python = subject.need_packages()
    owners = distributions.owners(python.distributions)
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
    requires = distributions.required_triton(at_hand, python.minor)
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
        pairs.Owner(owner.name, owner.version, distributions.commit_in(owner.version)) for owner in owners
    )
    release = pairs.release_of(at_hand.version)
    agrees, reasons = pairs.judge(pairs.Torch(at_hand.version, "", requires), beside, release)
    text, where = "; ".join(reasons), str(at_hand.info)
    if agrees is not False:
        return Finding("ok" if agrees else "note", text, where)
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
    plain = requires.partition(";")[0].strip()
    return (shlex.join((str(subject.python), "-m", "pip", "install", plain)),) if plain else ()


@check("python.packages", "what other packages require of torch and Triton")
def packages(subject: DoctorContext) -> Iterator[Finding]:
    """Check packages with their own kernels, such as vLLM and SGLang, which are built for one torch."""
    python = subject.need_packages()
    there = {distribution.name: distribution for distribution in python.distributions}
    relevant = {"torch", *distributions.known_names()}
    met, unmet = [], False
    for owner in python.distributions:
        if owner.name in relevant:
            continue
        for line, requirement in distributions.requirements(owner, python.minor):
            installed = there.get(distributions.normalised(requirement.name))
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
        commands=(command("pins", package=owner.name),) if owner.name in package_pins.names() else (),
    )


@check("python.llvm-revision", "the LLVM in the installed libtriton.so")
def llvm_revision(subject: DoctorContext) -> Iterator[Finding]:
    """Read from the library itself which LLVM it was really built from, whatever its version suggests."""
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
    stable = library.tag == "abi3" and not python.free_threaded
    if library.tag.startswith(("cpython", "abi3")) and not stable and library.tag != tag:
        affects = "it does not load (triton#4995)"
        commands = installing(subject)
        return error(f"it is built for {library.tag}, not {tag}", where, affects=affects, commands=commands)
    if not library.llvm_version:
        return note("cannot read which LLVM it contains", where)
    text = f"LLVM {library.llvm_version}, {library.llvm_commit or 'commit not recorded'}"
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
    owners = distributions.owners(python.distributions)
    tree = sources(subject)
    if any(owner.editable for owner in owners):
        return (tree.pin.commit, "the checkout's pin is") if tree and tree.pin else ("", "")
    for owner in owners:
        for release in pytorch_pins.releases():
            if owner.name == "triton" and release.cuda.version == owner.version and release.wheel.llvm:
                return release.wheel.llvm, f"the published wheel {owner.version} has"
    return "", ""


@check("python.bindings", "pybind11 or nanobind, in the version that the checkout requires")
def bindings(subject: DoctorContext) -> Iterator[Finding]:
    """Check the bindings: another version fails to compile, or crashes; nanobind is pinned to one version."""
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
    """Import triton and torch, which may fail to load: a missing GLIBCXX, an undefined symbol."""
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
    output = capture(argv, cwd=Path("/"), timeout=_PATIENCE)  # nothing in / shadows the package
    took = time.monotonic() - began
    verdict, _, rest = (output or "").rpartition("\n")[2].partition(" ")
    if verdict == "version":
        return ok(f"import {name}: {rest}, {took:.1f} s", python.executable)
    if output is None:
        rest = f"no answer in {_PATIENCE:.0f} s" if took >= _PATIENCE else "the process crashed"
    return error(
        f"import {name}: {rest}",
        str(python.executable),
        affects="nothing that imports it runs",
        remedy="the text is the last line of the traceback; see python.owners and python.llvm-revision",
        commands=(shlex.join((str(python.executable), "-c", f"import {name}")),),
    )


@check("python.ptxas", "the installed ptxas runs", deep=True)
def ptxas(subject: DoctorContext) -> Iterator[Finding]:
    """Run ptxas, as every compile for NVIDIA does; old wheels contain one for another architecture."""
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
    machine = libtriton.elf_machine(path)
    if machine and machine != host:
        text = f"{path.name} is for {machine}, this machine is {host} (triton#2921, triton#3134)"
        return error(text, str(path), affects=affects)
    if not os.access(path, os.X_OK):
        mend = (shlex.join(("chmod", "+x", str(path))),)
        return error(f"{path.name} is not executable", str(path), affects=affects, commands=mend)
    version = tools.version_of(path)
    if not version:
        return error(f"{path.name} --version fails", str(path), affects=affects)
    return ok(f"{path.name} {version}", path)


def installed_ptxas(package: Path) -> tuple[Path, ...]:
    """Return every ptxas that came with a Triton."""
    return tuple(path for pattern in _PTXAS for path in sorted(package.glob(pattern)))


def package_of(python: PythonEnv) -> Path | None:
    """Return the folder that `import triton` finds in an interpreter; None without a complete package."""
    finders = import_resolution.finders(python.sites, python.distributions)
    resolved = import_resolution.find(python.path, finders)
    return resolved.folder if resolved and not resolved.namespace and resolved.folder.is_dir() else None


def sources(subject: DoctorContext) -> TritonCheckout | None:
    """Return the checkout that the env runs; None if it runs a released wheel."""
    return None if subject.settings.triton.wheel else subject.checkout


def installing(subject: DoctorContext) -> tuple[str, ...]:
    """Return the command that installs the checkout; empty for a Python outside the tool's environments."""
    return () if subject.python else (command("install-triton", env=subject.named),)
