"""Group `tools`: the programs that builds need, in versions that suit this Triton."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tritonsmith.build import compiler_cache, precompiled_headers
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.settings import SPLIT_DWARF
from tritonsmith.core.errors import ConfigError
from tritonsmith.core.plan import Run
from tritonsmith.core.text import version_key
from tritonsmith.doctor.check import (
    Check,
    DoctorContext,
    Finding,
    NotApplicableError,
    check,
    error,
    note,
    of_error,
    ok,
    skipped,
    warning,
)
from tritonsmith.facts import build_folder, ccache, checkout, git, tools
from tritonsmith.facts import machine as machines
from tritonsmith.facts.ccache import Ccache
from tritonsmith.facts.tools import Tool


def _program(row: dict[str, Any]) -> Check:
    def look(subject: DoctorContext) -> Iterator[Finding]:
        yield _judge(row, subject.programs[row["name"]], subject)

    return Check(f"tools.{row['id']}", f"{row['name']}: installed, in a supported version", look)


def _judge(row: dict[str, Any], tool: Tool | None, subject: DoctorContext) -> Finding:
    building = not subject.settings.triton.wheel
    advice: dict[str, Any] = {
        "affects": row["affects"],
        "remedy": row["remedy"],
        "commands": tuple(row["commands"]),
    }
    # An environment of a released wheel compiles nothing, so a missing compiler is no fault there.
    if tool is None:
        return Finding("error" if building and row["needed"] else "note", f"no {row['name']}", **advice)
    text = f"{row['name']} {tool.version or 'of unknown version'}"
    if not _fits(tool.version, row["range"]):
        return warning(f"{text}; required: {row['range']}", str(tool.path), **advice)
    requirement = _required_by_checkout(row["name"], subject)
    if not _fits(tool.version, requirement):
        return note(
            f"{text}; this checkout's pyproject.toml requires {requirement}",
            str(tool.path),
            affects="a pip build with build isolation uses another version than `invoke build-triton`",
        )
    return ok(text, tool.path)


def _fits(version: str, specifier: str) -> bool:
    return not version or SpecifierSet(specifier).contains(version, prereleases=True)


def _required_by_checkout(name: str, subject: DoctorContext) -> str:
    """Return the requirement of the checkout's own pyproject.toml; empty if there is none."""
    requirements = map(Requirement, subject.checkout.requires if subject.checkout else ())
    return next((str(line.specifier) for line in requirements if line.name == name), "")


@check("tools.cmake-on-path", "the CMake on PATH, which a plain pip build runs")
def cmake_on_path(subject: DoctorContext) -> Iterator[Finding]:
    """Check the `cmake` on PATH."""
    # tritonsmith calls its own CMake, from the pinned build requirements; setup.py
    # takes what PATH has first.
    program = tools.find("cmake")
    if program is None:
        raise NotApplicableError("no cmake on PATH; tritonsmith brings its own")
    known = next(row["range"] for row in configs.load("tools")["tool"] if row["name"] == "cmake")
    required = _required_by_checkout("cmake", subject) or known
    if not _fits(program.version, required):
        yield note(
            f"cmake {program.version}; this Triton requires {required}",
            str(program.path),
            affects="`pip install -e .` and `make` outside tritonsmith fail to configure (triton#6330)",
            remedy="put a supported one before it on PATH",
            commands=(f"pip install 'cmake{known}'",),
        )
    else:
        yield ok(f"cmake {program.version}", program.path)


def _ccache(subject: DoctorContext) -> Ccache:
    """Return the statistics of ccache.

    Raises:
        NotApplicableError: the statistics are not available.
    """
    if subject.settings.cache.launcher != "ccache" or subject.settings.triton.wheel:
        raise NotApplicableError("this environment compiles nothing through ccache")
    if subject.ccache is None:
        raise NotApplicableError("no working ccache (see tools.ccache)")
    return subject.ccache


@check("tools.ccache-size", "the compiler cache's size limit against this build's size")
def ccache_size(subject: DoctorContext) -> Iterator[Finding]:
    """Compare the size limit with a build: a smaller cache evicts its start before its end."""
    statistics = _ccache(subject)
    need = configs.load("resources")["ccache"]
    receipt = subject.receipt("setup-mlir") or {}
    # An LLVM that was downloaded compiles nothing, and needs no room in the cache.
    from_source = receipt.get("provider") == "source" or receipt.get("kind") == "built"
    needed = need["triton"] + (need["llvm"][subject.settings.llvm.build_type] if from_source else 0.0)
    limit = f"of {statistics.limit_gib:.1f} GiB used" if statistics.limit_gib else "GiB used, no limit"
    text = f"{statistics.used_gib:.1f} {limit}"
    if not statistics.limit_gib or statistics.limit_gib >= needed:
        yield ok(text, statistics.folder)
        return
    # Twice the build: ccache evicts at the limit, and the next build's start should still find its own.
    size = f"{math.ceil(2 * needed)}G"
    setting = ("ccache", "--set-config", f"max_size={size}")
    # The variable takes precedence over ccache.conf, which a fix would change in vain.
    ruled = bool(subject.environ.get("CCACHE_MAXSIZE"))
    yield warning(
        f"{text}; this environment's build needs about {needed:.1f}",
        str(statistics.folder),
        affects="the cache evicts the start of a build before its end, so nothing hits",
        remedy=f"raise the limit (max_size={statistics.limit_gib:.3g}Gi restores the old one)",
        commands=(f"export CCACHE_MAXSIZE={size}" if ruled else shlex.join(setting),),
        fix=() if ruled else (Run(setting, cwd=subject.cwd, phase="compiler cache"),),
    )


@check("tools.ccache-hits", "the compiler cache's hit rate")
def ccache_hits(subject: DoctorContext) -> Iterator[Finding]:
    """Check the hit rate; a poor one over many compiles means that the key changes from build to build."""
    statistics = _ccache(subject)
    table = configs.load("resources")["ccache"]
    compiles = statistics.hits + statistics.misses
    # The first build of a fresh cache misses throughout, which is no fault.
    if statistics.hit_rate is None or compiles < table["enough-compiles"]:
        yield ok(f"{compiles} compiles so far: too few for a hit rate", statistics.folder)
        return
    text = f"{100 * statistics.hit_rate:.0f} % of {compiles} compiles were hits"
    if statistics.hit_rate >= table["poor-hit-rate"]:
        yield ok(text, statistics.folder)
        return
    yield note(
        text,
        str(statistics.folder),
        affects="rebuilds recompile what was compiled before",
        remedy="zero the statistics, build twice, and look at the misses",
        commands=("ccache --zero-stats", "ccache --show-stats --verbose"),
    )


@check("tools.ccache-base-dir", "whether worktrees share compiles")
def ccache_base_dir(subject: DoctorContext) -> Iterator[Finding]:
    """Check whether worktrees can share compiles."""
    statistics = _ccache(subject)
    # Absolute paths, and with debug info the current folder, are in ccache's key, and keep two
    # worktrees' compiles apart.
    several = git.worktrees(subject.checkout.root) if subject.checkout else ()
    if len(several) <= 1:
        raise NotApplicableError("at most one worktree")
    # A list since ccache 4.13.
    bases = [part for part in statistics.base_dir.split(":") if part]
    held = all(any(root.is_relative_to(part) for part in bases) for root in several)
    hash_dir = "on" if statistics.hash_dir else "off"
    text = f"{len(several)} worktrees; base_dir is {statistics.base_dir or 'not set'}, hash_dir is {hash_dir}"
    if held and not statistics.hash_dir:
        yield ok(text, statistics.folder)
        return
    common = os.path.commonpath(several)
    # A base_dir of / would make the system's headers relative, too.
    settings = [] if held or common == "/" else [f"base_dir={common}"]
    settings += ["hash_dir=false"] if statistics.hash_dir else []
    yield note(
        text,
        str(statistics.folder),
        affects="pip's build folders, inside the worktrees, recompile what another worktree has compiled",
        remedy="make paths relative below the folder that holds them all, and leave the current folder out"
        " of the key (debug info then names the folder of the first compile)",
        commands=tuple(shlex.join(("ccache", "--set-config", setting)) for setting in settings),
    )


@check("tools.lit", "the lit that Triton's tests run with")
def lit(subject: DoctorContext) -> Iterator[Finding]:
    """Check lit's version: releases from 20 on refuse Triton's test/lit.cfg.py."""
    packages = subject.packages
    if packages is None:
        raise NotApplicableError("no Python environment yet")
    requirement = checkout.lit_requirement()
    version = dict(packages.dists).get("lit", "")
    if not version:
        yield skipped(f"not installed for {packages.executable}; `invoke build-triton` installs it")
    elif SpecifierSet(requirement.removeprefix("lit")).contains(version, prereleases=True):
        yield ok(f"lit {version}", packages.executable)
    else:
        yield warning(
            f"lit {version}; required: {requirement}",
            str(packages.executable),
            affects="`check-triton-lit-tests` fails in test/lit.cfg.py",
            commands=(f"{packages.executable} -m pip install '{requirement}'",),
        )


@check("tools.libstdcxx", "an older libstdc++ that hides the system's")
def libstdcxx(subject: DoctorContext) -> Iterator[Finding]:
    """Find a libstdc++ from conda or LD_LIBRARY_PATH, which is loaded before the system's (triton#1543)."""
    system = subject.host.glibcxx
    if not system:
        raise NotApplicableError("no system libstdc++ to compare with")
    conda = subject.environ.get("CONDA_PREFIX")
    folders = [Path(part) for part in subject.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    folders += [Path(conda) / "lib"] if conda else []
    older = False
    for library in dict.fromkeys(folder / "libstdc++.so.6" for folder in folders):
        tag = machines.glibcxx_of(library)
        # A newer one is fine: it has all symbols of the older.
        if tag and version_key(tag) < version_key(system):
            older = True
            yield warning(
                f"GLIBCXX_{tag}, the system's has GLIBCXX_{system}",
                str(library),
                affects="a libtriton.so built here does not load (triton#1543, triton#7946)",
                remedy="update that environment's libstdc++, or remove it from LD_LIBRARY_PATH",
                commands=("conda install -c conda-forge libstdcxx-ng",)
                if conda and library.is_relative_to(conda)
                else ("unset LD_LIBRARY_PATH",),
            )
    if not older:
        yield ok(f"GLIBCXX_{system}, and no older one hides it")


# A tuple, so that `checks_of`, which collects a module's checks, does not list them a second time.
PROGRAMS = tuple(map(_program, configs.load("tools")["tool"]))


# Group `tools`, second part: compiler caches that reach beyond this machine.

_GUIDE = "docs/scale-out.md has the whole setup"
_SOCKETS = ("/var/run/icecc/iceccd.socket", "/var/run/iceccd.socket", "~/.iceccd.socket")  # icecc 1.4
_TIMEOUT = 0.5  # seconds


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
    answer = ccache.ask_storage(cache.remote, write=cache.remote_write, timeout=_TIMEOUT)
    # ccache gives up on a storage that takes longer to connect, and compiles.
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
    # A remote storage in the user's ccache.conf, which the env file does not know.
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
    cache = build_folder.read_cmake_cache(build) if _compiles(subject) else None
    if cache is None:
        raise NotApplicableError("no build of this environment is configured")
    levels = cache.get(precompiled_headers.PREFIX)
    if not levels:
        yield ok(f'none; the env file says "{settings.precompiled_headers}"', build)
        return
    fresh = precompiled_headers.choose_headers(subject.need_checkout().root, settings.backends, {})
    names = [f"{precompiled_headers.PREFIX}_{level}_HEADERS" for level in levels.split(";")]
    count = sum(len(cache.get(name).split(";")) for name in names)
    if all(fresh.get(name) == cache.get(name) for name in (precompiled_headers.PREFIX, *names)):
        yield ok(f"{count} headers, which most sources include", build)
    else:
        yield note(
            f"{count} headers; the choice for what the sources include now would differ",
            str(build),
            affects="compiles may take longer than necessary",
            remedy="choose them again, which compiles everything once more",
            commands=(command("build-triton", env=subject.named, reconfigure=True),),
        )


@check("tools.ccache-folders", "the ccache settings stored in the build folder")
def folders(subject: DoctorContext) -> Iterator[Finding]:
    """Compare `CMAKE_CXX_COMPILER_LAUNCHER` with the env file and the disk."""
    cache = build_folder.read_cmake_cache(subject.env.build)
    words = cache.get("CMAKE_CXX_COMPILER_LAUNCHER").split(";") if cache else []
    # The launcher in CMake's cache is `env;NAME=VALUE;...;ccache`: the values are
    # those of the last configure.
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
    # The file of a socket outlives a killed daemon: only a connection shows that one listens.
    sockets = [Path(name).expanduser() for name in ((named,) if named else _SOCKETS)]
    if any(ccache.listens(path, timeout=_TIMEOUT) for path in sockets if path.exists()):
        yield ok(f"icecc {program.version}, and its daemon answers".replace("  ", " "), program.path)
    else:
        yield warning(
            "no iceccd answers on this machine",
            str(program.path),
            affects="every compile runs here, after a futile search for the daemon",
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
    elif name == "sccache" and debug_info in SPLIT_DWARF:
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
