"""Precompiled headers for LLVMs without their own: when they pay off, and the CMake variables for them."""

from __future__ import annotations

from pathlib import Path

from tritonsmith.core import configs
from tritonsmith.core.envs.settings import Settings
from tritonsmith.core.errors import UsageError
from tritonsmith.facts.tools import Compilers

_HERE = Path(__file__).parent
SLOPPINESS = ("pch_defines", "time_macros")  # without these, ccache caches no such compile (its manual, PCH)


def objection(settings: Settings, compilers: Compilers) -> str | None:
    """Return the reason why precompiled headers would hurt here, or None.

    Args:
        settings: settings of the env.
        compilers: the compilers of the build.
    """
    if compilers.cxx is None or "clang" not in compilers.cxx.path.name:
        return "the compiler is not clang: GCC's precompiled headers cost more to read than they save"
    if settings.cache.remote:
        return "precompiled headers contain absolute paths: a remote cache would hit only where these agree"
    if settings.cache.distribute:
        return f"{settings.cache.distribute} does not send precompiled headers"
    if settings.cache.launcher in ("sccache", "recc"):
        return f"{settings.cache.launcher} does not cache compiles that use them"
    return None


def used(settings: Settings, compilers: Compilers) -> bool:
    """Report whether this build injects them.

    Raises:
        UsageError: the env requires them (`on`) where they would hurt.
    """
    mode = settings.llvm.precompiled_headers
    reason = objection(settings, compilers)
    if mode == "on" and reason:
        raise UsageError(
            'precompiled-headers = "on" does not work here',
            why=reason,
            hints=['set precompiled-headers = "auto" under [llvm], or remove the remote cache'],
        )
    return mode != "off" and reason is None


def cache_variables() -> dict[str, str]:
    """Return the CMake variables that inject them into LLVM's targets (`precompiled_headers.cmake`)."""
    table = configs.load("precompiled-headers")
    variables = {
        "CMAKE_PROJECT_LLVM_INCLUDE": str(_HERE / "precompiled_headers.cmake"),
        "TRITONSMITH_PCH": ";".join(level["name"] for level in table["level"]),
        "TRITONSMITH_PCH_WITHOUT": ";".join(table["without"]),
    }
    for level in table["level"]:
        prefix = f"TRITONSMITH_PCH_{level['name']}"
        variables[f"{prefix}_OF"] = level["of"]
        variables[f"{prefix}_HEADERS"] = ";".join(map(_spelled, level["headers"]))
        variables[f"{prefix}_FOLDERS"] = ";".join(level["folders"])
    return variables


def _spelled(header: str) -> str:
    """Spell a header as `#include` takes it; CMake would look for a bare name in the current folder."""
    return header if header.startswith("<") else f'"{header}"'
