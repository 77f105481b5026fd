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

from tritonsmith.core import configs
from tritonsmith.core.plan import Run
from tritonsmith.core.versions import version_key
from tritonsmith.doctor.check import Check, check
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import Finding, NotApplicableError, note, ok, skipped, warning
from tritonsmith.facts import eras, git, tools
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
    if tool is None:
        return Finding("error" if building and row["needed"] else "note", f"no {row['name']}", **advice)
    text = f"{row['name']} {tool.version or 'of unknown version'}"
    if not _fits(tool.version, row["range"]):
        return warning(f"{text}; required: {row['range']}", str(tool.path), **advice)
    requirement = _asked(row["name"], subject)
    if not _fits(tool.version, requirement):
        return note(
            f"{text}; this checkout's pyproject.toml requires {requirement}",
            str(tool.path),
            affects="a pip build with build isolation uses another version than `invoke build-triton`",
        )
    return ok(text, tool.path)


def _fits(version: str, specifier: str) -> bool:
    return not version or SpecifierSet(specifier).contains(version, prereleases=True)


def _asked(name: str, subject: DoctorContext) -> str:
    """Return the requirement of the checkout's own pyproject.toml; empty if there is none."""
    requirements = map(Requirement, subject.checkout.requires if subject.checkout else ())
    return next((str(asks.specifier) for asks in requirements if asks.name == name), "")


@check("tools.cmake-on-path", "the CMake on PATH, which a plain pip build runs")
def cmake_on_path(subject: DoctorContext) -> Iterator[Finding]:
    """Check the `cmake` on PATH, which upstream's setup.py runs; tritonsmith runs its own."""
    program = tools.find("cmake")
    if program is None:
        raise NotApplicableError("no cmake on PATH; tritonsmith brings its own")
    known = next(row["range"] for row in configs.load("tools")["tool"] if row["name"] == "cmake")
    required = _asked("cmake", subject) or known
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
    from_source = receipt.get("provider") == "source" or receipt.get("kind") == "built"
    needed = need["triton"] + (need["llvm"][subject.settings.llvm.build_type] if from_source else 0.0)
    limit = f"of {statistics.limit_gib:.1f} GiB used" if statistics.limit_gib else "GiB used, no limit"
    text = f"{statistics.used_gib:.1f} {limit}"
    if not statistics.limit_gib or statistics.limit_gib >= needed:
        yield ok(text, statistics.folder)
        return
    size = f"{math.ceil(2 * needed)}G"
    setting = ("ccache", "--set-config", f"max_size={size}")
    ruled = bool(subject.environ.get("CCACHE_MAXSIZE"))  # it takes precedence over ccache.conf
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
    # Absolute paths, and with debug info the current folder, keep two worktrees' compiles apart.
    statistics = _ccache(subject)
    several = git.worktrees(subject.checkout.root) if subject.checkout else ()
    if len(several) <= 1:
        raise NotApplicableError("at most one worktree")
    bases = [part for part in statistics.base_dir.split(":") if part]  # a list since ccache 4.13
    held = all(any(root.is_relative_to(part) for part in bases) for root in several)
    hash_dir = "on" if statistics.hash_dir else "off"
    text = f"{len(several)} worktrees; base_dir is {statistics.base_dir or 'not set'}, hash_dir is {hash_dir}"
    if held and not statistics.hash_dir:
        yield ok(text, statistics.folder)
        return
    common = os.path.commonpath(several)
    settings = [] if held or common == "/" else [f"base_dir={common}"]  # / would move system headers too
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
    requirement = eras.lit_requirement()
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


PROGRAMS = tuple(map(_program, configs.load("tools")["tool"]))
