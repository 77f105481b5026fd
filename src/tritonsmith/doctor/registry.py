"""All checks, in display order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import ModuleType

from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.doctor import (
    builds,
    gpu,
    gpu_health,
    machine,
    python_compile,
    python_env,
    python_kernels,
    python_triton,
    sources,
    tools,
    tools_cache,
    variables,
)
from tritonsmith.doctor import cache_checks as caches
from tritonsmith.doctor.check import Check
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import Finding

UNREADABLE = "env.file"  # stands for a check: the env file could not be read, so none ran


def of(*modules: ModuleType) -> tuple[Check, ...]:
    """Return the checks that modules define, in the order of their definition."""
    return tuple(value for module in modules for value in vars(module).values() if isinstance(value, Check))


ALL = (
    *of(machine),
    *tools.PROGRAMS,
    *of(
        tools,
        tools_cache,
        sources,
        builds,
        python_env,
        python_triton,
        python_kernels,
        python_compile,
        caches,
        variables,
        gpu,
        gpu_health,
    ),
)


def explained(name: str) -> str:
    """Return the Markdown of docs/doctor.md about a check, or about each check of a group.

    Raises:
        UsageError: there is no such check.
    """
    text = configs.page("doctor")
    if name == UNREADABLE:
        anchor = f'<a id="{name.replace(".", "")}"></a>'
        return text.partition(anchor)[2].partition("\n\n")[0]
    sections = re.split(r"^(?=##)", text, flags=re.MULTILINE)
    heads = tuple(f"### {check.id}\n" for check in chosen((name,), deep=True))
    return "".join(section for section in sections if section.startswith(heads)).rstrip()


def chosen(only: Iterable[str] = (), *, deep: bool = False) -> tuple[Check, ...]:
    """Return the checks to run.

    Args:
        only: ids (`tools.cmake`) or groups (`tools`); empty for all.
        deep: include those that start programs. A check that `only` names by its id runs anyway.

    Raises:
        UsageError: there is no such check.
    """
    names = tuple(only)
    known = {check.id for check in ALL} | {check.group for check in ALL}
    for name in names:
        if name not in known:
            raise UsageError(f"no such check: {name!r}", hints=did_you_mean(name, known))
    if not names:
        return tuple(check for check in ALL if deep or not check.deep)
    return tuple(
        check for check in ALL if check.id in names or (check.group in names and (deep or not check.deep))
    )


def examine(subject: DoctorContext, checks: Iterable[Check]) -> tuple[Finding, ...]:
    """Run checks, in order."""
    return tuple(finding for check in checks for finding in check(subject))
