"""Look up properties of Triton versions, for use without a checkout (`configs/triton-eras.toml`)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.core.versions import version_key

_CONFIG = "triton-eras"
_BRANCHED = timedelta(weeks=7)  # from a branch to NN.1.0: six or some more (discourse.llvm.org/t/84245)


@dataclass(frozen=True)
class TritonRelease:
    """One release line of Triton.

    Attributes:
        version: `3.5`.
        commit: the commit of triton-lang/triton that the row was read from.
        python: oldest and newest minor version.
        requires: the build's requirements in its environment, as requirement strings.
        llvm: pin, as many hex digits as are known; empty if unknown.
        wheels: releases on the package index, oldest first.
        branched: the commit of main that its branch was cut from, if that is known not to be `commit`.
    """

    version: str
    commit: str
    python: tuple[str, str]
    requires: tuple[str, ...]
    llvm: str = ""
    wheels: tuple[str, ...] = ()
    branched: str = ""

    @property
    def branch_point(self) -> str:
        """The last commit of main in the release, as far as the table knows."""
        return self.branched or self.commit


def releases() -> tuple[TritonRelease, ...]:
    """Return all release lines, oldest first."""
    return tuple(configs.made(TritonRelease, row) for row in configs.load(_CONFIG)["release"])


def release(version: str) -> TritonRelease:
    """Return the release line of a version: `3.5.1` to 3.5; a newer one to the newest.

    Raises:
        UsageError: older than all of them, or not a version.
    """
    key = version_key(version)[:2]
    # A version beyond the table is a development tree: the newest row describes it best.
    fitting = [row for row in releases() if version_key(row.version) <= key]
    if not key[1:] or not fitting:
        raise UsageError(
            f"unknown Triton release line {version!r}",
            hints=did_you_mean(version, [row.version for row in releases()]),
        )
    return fitting[-1]


def clang_released(major: int) -> str | None:
    """Return the date of clang MAJOR.1.0, ISO 8601; None if it is not listed."""
    date = configs.load(_CONFIG)["clang-released"].get(str(major))
    return str(date) if date else None


def llvm_branched(major: int) -> date | None:
    """Return when the APIs of LLVM MAJOR were fixed, give or take two weeks; None if it is not listed."""
    released = clang_released(major)
    return date.fromisoformat(released) - _BRANCHED if released else None


def full_commit(short: str) -> str:
    """Return all 40 digits of an LLVM pin that an old setup.py abbreviates, where a row has them."""
    return next((row.llvm for row in releases() if row.llvm.startswith(short)), short)


def features(version: str) -> frozenset[str]:
    """Return the names of the features that a version has."""
    return frozenset(row["name"] for row in configs.load(_CONFIG)["feature"] if _covers(row, version))


def options(version: str) -> frozenset[str]:
    """Return the CMake options and cache variables that a version knows."""
    table = configs.load(_CONFIG)["options"]
    return frozenset(name for name, row in table.items() if _covers(row, version))


def probes() -> dict[str, dict[str, Any]]:
    """Return, by feature, the file whose text shows the feature in a checkout, with that text."""
    return {row["name"]: row["probe"] for row in configs.load(_CONFIG)["feature"]}


def option_names() -> frozenset[str]:
    """Return every CMake option that some version knows."""
    return frozenset(configs.load(_CONFIG)["options"])


def lit_requirement() -> str:
    """Return the requirement of the lit that Triton's tests run with."""
    return str(configs.load(_CONFIG)["lit"]["requirement"])


def relaxed_warnings() -> tuple[str, ...]:
    """Return flags for warnings that newer compilers add."""
    return tuple(row["flag"] for row in configs.load(_CONFIG)["relaxed-warning"])


def _covers(row: dict[str, Any], version: str) -> bool:
    number = version_key(version)[:2]
    return version_key(row["since"]) <= number <= version_key(row.get("until", "99"))
