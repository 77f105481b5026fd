"""Group `variables`: environment variables of Triton's build and of Triton at run time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tritonsmith.doctor import env_vars, variable_conflicts
from tritonsmith.doctor.check import check
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import Finding, NotApplicableError, note, ok, skipped, warning
from tritonsmith.facts import cmake_cache, eras, variables
from tritonsmith.facts.variables import TritonVariable

_TRUE_FOR_CMAKE = {"1", "ON", "YES", "TRUE", "Y"}


@check("variables.known", "variables that are set: known to this version, misspelled, or of other software")
def known(subject: DoctorContext) -> Iterator[Finding]:
    """Check the names of variables: one that this Triton does not read is silently ignored."""
    names = variables.about_triton(subject.environ)
    in_tree = variables.read_in(subject.checkout.root, names) if subject.checkout else frozenset()
    owners = {name: variables.foreign(name) for name in names if not variables.find(name)}
    foreign = [f"{name} ({owner})" for name, owner in owners.items() if owner]
    ours = [name for name in names if not owners.get(name)]
    problems = {name: _problem(subject, name, in_tree) for name in ours}
    yield from filter(None, problems.values())
    if read := [env_vars.shown(subject, name) for name, problem in problems.items() if not problem]:
        yield ok(f"{env_vars.triton(subject.triton_version)} reads {', '.join(read)}")
    if foreign:
        yield ok(f"of other software: {', '.join(foreign)}")
    if not names:
        yield ok("no variable that Triton reads is set")


def _problem(subject: DoctorContext, name: str, in_tree: frozenset[str]) -> Finding | None:
    version, row = subject.triton_version, variables.find(name)
    if name in eras.option_names() and name not in variables.table():
        return _cmake_option(subject, name)
    if row and row.is_inert(version):
        why = f"{env_vars.triton(version)} does not read it"
        if row.still:
            why = f"in {env_vars.triton(version)} only {row.still} read it, not Python"
        return None if row.unless in subject.environ else _useless(subject, row, name, why)
    if name in in_tree or (row and row.exists(version)):
        return None
    if row:
        why = f"only Triton {row.span} reads it, this is {env_vars.triton(version)}"
        return _useless(subject, row, name, why)
    return _unknown(subject, name)


def _useless(subject: DoctorContext, row: TritonVariable, name: str, why: str) -> Finding:
    better = variables.instead(name)
    return warning(
        f"{env_vars.shown(subject, name)}: {why}",
        affects=f"without effect: {row.what}",
        remedy=f"set instead: {better}" if better else "unset it, or use a Triton that reads it",
        commands=(env_vars.unset(name),),
    )


def _cmake_option(subject: DoctorContext, name: str) -> Finding:
    return warning(
        f"{env_vars.shown(subject, name)}: a CMake option, not read from the environment",
        affects="it has no effect",
        remedy="pass it on to CMake",
        commands=(f"export TRITON_APPEND_CMAKE_ARGS=-D{name}=...", env_vars.unset(name)),
    )


def _unknown(subject: DoctorContext, name: str) -> Finding:
    shown = env_vars.shown(subject, name)
    if meant := variables.nearest(name):
        return warning(
            f"{shown}: no Triton reads it; did you mean {meant}?",
            affects="it has no effect",
            commands=(f'export {meant}="${name}"; unset {name}',),
        )
    return note(f"{shown}: no known Triton reads it", remedy="check the spelling, or ignore this")


@check("variables.empty", "empty variables, where empty differs from unset")
def empty(subject: DoctorContext) -> Iterator[Finding]:
    """Find empty variables that differ from unset ones: `export NAME=` is not `unset NAME`."""
    names = [name for name, value in subject.environ.items() if not value]
    effects = {name: variables.empty(name, subject.triton_version) for name in sorted(names)}
    harmful = {name: effect for name, effect in effects.items() if effect and not effect.good}
    for name, effect in harmful.items():
        yield warning(
            f"{name} is empty: in {env_vars.triton(subject.triton_version)} that {effect.does}",
            affects=env_vars.whom(variables.find(name)),
            commands=(env_vars.unset(name),),
        )
    good = [f"{name} is empty, which {effect.does}" for name, effect in effects.items() if effect]
    if not harmful:
        yield ok("; ".join(good) or "no empty variables that matter")


@check("variables.values", "flags and numbers whose value is not read as intended")
def values(subject: DoctorContext) -> Iterator[Finding]:
    """Find misread values: setup.py, Python and C++ each accept different ones as true."""
    yield from list(_misread(subject)) or [ok("every flag and number is read as intended")]


def _misread(subject: DoctorContext) -> Iterator[Finding]:
    version = subject.triton_version
    for row, value in env_vars.given(subject):
        if row.kind == "flag" and row.effect != "build-type" and not variables.is_plain(row, value, version):
            taken = ", ".join(variables.true_values(row, version))
            yield warning(
                f"{env_vars.shown(subject, row.name)}:"
                f" {env_vars.triton(version)} accepts only {taken} as true",
                affects=f"it counts as off for at least one reader: {row.what}",
                commands=(f"export {row.name}=1",),
            )
        if row.kind == "number" and not value.strip().lstrip("+-").isdigit():
            yield warning(
                f"{env_vars.shown(subject, row.name)} is not a number",
                affects=f"{env_vars.whom(row)}: {row.what}",
                commands=(env_vars.unset(row.name),),
            )


@check("variables.paths", "variables that name a program, file or folder")
def paths(subject: DoctorContext) -> Iterator[Finding]:
    """Find wrong paths: Triton falls back to its own tool, stops, or searches an unexpected folder."""
    yield from list(_wrong_paths(subject)) or [ok("every path exists")]


def _wrong_paths(subject: DoctorContext) -> Iterator[Finding]:
    for row, value in env_vars.given(subject):
        separator = {"files": ":", "folders": ";"}.get(row.kind)
        for part in value.split(separator) if separator else [value]:
            why = _path_problem(row, part) if part else ""
            if why:
                yield warning(
                    f"{row.name} names {part}: {why}",
                    part,
                    affects=f"{env_vars.whom(row)}: {row.what}",
                    remedy="correct it, or unset it",
                    commands=(env_vars.unset(row.name),),
                )


def _path_problem(row: TritonVariable, text: str) -> str:
    path = Path(text)
    if row.effect == "dependency" and not path.is_absolute():
        return "the path is relative, and CMake resolves it against its build folder (triton#4463)"
    if row.kind in ("folder", "folders") and not path.is_dir():
        return "not a folder" if path.exists() else "no such folder"
    if row.kind in ("file", "files", "program") and not path.is_file():
        return "not a file" if path.exists() else "no such file"
    if row.kind == "program" and not os.access(path, os.X_OK):
        return "not executable"
    return ""


@check("variables.contradictory", "variables that contradict or need each other")
def contradictory(subject: DoctorContext) -> Iterator[Finding]:
    """Find variables that conflict although each is fine alone."""
    yield from list(variable_conflicts.find(subject)) or [ok("no contradictions")]


@check("variables.cached-away", "dumps that do not appear for cached kernels")
def cached_away(subject: DoctorContext) -> Iterator[Finding]:
    """Find dumps that do not appear."""
    # Dumps come from compiling; the second run loads the kernel from the cache and prints nothing.
    dumps = env_vars.dumps(subject)
    if not dumps:
        raise NotApplicableError("no dump is requested")
    names = ", ".join(row.name for row in dumps)
    if "TRITON_ALWAYS_COMPILE" in env_vars.on(subject):
        yield ok(f"{names}, and every kernel is recompiled")
        return
    folder = env_vars.folder(subject, "TRITON_CACHE_DIR", "cache")
    if not env_vars.has_entries(folder):
        yield ok(f"{names}, and the cache is empty", folder)
        return
    always = variables.table()["TRITON_ALWAYS_COMPILE"].exists(subject.triton_version)
    never = [row.name for row in dumps if row.cache != "invalidates"]
    twice = [row.name for row in dumps if row.cache == "invalidates"]
    affects = [f"{', '.join(never)}: no output for a kernel that is in the cache"] if never else []
    affects += [f"{', '.join(twice)}: output on the first run, none on the second"] if twice else []
    yield warning(
        f"{names}, and compiled kernels come from the cache",
        str(folder),
        affects="; ".join(affects) + " (triton#4661, triton#3840)",
        remedy="compile every time, or use a fresh cache",
        commands=("export TRITON_ALWAYS_COMPILE=1",)
        if always
        else ('export TRITON_CACHE_DIR="$(mktemp -d)"',),
    )


@check("variables.debug", "DEBUG, which setup.py reads as a build type")
def debug(subject: DoctorContext) -> Iterator[Finding]:
    """Check DEBUG: many programs read it, but it makes the next `pip install` a Debug build."""
    if "DEBUG" not in subject.environ:
        yield skipped("DEBUG is not set")
    elif not variables.is_true(variables.table()["DEBUG"], subject.environ["DEBUG"], subject.triton_version):
        yield ok(f"{env_vars.shown(subject, 'DEBUG')} is not a value that setup.py reads as true")
    else:
        yield warning(
            f"{env_vars.shown(subject, 'DEBUG')}: setup.py builds Triton's Debug type",
            affects=f"{env_vars.BY_HAND}: linking needs far more memory (triton#4249), and compiles are slow",
            remedy="unset it if it is meant for another program",
            commands=(env_vars.unset("DEBUG"),),
        )


@check("variables.left-on", "variables that are easily left on")
def left_on(subject: DoctorContext) -> Iterator[Finding]:
    """Find variables that change every kernel, or the cost of compiling."""
    suffers = variables.left_on()
    left = [
        note(env_vars.shown(subject, name), affects=suffers[name], commands=(env_vars.unset(name),))
        for name in env_vars.on(subject)
        if name in suffers
    ]
    yield from left or [ok("none on")]


@check("variables.sticky", "variables no longer set that CMake's cache still remembers")
def sticky(subject: DoctorContext) -> Iterator[Finding]:
    """Find remembered variables."""
    # setup.py passes them only if they are set, so unsetting one does not restore the default.
    remembered = variables.sticky(subject.triton_version)
    folders = _pip_folders(subject)
    caches = [cache for cache in map(cmake_cache.read, folders) if cache]
    if not remembered or not caches:
        raise NotApplicableError("no CMake cache of a pip build that could remember a variable")
    kept = [
        warning(
            f"{name} is not set now, but was: {env_vars.short(cache.get(name))}",
            str(cache.file),
            affects=f"{env_vars.BY_HAND}: it continues to use the old value",
            remedy="set it to an empty value once, or delete the cache file",
            commands=(f"export {name}={default}",),
        )
        for cache in caches
        for name, default in remembered.items()
        if name not in subject.environ and not _same(cache.get(name), default)
    ]
    files = ", ".join(str(cache.file) for cache in caches)
    yield from kept or [ok(f"nothing of {files} is remembered")]


def _pip_folders(subject: DoctorContext) -> list[Path]:
    """Return build folders that pip configures itself; `invoke build-triton` passes everything to its own."""
    named = subject.environ.get("TRITON_BUILD_DIR")
    folders = sorted((subject.checkout.setup_dir / "build").glob("cmake.*")) if subject.checkout else []
    return [folder for folder in (*folders, *([Path(named)] if named else [])) if not folder.is_symlink()]


def _same(value: str, default: str) -> bool:
    if default in ("ON", "OFF"):
        return not value or (value.upper() in _TRUE_FOR_CMAKE) is (default == "ON")
    return value == default
