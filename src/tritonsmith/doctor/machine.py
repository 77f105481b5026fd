"""Group `machine`: memory, disk, C++ runtime, clock and file systems under the build."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from tritonsmith.build.cmake import bounded_jobs
from tritonsmith.core import configs
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
from tritonsmith.facts import git, machine
from tritonsmith.facts import machine as machines

_ELSEWHERE = {
    "workspace": ("export TRITONSMITH_HOME=/local/tritonsmith",),
    "compiler cache": ("export CCACHE_DIR=/local/ccache",),
}
# Seconds; coarser than the time stamps of any file system for builds, which round.
_SKEW = 2.0


@check("machine.memory", "memory for each compile and link job")
def memory(subject: DoctorContext) -> Iterator[Finding]:
    """Compare RAM, or the cgroup's limit, with the jobs that would run."""
    host, settings = subject.host, subject.settings
    need = configs.load("resources")["memory"]
    link = need["link-job"][settings.llvm.debug_info]
    jobs = bounded_jobs(host, settings.toolchain, settings.llvm.debug_info)
    limited = " by its cgroup" if host.granted == host.memory else ""
    fitting = f"{jobs.compile} compile and {jobs.link} link jobs"
    text = f"{host.memory_gib:.1f} GiB{limited}, {host.cores} cores: {fitting}"
    needed = max(jobs.compile * need["compile-job"], jobs.link * link)
    # setup.py's own default, whatever memory there is.
    pip_jobs = 2 * host.cores
    if needed > host.memory_gib:
        yield warning(
            f"{text}, which need {needed:.0f} GiB",
            affects="compiles or links are killed (triton#4249)",
            remedy="fewer jobs (jobs and link-jobs under [toolchain]), more swap, or another machine",
            commands=("invoke build-triton --jobs 1",),
        )
    elif pip_jobs * need["compile-job"] > host.memory_gib and not subject.environ.get("MAX_JOBS"):
        yield note(
            text,
            affects=f"a plain `pip install` of Triton starts {pip_jobs} jobs, regardless of memory",
            remedy="limit the jobs; `invoke install-triton` does so itself",
            commands=(f"export MAX_JOBS={jobs.compile}",),
        )
    else:
        yield ok(text)


@check("machine.disk", "free disk space for builds")
def disk(subject: DoctorContext) -> Iterator[Finding]:
    """Compare the free space in the workspace with what builds of Triton and LLVM need."""
    root = subject.space.root
    if why := machines.why_not_writable(root):
        yield error(
            why,
            str(root),
            affects="nothing can be set up or built",
            remedy="set TRITONSMITH_HOME to a writable folder",
        )
        return
    free = machines.disk_free(root)
    need = configs.load("resources")["disk"]
    text = f"{free:.0f} GiB free"
    settings = subject.settings
    build_type = settings.llvm.build_type
    least = need["wheel-env"] if settings.triton.wheel else need["triton-build"]
    # Only Triton's own need is an error: an LLVM from source can be replaced by a prebuilt one.
    if free < least:
        yield error(
            text,
            str(root),
            affects=f"this environment alone needs about {least:.0f} GiB",
            remedy="free some space, or set TRITONSMITH_HOME to a folder on a larger disk",
        )
    elif not settings.triton.wheel and free < need["llvm-build"][build_type]:
        yield note(
            text,
            str(root),
            affects=f"LLVM from source ({build_type}) needs about {need['llvm-build'][build_type]:.0f} GiB",
            remedy="use an installed or prebuilt LLVM, or set TRITONSMITH_HOME to a larger disk",
        )
    else:
        yield ok(text, root)


@check("machine.libstdcxx", "glibc and libstdc++ for upstream's prebuilt LLVM")
def libstdcxx(subject: DoctorContext) -> Iterator[Finding]:
    """Compare the C and C++ runtime with the prebuilt LLVM that would be chosen."""
    host, checkout = subject.host, subject.checkout
    text = f"glibc {host.glibc or 'none'}, GLIBCXX_{host.glibcxx or 'none'}"
    if host.system != "Linux":
        raise NotApplicableError(f"{host.system} has neither")
    if checkout is None or checkout.pin is None:
        raise NotApplicableError(f"{text}; no checkout, so no prebuilt LLVM to compare with")
    # These import the store, and few users of the doctor have a checkout.
    from tritonsmith.build.llvm import prebuilt  # noqa: PLC0415
    from tritonsmith.build.triton import source  # noqa: PLC0415

    archive = prebuilt.archive_for(source.request_for(subject.settings, checkout), host)
    if archive is None:
        yield note(
            text,
            affects=f"upstream has no prebuilt LLVM for {host.system} {host.arch} with this C library",
            commands=("invoke setup-mlir --provider source",),
        )
    elif archive.note:
        yield warning(
            text,
            affects=f"upstream's setup.py downloads one that does not run here (triton#7088): {archive.note}",
            remedy="setup-mlir downloads the right one; for a plain pip build (Triton 3.5 or later) set",
            commands=(f"export TRITON_LLVM_SYSTEM_SUFFIX={archive.suffix}",),
        )
    else:
        yield ok(f"{text}; the {archive.suffix} build runs here")


@check("machine.clock", "files with time stamps in the future")
def clock(subject: DoctorContext) -> Iterator[Finding]:
    """Find files with time stamps in the future."""
    # Ninja compares time stamps: with a skewed clock it rebuilds everything, or nothing.
    now = time.time()
    checked = [path for path in _often_written(subject) if path.is_file()]
    ahead = {path: path.stat().st_mtime - now for path in checked}
    late = {path: seconds for path, seconds in ahead.items() if seconds > _SKEW}
    if not checked:
        yield skipped("nothing built here yet, so no time stamps to check")
    elif late:
        path, seconds = max(late.items(), key=lambda item: item[1])
        yield warning(
            f"written {seconds:.0f} s from now",
            str(path),
            affects="Ninja rebuilds too much or too little; ccache ignores new headers",
            remedy="correct the clock (chronyc, timedatectl), or build on a local disk; then touch the file",
            commands=("timedatectl",),
        )
    else:
        yield ok(f"no file is from the future ({len(checked)} checked)")


def _often_written(subject: DoctorContext) -> Iterator[Path]:
    """Yield files that every configure, build and git command writes."""
    # A clock that was set back shows in them first, and a walk over all sources would take seconds.
    folders = [subject.env.build, subject.env.path / "receipts"]
    names = (
        "build.ninja",
        ".ninja_log",
        ".ninja_deps",
        "CMakeCache.txt",
        "setup-mlir.json",
        "build-triton.json",
    )
    yield from (folder / name for folder in folders for name in names)
    if subject.checkout:
        root = subject.checkout.root
        yield from (
            # The index of a worktree is not below `.git`, which is a file there.
            (git.git_folder(root) or root / ".git") / "index",
            root / "CMakeLists.txt",
            root / "python" / "triton" / "_C" / "libtriton.so",
        )


@check("machine.filesystem", "network file systems under builds and compiler caches")
def filesystem(subject: DoctorContext) -> Iterator[Finding]:
    """Find builds and caches on network file systems."""
    places = {
        "workspace": subject.space.root,
        "checkout": subject.checkout.root if subject.checkout else None,
        "compiler cache": subject.ccache.folder if subject.ccache else None,
    }
    systems = {what: machine.file_system_of(path) for what, path in places.items() if path}
    remote = {what: system for what, system in systems.items() if system and system.network}
    for what, system in remote.items():
        yield warning(
            f"the {what} is on {system.kind}, mounted at {system.mount}",
            str(places[what]),
            affects="each of thousands of files costs a round trip; locks and time stamps may be unreliable",
            remedy=f"move the {what} to a local disk",
            commands=_ELSEWHERE.get(what, ()),
        )
    if not remote:
        yield ok(
            ", ".join(f"{what} on {system.kind}" for what, system in systems.items() if system) or "local"
        )
