"""Group `gpu`: this machine's GPUs, against the ptxas and the Triton that compile for them."""

from __future__ import annotations

import getpass
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import SmithError
from tritonsmith.core.text import short_age, version_key
from tritonsmith.doctor import history, variables
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
from tritonsmith.facts import gpus, known_issues, libtriton, machine
from tritonsmith.facts.gpus import Driver, Gpu, SmiGpu
from tritonsmith.facts.known_issues import IssueFacts
from tritonsmith.facts.variables import covers
from tritonsmith.wheels import ptxas as registry

_NO_NVIDIA = "no NVIDIA GPU"
_NO_AMD = "no AMD GPU"
# CUDA ignores the list from its first invalid number on, so -1 hides every GPU. Slurm sets NoDevFiles in
# jobs without GPUs.
_HIDDEN = {"": "empty", "-1": "-1", "NoDevFiles": "NoDevFiles"}


class _Ptxas(NamedTuple):
    """The ptxas that a Triton would run for a GPU.

    Attributes:
        path: its path; None if it is not where Triton looks.
        release: the CUDA release; empty if unknown.
        variable: the variable that selects another ptxas.
        folders: the folders that were searched.
    """

    path: Path | None
    release: str
    variable: str
    folders: tuple[Path, ...]


@check("gpu.devices", "GPUs and their drivers")
def devices(subject: DoctorContext) -> Iterator[Finding]:
    """List the GPUs and their drivers."""
    gpu_facts = subject.gpus
    for vendor, driver in (("NVIDIA", gpu_facts.nvidia), ("AMD", gpu_facts.amd)):
        vendor_gpus = gpu_facts.of(vendor.lower())
        if vendor_gpus and driver:
            yield ok(f"{', '.join(_counted(vendor_gpus))}; driver {_named(driver)}")
        elif driver and not driver.problem:
            # Its device files exist, so its GPUs may be lost, or were not passed to this container.
            yield note(f"{vendor}'s driver {_named(driver)} is loaded but reports no GPU")
    if gpu_facts.nvidia and gpu_facts.nvidia.problem:
        yield _silent(gpu_facts.nvidia)
    hidden = subject.environ.get("CUDA_VISIBLE_DEVICES")
    if gpu_facts.of("nvidia") and hidden in _HIDDEN:
        yield note(
            f"CUDA_VISIBLE_DEVICES is {_HIDDEN[hidden]}",
            affects="programs started from this shell see no NVIDIA GPU",
            commands=(variables.unset_command("CUDA_VISIBLE_DEVICES"),),
        )
    # Not a fault: Triton compiles for any target without a GPU.
    if not gpu_facts.all and not gpu_facts.nvidia and not gpu_facts.amd:
        yield note(
            "no GPU",
            affects="kernels can be compiled for any target and inspected, but not run",
            remedy="pass a target where Triton asks for one: GPUTarget('cuda', 90, 32)",
        )


def _silent(driver: Driver) -> Finding:
    loaded = f"; the loaded module is {driver.version}" if driver.version else ""
    # "Driver/library version mismatch": the usual state after an update without a restart.
    mismatch = "mismatch" in driver.problem
    return error(
        f"NVIDIA's device files exist, but {driver.problem}{loaded}",
        affects="no kernel runs: 0 active drivers (triton#5570)",
        remedy="the driver was updated while loaded: load the new module, or restart"
        if mismatch
        else "check that the driver is loaded and complete; containers need docker run --gpus all",
        commands=("cat /proc/driver/nvidia/version", "nvidia-smi"),
    )


def _counted(gpu_list: tuple[Gpu, ...]) -> Iterator[str]:
    for gpu, count in Counter(gpu_list).items():
        what = f"compute capability {gpu.arch}" if gpu.vendor == "nvidia" and gpu.arch else gpu.arch
        details = ", ".join(filter(None, (what, f"{gpu.memory_gib:.0f} GiB" if gpu.memory else "")))
        yield f"{f'{count} x ' if count > 1 else ''}{gpu.name} ({details})" if details else gpu.name


def _named(driver: Driver) -> str:
    # Only AMD's own packages give the module a version; the one that comes with the kernel has none.
    version = driver.version or "of the kernel"
    return f"{version} (CUDA {driver.cuda})" if driver.cuda else version


@check("gpu.driver", "the driver's CUDA against the ptxas that Triton would run")
def driver(subject: DoctorContext) -> Iterator[Finding]:
    """Compare the driver's CUDA with that of ptxas."""
    # A driver loads machine code from any ptxas of its own CUDA major version or an older one.
    nvidia_driver = subject.gpus.nvidia
    if not nvidia_driver or not nvidia_driver.cuda or not subject.gpus.of("nvidia"):
        raise NotApplicableError(_NO_NVIDIA)
    for capability in _capabilities(subject):
        # For each architecture: some releases run another ptxas for newer GPUs.
        ptxas = _ptxas(subject, capability)
        if not ptxas.release:
            yield skipped(_no_ptxas(ptxas))
        elif version_key(ptxas.release)[0] <= version_key(nvidia_driver.cuda)[0]:
            how = (
                ""
                if version_key(ptxas.release) <= version_key(nvidia_driver.cuda)
                else ", as within any CUDA major"
            )
            yield ok(
                f"driver {_named(nvidia_driver)} loads code of CUDA {ptxas.release}{how}", ptxas.path or ""
            )
        else:
            yield _too_new(nvidia_driver, ptxas)


def _too_new(seen: Driver, ptxas: _Ptxas) -> Finding:
    oldest: dict[str, int] = configs.load("gpus")["nvidia"]["driver"]
    major = ptxas.release.partition(".")[0]
    requirement = f" ({oldest[major]} or newer)" if major in oldest else ""
    return error(
        f"ptxas of CUDA {ptxas.release}, driver {_named(seen)}",
        str(ptxas.path),
        affects="kernels compile but do not load: 'device kernel image is invalid' (triton#2971)",
        remedy=f"a driver for CUDA {major}{requirement}, or a ptxas of CUDA {seen.cuda.partition('.')[0]}",
        commands=(_other(ptxas, seen.cuda),),
    )


@check("gpu.arch", "the GPU's architecture against ptxas and against this Triton")
def arch(subject: DoctorContext) -> Iterator[Finding]:
    """Compare the GPU's architecture with ptxas: an older ptxas does not know the GPU's name."""
    if not subject.gpus.of("nvidia"):
        raise NotApplicableError(_NO_NVIDIA)
    for capability in _capabilities(subject):
        yield _supported(subject, capability)


def _supported(subject: DoctorContext, capability: str) -> Finding:
    table, version = configs.load("gpus")["nvidia"], subject.triton_version
    # The rows are sorted by release: the last that covers this one has its minimum.
    oldest = next(row["capability"] for row in reversed(table["oldest"]) if covers(version, row["since"]))
    target = f"sm_{capability.replace('.', '')}"
    if version_key(capability) < version_key(oldest):
        return warning(
            f"{target}, and {variables.triton_name(version)} supports compute capability {oldest} and newer",
            affects="some kernels do not compile for it, and nothing is tested on it",
            remedy="use an older Triton, or another GPU",
        )
    # Triton asks for the architecture-specific target of 9.0; since 3.3, also of all that are newer
    # (`sm_arch_from_capability`, triton#5770).
    specific = version_key(capability) >= (9,) and (capability == "9.0" or covers(version, "3.3"))
    requested = target + ("a" if specific else "")
    row, ptxas = table["capability"].get(capability), _ptxas(subject, capability)
    if not ptxas.release:
        return skipped(_no_ptxas(ptxas))
    too_new = _refused(version, ptxas)
    if too_new:
        return too_new
    text = f"{target}, ptxas of CUDA {ptxas.release}"
    # No verdict: a GPU that is newer than the table may well be supported.
    if row is None:
        return note(f"{text}; tritonsmith has no data on this GPU", str(ptxas.path))
    if version_key(row["first"]) <= version_key(ptxas.release) <= version_key(row.get("last", "99")):
        return ok(text, ptxas.path or "")
    good = f"CUDA {row['first']} to {row['last']}" if "last" in row else f"CUDA {row['first']} or newer"
    return error(
        f"{text}, which does not support it",
        str(ptxas.path),
        affects=f"no kernel compiles: Value '{requested}' is not defined for option 'gpu-name' (triton#8539)",
        remedy=f"use a newer Triton, or a ptxas of {good}",
        commands=(_other(ptxas, row["first"]),),
    )


def _other(ptxas: _Ptxas, cuda: str) -> str:
    """Return the command that selects a ptxas of another CUDA."""
    # `up --ptxas` downloads NVIDIA's packages, which begin with CUDA 12; an older one must be installed.
    if version_key(cuda) < version_key(configs.load("toolchain")["ptxas"]["oldest"]):
        return f"export {ptxas.variable}=/usr/local/cuda-{cuda}/bin/ptxas"
    return command("up --ptxas", cuda)


def _refused(version: str, ptxas: _Ptxas) -> Finding | None:
    """Return the error for a ptxas that this Triton refuses, if it does."""
    # Triton derives the PTX version from its ptxas, and stops at an unknown release.
    major = version_key(ptxas.release)[0]
    for row in configs.load("gpus")["nvidia"]["newest-cuda"]:
        if covers(version, "0", row["until"]) and major > row["major"]:
            return error(
                f"{variables.triton_name(version)} does not accept ptxas of CUDA {ptxas.release}",
                str(ptxas.path),
                affects="no kernel compiles: 'Triton only support CUDA 10.0 or higher'",
                remedy=f"a ptxas of CUDA {row['major']}",
                commands=(variables.unset_command(ptxas.variable),),
            )
    return None


def _capabilities(subject: DoctorContext) -> list[str]:
    architectures = {gpu.arch for gpu in subject.gpus.of("nvidia") if gpu.arch}
    return sorted(architectures, key=version_key)


def _ptxas(subject: DoctorContext, capability: str) -> _Ptxas:
    table, version = configs.load("gpus")["nvidia"], subject.triton_version
    row = registry.row_for(version, capability)
    folders = _folders(subject, table["folders"])
    # The variable's name differs by architecture: from sm_100 on Triton runs a ptxas of its own.
    named = subject.environ.get(row["variable"], "")
    # As Triton does: a variable that names no file is ignored, and the ptxas of the package runs.
    candidates = (*([Path(named)] if named else []), *(folder / row["name"] for folder in folders))
    path = next((path for path in candidates if path.is_file()), None)
    return _Ptxas(path, gpus.cuda_release(path) if path else "", row["variable"], folders)


def _folders(subject: DoctorContext, table: dict[str, list[str]]) -> tuple[Path, ...]:
    if subject.checkout:
        return tuple(subject.checkout.root / name for name in table["checkout"])
    packages = subject.packages
    return tuple(packages.purelib / name for name in table["installed"]) if packages else ()


def _no_ptxas(ptxas: _Ptxas) -> str:
    if ptxas.path:
        return f"cannot read the CUDA release of {ptxas.path}"
    looked = " and ".join(map(str, ptxas.folders)) or "neither a checkout nor an installed Triton"
    return f"no ptxas to compare with: {looked}"


@check("gpu.libcuda", "whether Triton finds the driver's libcuda.so.1")
def libcuda(subject: DoctorContext) -> Iterator[Finding]:
    """Search for libcuda as Triton does."""
    if not subject.gpus.of("nvidia"):
        raise NotApplicableError(_NO_NVIDIA)
    search = gpus.libcuda(subject.environ)
    if search.library:
        yield ok(f"libcuda.so.1, by {search.by}", search.library)
        return
    elsewhere: list[str] = configs.load("gpus")["nvidia"]["libcuda"]["elsewhere"]
    # Where containers and WSL put it, without telling ldconfig.
    there = next((folder for folder in elsewhere if (Path(folder) / "libcuda.so.1").exists()), "")
    yield error(
        search.problem,
        affects="no kernel is launched: 'libcuda.so cannot found!' (triton#2110, triton#2883)",
        remedy="name the folder of libcuda.so.1, or refresh the linker's cache",
        commands=(f"export TRITON_LIBCUDA_PATH={there or '/path/of/a/folder'}", "sudo /sbin/ldconfig"),
    )


@check("gpu.amd", "AMD GPUs: supported by this Triton, and accessible to this user")
def amd(subject: DoctorContext) -> Iterator[Finding]:
    """Check that this Triton supports the AMD GPUs, and that this user can open /dev/kfd."""
    amd_driver, amd_gpus = subject.gpus.amd, subject.gpus.of("amd")
    if not amd_driver or not amd_gpus:
        raise NotApplicableError(_NO_AMD)
    for name in sorted({gpu.arch for gpu in amd_gpus if gpu.arch}):
        yield _family(subject.triton_version, name)
    # The device belongs to the group `render`, on older systems to `video`: ROCm's installation guide asks
    # for both.
    if amd_driver.problem:
        yield error(
            amd_driver.problem,
            "/dev/kfd",
            affects="no kernel runs: HIP finds no device",
            remedy="join the groups that ROCm requires, and log in again; "
            "a container needs --device=/dev/kfd --device=/dev/dri",
            commands=(f"sudo usermod -a -G render,video {getpass.getuser()}",),
        )
    else:
        yield ok("this user can open /dev/kfd", "/dev/kfd")


def _family(version: str, name: str) -> Finding:
    families = configs.load("gpus")["amd"]["family"]
    rows = [row for row in families if any(fnmatchcase(name, pattern) for pattern in row["arch"])]
    for row in rows:
        if covers(version, row["since"], row.get("until", "")):
            return ok(f"{name} ({row['name']}), supported by {variables.triton_name(version)}")
    # "since" only if support begins later: it may also have ended (gfx940 in 3.2), or never existed.
    later = rows and not covers(version, rows[0]["since"])
    since = f"; supported since {rows[0]['since']}" if later else ""
    return error(
        f"{name}: not supported by {variables.triton_name(version)}{since}",
        affects='kernels stop with "unsupported target" (triton#8992)',
        remedy="use a Triton that supports it, or another GPU",
    )


@check("gpu.known-issues", "known bugs of this Triton, its LLVM and its ptxas on these GPUs")
def issues(subject: DoctorContext) -> Iterator[Finding]:
    """List the known issues of the installed Triton."""
    python, version = subject.need_packages(), subject.installed_triton
    if not version:
        raise NotApplicableError("no Triton is installed")
    libraries = libtriton.find(python.purelib / "triton")
    llvm = libtriton.read(libraries[0]).llvm_commit if libraries else ""
    facts = [
        IssueFacts(version, f"sm_{capability.replace('.', '')}", _ptxas(subject, capability).release, llvm)
        for capability in _capabilities(subject)
    ]
    facts += [
        IssueFacts(version, arch, llvm=llvm) for arch in sorted({gpu.arch for gpu in subject.gpus.of("amd")})
    ]
    # Without a GPU, only issues that every target has are certain.
    facts = facts or [IssueFacts(version, llvm=llvm)]
    rows = [row for row in known_issues.table() if any(map(row.applies, facts))]
    for row in rows:
        # A kernel without the pattern is not affected: that there may be such kernels is no reason to warn.
        affects = "" if row.recognizable else "this cannot be recognized in a kernel: any may be affected"
        remedy = "kernel.lint, farm and triage recognize the kernels" if row.recognizable else ""
        yield (note if row.recognizable else warning)(row.sentence, affects=affects, remedy=remedy)
    if not rows:
        yield ok(f"none is known of Triton {version} here")


# Group `gpu`, second half: faulty, slowed or reset-pending GPUs, and errors in the log.

_NO_NVIDIA_DRIVER = "no NVIDIA driver"
_XIDS = "https://docs.nvidia.com/deploy/xid-errors/"
_XID_EFFECTS = {
    "gpu": "usually the GPU, its link or its driver failed; results since then are in doubt",
    "program": "the program that hit it was stopped",
}


@check("gpu.memory", "ECC errors and remapped rows of NVIDIA GPUs")
def memory(subject: DoctorContext) -> Iterator[Finding]:
    """Check for memory errors and failed repairs."""
    # `volatile` counters start again when the driver is loaded. `aggregate` ones cover the GPU's whole life,
    # and a row that was repaired years ago is no fault today: hence a note.
    yield from _signs(subject, "gpu.memory", "no uncorrectable memory error, no failed repair")


@check("gpu.reset", "whether NVIDIA GPUs need a reset")
def reset(subject: DoctorContext) -> Iterator[Finding]:
    """Find pending resets: such a GPU may still compute, with parts that are known to be bad."""
    # An nvidia-smi that hangs is itself a sign: it waits for a GPU that does not answer. One that is not
    # installed ("no nvidia-smi on PATH") is not.
    if isinstance(subject.smi, str) and subject.gpus.of("nvidia") and not subject.smi.startswith("no "):
        yield warning(
            subject.smi,
            affects="a GPU may hang or be lost",
            remedy="run it by hand: nvidia-smi -q; if that hangs too, restart the machine",
        )
        return
    for gpu in _gpus(subject):
        # Such a GPU has one of these texts in place of values, in whichever element.
        lost = gpu.anywhere(configs.load("gpu-health")["unreadable"]["lost"])
        if lost:
            yield error(
                f"{gpu.name}: nvidia-smi says {lost!r} instead of values",
                affects="no kernel runs on it",
                remedy="end the programs that use it, then `sudo nvidia-smi --gpu-reset -i ID`, or restart",
            )
    yield from _signs(subject, "gpu.reset", "no reset is pending")


@check("gpu.throttle", "what is slowing NVIDIA GPUs down")
def throttle(subject: DoctorContext) -> Iterator[Finding]:
    """Find reasons for throttling, which show only while a program runs."""
    yield from _signs(subject, "gpu.throttle", "nothing is slowing it down")


@check("gpu.xid", "errors (Xid) that NVIDIA's driver reported since the start of the machine")
def xid(subject: DoctorContext) -> Iterator[Finding]:
    """Report the Xids in the kernel's log."""
    if not subject.gpus.nvidia:
        raise NotApplicableError(_NO_NVIDIA_DRIVER)
    text = gpus.read_kernel_log()
    if text is None:
        raise NotApplicableError("this user may not read the kernel's log: sudo dmesg | grep Xid")
    table: dict[str, Any] = configs.load("gpu-health")["xid"]
    counts = Counter(gpus.xids(text.splitlines()))
    for (number, bus), count in counts.items():
        # An illegal address in a kernel is enough for a program's Xid, and harms no other program. An unknown
        # number is a note, too: it does not say whose fault it was.
        row = table.get(str(number), {"by": "", "says": "not in tritonsmith's table"})
        make = warning if row["by"] == "gpu" else note
        yield make(
            f"Xid {number} on {bus}{f', {count} times' if count > 1 else ''}: {row['says']}",
            affects=_XID_EFFECTS.get(row["by"], ""),
            remedy=f"see {_XIDS}; Xids stay in the log until the next start",
        )
    if not counts:
        yield ok("no Xid in the kernel's log")


@check("gpu.uptime", "uptime of NVIDIA's driver and of the machine")
def uptime(subject: DoctorContext) -> Iterator[Finding]:
    """Report a driver that was replaced while the machine was running."""
    driver, up = subject.gpus.nvidia, machine.uptime()
    if not driver or up is None:
        raise NotApplicableError(_NO_NVIDIA_DRIVER if not driver else "the uptime cannot be read")
    text = f"driver {driver.version or 'unknown'}, machine up {short_age(up)}"
    try:
        change = history.driver_since(history.read(subject.env.history), driver.version)
    except SmithError:
        change = None  # `doctor` reports a damaged history
    if change is None:
        yield ok(f"{text}; the history of this environment records no driver change")
    # Younger than the last start. What was started before the change has the old libraries mapped.
    elif change.seconds < up:
        yield note(
            f"{text}; the driver changed {short_age(change.seconds)} ago (history), without a restart since",
            affects="programs started before that use the old driver's libraries",
            remedy="restart those programs, or the machine",
        )
    else:
        yield ok(f"{text}; the driver changed {short_age(change.seconds)} ago (history)")


def _gpus(subject: DoctorContext) -> tuple[SmiGpu, ...]:
    """Return the values of nvidia-smi.

    Raises:
        NotApplicableError: there is no driver, or no answer.
    """
    if not subject.gpus.nvidia:
        raise NotApplicableError(_NO_NVIDIA_DRIVER)
    if isinstance(subject.smi, str):
        raise NotApplicableError(subject.smi)
    return subject.smi


def _signs(subject: DoctorContext, name: str, fine: str) -> Iterator[Finding]:
    rows = [row for row in configs.load("gpu-health")["sign"] if row["check"] == name]
    for gpu in _gpus(subject):
        values = [(row, gpu.value(*row["paths"])) for row in rows]
        findings = [_finding(gpu, row, value) for row, value in values if _is_bad(value, row["bad"])]
        if findings:
            yield from findings
        # Silence is no good news: a GPU without ECC answers N/A, which reads as empty, to every question.
        elif any(value for _, value in values):
            yield ok(f"{gpu.name}: {fine}")
        else:
            yield skipped(f"{gpu.name}: its driver does not report it")


def _is_bad(value: str, bad: list[str]) -> bool:
    number = value.split(maxsplit=1)[0] if value else ""
    return value in bad or (">0" in bad and number.isdecimal() and int(number) > 0)


def _finding(gpu: SmiGpu, row: dict[str, Any], value: str) -> Finding:
    text = f"{gpu.name}: {row['says'].format(value=value)}"
    return Finding(row["status"], text, affects=row["affects"], remedy=row.get("remedy", ""))
