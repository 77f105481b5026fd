"""Group `tools`, second part: compiler caches that reach beyond this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tritonsmith.build import compiler_cache
from tritonsmith.build.triton import precompiled
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import ConfigError
from tritonsmith.doctor.check import check
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import (
    Finding,
    NotApplicableError,
    error,
    note,
    of_error,
    ok,
    skipped,
    warning,
)
from tritonsmith.facts import cmake_cache, remote_storage, tools

_GUIDE = "docs/scale-out.md has the whole setup"
_SOCKETS = ("/var/run/icecc/iceccd.socket", "/var/run/iceccd.socket", "~/.iceccd.socket")  # icecc 1.4
_PATIENCE = 0.5  # seconds


def _compiles(subject: DoctorContext) -> bool:
    return not subject.settings.triton.wheel


@check("tools.ccache-remote", "the compiler cache's remote storage: reachable, fast, with hits")
def remote(subject: DoctorContext) -> Iterator[Finding]:
    """Check the remote storage of an environment that has one."""
    cache = subject.settings.cache
    if not (cache.remote and _compiles(subject)):
        raise NotApplicableError("this environment has no remote storage")
    try:
        compiler_cache.check_remote(cache.remote)
    except ConfigError as failure:
        yield of_error(failure)
        return
    answer = remote_storage.ask(cache.remote, write=cache.remote_write, timeout=_PATIENCE)
    limit = configs.load("resources")["ccache"]["remote-connect"]
    if answer.trouble:
        yield warning(
            f"unusable: {answer.trouble}",
            cache.remote,
            affects="results of other machines are not found: everything compiles here",
            remedy=f"start the storage, or remove `remote` from the env file; {_GUIDE}",
        )
    elif answer.seconds > limit:
        yield warning(
            f"answers after {answer.seconds * 1000:.0f} ms",
            cache.remote,
            affects=f"ccache's connections time out after {limit * 1000:.0f} ms, so most compiles miss",
            remedy="use a closer storage, or a mounted folder",
        )
    else:
        yield ok(f"answers in {answer.seconds * 1000:.0f} ms; {_rate(subject)}", cache.remote)


def _rate(subject: DoctorContext) -> str:
    statistics = subject.ccache
    requests = statistics.remote_hits + statistics.remote_misses if statistics else 0
    if statistics is None or not requests:
        return "no requests so far"
    failed = f", {statistics.remote_errors} errors" if statistics.remote_errors else ""
    return f"{100 * statistics.remote_hits / requests:.0f} % of {requests} requests were hits{failed}"


@check("tools.ccache-headers", "precompiled headers where machines share compiles")
def headers(subject: DoctorContext) -> Iterator[Finding]:
    """Check precompiled headers, which contain absolute paths, and which icecc does not send."""
    cache, mode = subject.settings.cache, subject.settings.llvm.precompiled_headers
    if not _compiles(subject) or cache.launcher != "ccache":
        raise NotApplicableError("this environment compiles nothing through ccache")
    outside = not cache.remote and subject.ccache is not None and subject.ccache.remote
    if not (cache.remote or cache.distribute or outside):
        yield skipped("compiles are not shared with other machines")
    elif mode == "on" or (mode == "auto" and outside):
        origin = " of ccache's own settings" if outside else ""
        yield warning(
            f'precompiled-headers = "{mode}" and a remote storage{origin}, or other machines that compile',
            affects="an LLVM from source: files that use such a header are compiled here each time",
            remedy='precompiled-headers = "off" under [llvm] of the env file',
        )
    else:
        yield ok("off")


@check("tools.precompiled", "the precompiled headers of Triton's build folder")
def triton_headers(subject: DoctorContext) -> Iterator[Finding]:
    """Compare the headers that the build folder keeps with the sources' current includes."""
    build, settings = subject.env.build, subject.settings.triton
    cache = cmake_cache.read(build) if _compiles(subject) else None
    if cache is None:
        raise NotApplicableError("no build of this environment is configured")
    levels = cache.get(precompiled.PREFIX)
    if not levels:
        yield ok(f'none; the env file says "{settings.precompiled_headers}"', build)
        return
    fresh = precompiled.choose(subject.need_checkout().root, settings.backends, {})
    names = [f"{precompiled.PREFIX}_{level}_HEADERS" for level in levels.split(";")]
    count = sum(len(cache.get(name).split(";")) for name in names)
    if all(fresh.get(name) == cache.get(name) for name in (precompiled.PREFIX, *names)):
        yield ok(f"{count} headers, which most sources include", build)
    else:
        yield note(
            f"{count} headers; what the sources include now would make another choice",
            str(build),
            affects="compiles may take longer than need be",
            remedy="choose them again, which compiles everything once more",
            commands=(command("build-triton", env=subject.named, reconfigure=True),),
        )


@check("tools.ccache-folders", "the ccache settings stored in the build folder")
def folders(subject: DoctorContext) -> Iterator[Finding]:
    """Compare `CMAKE_CXX_COMPILER_LAUNCHER` with the env file and the disk."""
    cache = cmake_cache.read(subject.env.build)
    words = cache.get("CMAKE_CXX_COMPILER_LAUNCHER").split(";") if cache else []
    stored = dict(word.split("=", 1) for word in words if word.startswith("CCACHE_") and "=" in word)
    base = stored.get("CCACHE_BASEDIR")
    if not base:
        raise NotApplicableError("no build of this environment stores ccache settings")
    remote = stored.get("CCACHE_REMOTE_STORAGE", stored.get("CCACHE_SECONDARY_STORAGE", ""))
    link = subject.env.build / "source"
    if not subject.env.build.is_relative_to(base) or not link.is_dir():
        text, affects = (
            f"base_dir {base} and {link}: moved or missing",
            "compiles of other worktrees do not hit",
        )
    elif remote.partition("|")[0] != subject.settings.cache.remote:
        text = f"configured with {remote.partition('|')[0] or 'no remote storage'}, the env file says "
        text += subject.settings.cache.remote or "none"
        affects = "a plain `ninja` uses the old setting"
    else:
        yield ok(f"paths below {base} are relative, and so is the debug info", subject.env.build)
        return
    again = (command("build-triton", env=subject.named),)
    yield warning(text, str(subject.env.build), affects=affects, commands=again)


@check("tools.icecc", "icecc's daemon, which sends compiles to other machines")
def icecc(subject: DoctorContext) -> Iterator[Finding]:
    """Check icecc: without the program no compile starts; without the daemon all compiles run here."""
    if subject.settings.cache.distribute != "icecc" or not _compiles(subject):
        raise NotApplicableError("this environment does not distribute compiles")
    program = tools.find("icecc")
    if program is None:
        yield error(
            "no icecc on PATH; ccache runs it for each compile",
            affects="no compile starts",
            remedy=f"install icecc, or remove `distribute` from the env file; {_GUIDE}",
            commands=("apt install icecc",),
        )
        return
    named = subject.environ.get("ICECC_TEST_SOCKET")
    sockets = [Path(name).expanduser() for name in ((named,) if named else _SOCKETS)]
    if any(remote_storage.listens(path, timeout=_PATIENCE) for path in sockets if path.exists()):
        yield ok(f"icecc {program.version}, and its daemon answers".replace("  ", " "), program.path)
    else:
        yield warning(
            "no iceccd answers on this machine",
            str(program.path),
            affects="all compiles run here, each after looking for the daemon in vain",
            remedy=f"start the daemon with the scheduler's address; {_GUIDE}",
            commands=("systemctl start iceccd",),
        )


@check("tools.launcher", "launchers other than ccache: installed, and compatible with this build")
def launcher(subject: DoctorContext) -> Iterator[Finding]:
    """Check other launchers, which read their settings from environment variables."""
    name, debug_info = subject.settings.cache.launcher, subject.settings.llvm.debug_info
    if name not in ("sccache", "recc") or not _compiles(subject):
        raise NotApplicableError("the launcher is ccache, or none")
    program = tools.find(name)
    if program is None:
        yield warning(f"no {name} on PATH", affects="compiles run without a cache")
    elif name == "sccache" and debug_info == "split":
        yield warning(
            f"sccache {program.version} and split debug info".replace("  ", " "),
            str(program.path),
            affects="clang's compiles end with a fatal error (mozilla/sccache#1593)",
            remedy='launcher = "ccache" under [cache], or debug-info = "full" under [llvm]',
        )
    elif name == "recc" and not subject.environ.get("RECC_SERVER"):
        yield warning(
            "recc, and RECC_SERVER is not set",
            str(program.path),
            affects="recc looks for a server on this machine, and compiles fail without one",
            remedy=f"name the server; {_GUIDE}",
            commands=("export RECC_SERVER=grpc://HOST:PORT",),
        )
    else:
        yield ok(f"{name} {program.version}".strip(), program.path)
