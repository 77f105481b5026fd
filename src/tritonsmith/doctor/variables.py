"""Group `variables`: environment variables of Triton's build and of Triton at run time."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from tritonsmith.core import redact
from tritonsmith.core.command_line import command
from tritonsmith.doctor.check import (
    DoctorContext,
    Finding,
    NotApplicableError,
    check,
    note,
    ok,
    skipped,
    warning,
)
from tritonsmith.facts import build_folder, checkout, variables
from tritonsmith.facts.variables import TritonVariable

# The variables that are set, and how findings show them; the group `gpu` uses them, too.

BY_HAND = "a manual `pip install` (`invoke install-triton` sets or removes what setup.py reads)"
_SHORT = 40  # maximum length of a value on the screen


def given_variables(subject: DoctorContext) -> list[tuple[TritonVariable, str]]:
    """Return the variables that are set and that this version reads, in the table's order, with values."""
    rows = variables.table().values()
    version = subject.triton_version
    # Empty counts as unset here; `variables.empty` has the cases where Triton disagrees.
    return [
        (row, subject.environ[row.name])
        for row in rows
        if subject.environ.get(row.name) and row.exists(version) and not row.is_inert(version)
    ]


def variables_on(subject: DoctorContext) -> dict[str, TritonVariable]:
    """Return the given variables that are on: a true flag, or any other value that is not a clear no."""
    version = subject.triton_version
    return {
        row.name: row
        for row, value in given_variables(subject)
        if (row.kind == "flag" and variables.is_true(row, value, version))
        or (row.kind != "flag" and value.lower() not in ("0", "off", "false"))
    }


def dumping_variables(subject: DoctorContext) -> list[TritonVariable]:
    """Return the variables that dump something while a kernel is compiled."""
    return [row for row in variables_on(subject).values() if row.effect == "dump"]


def run_time_folder(subject: DoctorContext, name: str, default: str) -> Path:
    """Return a run-time folder of Triton: the one that a variable names, else one in `.triton`."""
    rows, version = variables.table(), subject.triton_version
    if subject.environ.get(name) and rows[name].exists(version):
        return Path(subject.environ[name])
    home = subject.environ.get("HOME", "")
    # TRITON_HOME replaces the home folder, not `~/.triton`: Triton appends that to either.
    if rows["TRITON_HOME"].exists(version):
        home = subject.environ.get("TRITON_HOME", home)
    return Path(home) / ".triton" / default


def has_entries(path: Path) -> bool:
    """Report whether the folder exists and is not empty."""
    # The first entry will do: a cache may have 100,000, on a network file system.
    try:
        with os.scandir(path) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def triton_name(version: str) -> str:
    """Return the name and version: `Triton 3.5.0`; the newest known version if none is given."""
    return (
        f"Triton {version}"
        if version
        else f"Triton {checkout.triton_releases()[-1].version} (the newest known)"
    )


def affected_runs(row: TritonVariable | None) -> str:
    """Return the builds or runs that a variable affects."""
    return BY_HAND if row and "build" in row.at and "run" not in row.at else "every run of Triton"


def assignment(subject: DoctorContext, name: str) -> str:
    """Return `NAME=value`, with a long value shortened."""
    return f"{name}={short_value(redact.variable(name, subject.environ[name]))}"


def short_value(value: str) -> str:
    """Return a value for a line of text, without secrets, quoted where needed."""
    value = redact.hidden(value)  # before it is cut, which could remove the @ after a password
    return shlex.quote(value if len(value) <= _SHORT else f"{value[: _SHORT - 3]}...")


def unset_command(name: str) -> str:
    """Return the command that unsets a variable."""
    return f"unset {shlex.quote(name)}"


# As CMake's `if(<constant>)`, but for numbers other than 1, which are true there and hardly ever set.
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
    if read := [assignment(subject, name) for name, problem in problems.items() if not problem]:
        yield ok(f"{triton_name(subject.triton_version)} reads {', '.join(read)}")
    if foreign:
        yield ok(f"used by other software: {', '.join(foreign)}")
    if not names:
        yield ok("no variable that Triton reads is set")


def _problem(subject: DoctorContext, name: str, in_tree: frozenset[str]) -> Finding | None:
    version, row = subject.triton_version, variables.find(name)
    # setup.py reads some options from the environment, CMake none.
    if name in checkout.cmake_options() and name not in variables.table():
        return _cmake_option(subject, name)
    if row and row.is_inert(version):
        why = f"{triton_name(version)} does not read it"
        if row.still:
            why = f"in {triton_name(version)} only {row.still} read it, not Python"
        return None if row.unless in subject.environ else _useless(subject, row, name, why)
    # The checkout's own files decide before the table: a development tree reads what no release does.
    if name in in_tree or (row and row.exists(version)):
        return None
    if row:
        why = f"only Triton {row.span} reads it, this is {triton_name(version)}"
        return _useless(subject, row, name, why)
    return _unknown(subject, name)


def _useless(subject: DoctorContext, row: TritonVariable, name: str, why: str) -> Finding:
    better = variables.instead(name)
    return warning(
        f"{assignment(subject, name)}: {why}",
        affects=f"without effect: {row.what}",
        remedy=f"set instead: {better}" if better else "unset it, or use a Triton that reads it",
        commands=(unset_command(name),),
    )


def _cmake_option(subject: DoctorContext, name: str) -> Finding:
    return warning(
        f"{assignment(subject, name)}: a CMake option, not read from the environment",
        affects="it has no effect",
        remedy="pass it on to CMake",
        commands=(f"export TRITON_APPEND_CMAKE_ARGS=-D{name}=...", unset_command(name)),
    )


def _unknown(subject: DoctorContext, name: str) -> Finding:
    shown = assignment(subject, name)
    if meant := variables.nearest(name):
        return warning(
            f"{shown}: no Triton reads it; did you mean {meant}?",
            affects="it has no effect",
            # The shell copies the value: `shown` may have hidden a secret in it, or cut it.
            commands=(f'export {meant}="${name}"; unset {name}',),
        )
    return note(f"{shown}: no known Triton reads it", remedy="check the spelling, or ignore this")


@check("variables.empty", "empty variables, where empty differs from unset")
def empty(subject: DoctorContext) -> Iterator[Finding]:
    """Find empty variables that differ from unset ones: `export NAME=` is not `unset NAME`."""
    # setup.py up to 3.6 tests whether LLVM_SYSPATH exists, not whether it has a value: an empty
    # one suppresses the download.
    names = [name for name, value in subject.environ.items() if not value]
    effects = {name: variables.empty(name, subject.triton_version) for name in sorted(names)}
    harmful = {name: effect for name, effect in effects.items() if effect and not effect.good}
    for name, effect in harmful.items():
        yield warning(
            f"{name} is empty: in {triton_name(subject.triton_version)} that {effect.does}",
            affects=affected_runs(variables.find(name)),
            commands=(unset_command(name),),
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
    for row, value in given_variables(subject):
        # Build types are left out: other programs read DEBUG, too, and `variables.debug` judges its value.
        if row.kind == "flag" and row.effect != "build-type" and not variables.is_plain(row, value, version):
            taken = ", ".join(variables.true_values(row, version))
            yield warning(
                f"{assignment(subject, row.name)}: {triton_name(version)} accepts only {taken} as true",
                affects=f"it counts as off for at least one reader: {row.what}",
                commands=(f"export {row.name}=1",),
            )
        if row.kind == "number" and not value.strip().lstrip("+-").isdigit():
            yield warning(
                f"{assignment(subject, row.name)} is not a number",
                affects=f"{affected_runs(row)}: {row.what}",
                commands=(unset_command(row.name),),
            )


@check("variables.paths", "variables that name a program, file or folder")
def paths(subject: DoctorContext) -> Iterator[Finding]:
    """Find wrong paths: Triton falls back to its own tool, stops, or searches an unexpected folder."""
    yield from list(_wrong_paths(subject)) or [ok("every path exists")]


def _wrong_paths(subject: DoctorContext) -> Iterator[Finding]:
    for row, value in given_variables(subject):
        separator = {"files": ":", "folders": ";"}.get(row.kind)
        # PATH-like variables use `:`, and lists that go to CMake `;`, which is CMake's own separator.
        for part in value.split(separator) if separator else [value]:
            why = _path_problem(row, part) if part else ""
            if why:
                yield warning(
                    f"{row.name} names {part}: {why}",
                    part,
                    affects=f"{affected_runs(row)}: {row.what}",
                    remedy="correct it, or unset it",
                    commands=(unset_command(row.name),),
                )


def _path_problem(row: TritonVariable, text: str) -> str:
    path = Path(text)
    # CMake resolves it against its build folder, so it names something else than in the shell.
    if row.effect == "dependency" and not path.is_absolute():
        return "the path is relative, and CMake resolves it against its build folder (triton#4463)"
    # Folders that Triton creates itself are of the kind `makes-folder`, and need not exist.
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
    yield from list(_conflicts(subject)) or [ok("no contradictions")]


@check("variables.cached-away", "dumps that do not appear for cached kernels")
def cached_away(subject: DoctorContext) -> Iterator[Finding]:
    """Find dumps that do not appear because the kernels come from the cache."""
    # Dumps come from compiling; the second run loads the kernel from the cache and prints nothing.
    dumps = dumping_variables(subject)
    if not dumps:
        raise NotApplicableError("no dump is requested")
    names = ", ".join(row.name for row in dumps)
    if "TRITON_ALWAYS_COMPILE" in variables_on(subject):
        yield ok(f"{names}, and every kernel is recompiled")
        return
    folder = run_time_folder(subject, "TRITON_CACHE_DIR", "cache")
    if not has_entries(folder):
        yield ok(f"{names}, and the cache is empty", folder)
        return
    always = variables.table()["TRITON_ALWAYS_COMPILE"].exists(subject.triton_version)
    never = [row.name for row in dumps if row.cache != "invalidates"]
    twice = [row.name for row in dumps if row.cache == "invalidates"]
    # What is not in the cache's key leaves an old entry valid. What is in it makes the first run compile, and
    # store under a key that the second run hits.
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
    """Check DEBUG, which turns the next `pip install` into a Debug build."""
    # A check of its own, as the name is not only Triton's: Node's `debug` package reads DEBUG=app:*.
    if "DEBUG" not in subject.environ:
        yield skipped("DEBUG is not set")
    elif not variables.is_true(variables.table()["DEBUG"], subject.environ["DEBUG"], subject.triton_version):
        yield ok(f"{assignment(subject, 'DEBUG')} is not a value that setup.py reads as true")
    else:
        yield warning(
            f"{assignment(subject, 'DEBUG')}: setup.py builds Triton's Debug type",
            affects=f"{BY_HAND}: linking needs far more memory (triton#4249), and compiles are slow",
            remedy="unset it if it is meant for another program",
            commands=(unset_command("DEBUG"),),
        )


@check("variables.left-on", "variables that are easily left on")
def left_on(subject: DoctorContext) -> Iterator[Finding]:
    """Find variables that change every kernel, or the cost of compiling."""
    costs = variables.left_on()
    left = [
        note(assignment(subject, name), affects=costs[name], commands=(unset_command(name),))
        for name in variables_on(subject)
        if name in costs
    ]
    yield from left or [ok("none on")]


@check("variables.sticky", "variables no longer set that CMake's cache still remembers")
def sticky(subject: DoctorContext) -> Iterator[Finding]:
    """Find variables that were unset and still take effect."""
    # setup.py passes them only if they are set, so unsetting one does not restore the default.
    remembered = variables.sticky(subject.triton_version)
    folders = _pip_folders(subject)
    caches = [cache for cache in map(build_folder.read_cmake_cache, folders) if cache]
    if not remembered or not caches:
        raise NotApplicableError("no CMake cache of a pip build that could remember a variable")
    kept = [
        warning(
            f"{name} is not set now, but was: {short_value(cache.get(name))}",
            str(cache.file),
            affects=f"{BY_HAND}: it continues to use the old value",
            remedy="set it to an empty value once, or delete the cache file",
            commands=(f"export {name}={default}",),
        )
        for cache in caches
        for name, default in remembered.items()
        if name not in subject.environ and not _same(cache.get(name), default)
    ]
    files = ", ".join(str(cache.file) for cache in caches)
    yield from kept or [ok(f"{files}: no old value of an unset variable")]


def _pip_folders(subject: DoctorContext) -> list[Path]:
    """Return build folders that pip configures itself; `invoke build-triton` passes everything to its own."""
    named = subject.environ.get("TRITON_BUILD_DIR")
    folders = sorted((subject.checkout.setup_dir / "build").glob("cmake.*")) if subject.checkout else []
    # The tool's own link into pip's folder leads to a build that is given every variable.
    return [folder for folder in (*folders, *([Path(named)] if named else [])) if not folder.is_symlink()]


def _same(value: str, default: str) -> bool:
    if default in ("ON", "OFF"):
        return not value or (value.upper() in _TRUE_FOR_CMAKE) is (default == "ON")
    return value == default


def _conflicts(subject: DoctorContext) -> Iterator[Finding]:
    """Find variables that conflict although each is fine alone."""
    for look in (_build_types, _offline, _build_dir, _llvm_debug, _override, _interpreted, _alone):
        yield from look(subject)


def _build_types(subject: DoctorContext) -> Iterator[Finding]:
    # The table lists them in the order in which setup.py asks for them, and `variables_on` keeps it.
    rows = [row for row in variables_on(subject).values() if row.effect == "build-type"]
    if len(rows) > 1:
        yield warning(
            f"{', '.join(assignment(subject, row.name) for row in rows)}: several build types",
            affects=f"{BY_HAND}: the first wins, {rows[0].what}",
            commands=tuple(unset_command(row.name) for row in rows[1:]),
        )


def _offline(subject: DoctorContext) -> Iterator[Finding]:
    if "TRITON_OFFLINE_BUILD" not in variables_on(subject):
        return
    missing = [name for name in ("LLVM_SYSPATH", "JSON_SYSPATH") if not subject.environ.get(name)]
    if missing:
        yield warning(
            f"TRITON_OFFLINE_BUILD without {' and '.join(missing)}",
            affects=f"{BY_HAND}: fails with a RuntimeError (triton#4461, triton#10540)",
            remedy="set both, and NVIDIA's tools: without TRITON_PTXAS_PATH they are silently left out",
            commands=tuple(f"export {name}=..." for name in missing),
        )


def _build_dir(subject: DoctorContext) -> Iterator[Finding]:
    named = subject.environ.get("TRITON_BUILD_DIR", "")
    cache = build_folder.read_cmake_cache(Path(named)) if named and subject.checkout else None
    # setup.py uses TRITON_BUILD_DIR as it stands for every checkout, while CMake refuses
    # a folder of other sources.
    source = cache.get("CMAKE_HOME_DIRECTORY") if cache else ""
    if cache and source and subject.checkout and Path(source) != subject.checkout.root:
        yield warning(
            f"TRITON_BUILD_DIR={named} was configured for {source}, not for {subject.checkout.root}",
            str(cache.file),
            affects=f"{BY_HAND}: CMake fails, or the worktrees overwrite each other's build",
            remedy="use one build folder per worktree",
            commands=(unset_command("TRITON_BUILD_DIR"),),
        )


def _llvm_debug(subject: DoctorContext) -> Iterator[Finding]:
    # LLVM compiles its debug output only with assertions: both LLVM and Triton must have them.
    names = [name for name in variables_on(subject) if "LLVM_DEBUG" in name]
    built = (subject.receipt("build-triton") or {}).get("build_type", "")
    reasons = []
    if subject.llvm and not subject.llvm.assertions:
        reasons.append(f"the LLVM in {subject.llvm.prefix} has no assertions")
    if built in ("Release", "RelWithDebInfo", "MinSizeRel"):
        reasons.append(f"Triton's build type is {built}")
    if names and reasons:
        yield warning(
            f"{', '.join(names)}, but {' and '.join(reasons)}",
            affects="LLVM_DEBUG is compiled out there, so nothing is printed",
            remedy="use an LLVM with assertions, and a build type of Triton with assertions",
            commands=(command("setup-mlir", env=subject.named),),
        )


def _override(subject: DoctorContext) -> Iterator[Finding]:
    if "TRITON_KERNEL_OVERRIDE" not in variables_on(subject):
        return
    folder = run_time_folder(subject, "TRITON_OVERRIDE_DIR", "override")
    if not has_entries(folder):
        yield warning(
            "TRITON_KERNEL_OVERRIDE is on, but there are no kernels to override with",
            str(folder),
            affects="kernels are compiled as usual",
            remedy="dump once (TRITON_KERNEL_DUMP=1 TRITON_ALWAYS_COMPILE=1), copy the kernel's folder there",
            commands=(unset_command("TRITON_KERNEL_OVERRIDE"),),
        )


def _interpreted(subject: DoctorContext) -> Iterator[Finding]:
    dumps = dumping_variables(subject)
    if dumps and "TRITON_INTERPRET" in variables_on(subject):
        yield warning(
            f"TRITON_INTERPRET=1 with {', '.join(row.name for row in dumps)}",
            affects="nothing is compiled, so nothing is dumped",
            commands=(unset_command("TRITON_INTERPRET"),),
        )


def _alone(subject: DoctorContext) -> Iterator[Finding]:
    on = variables_on(subject)
    for row, _ in given_variables(subject):
        partner = variables.needs().get(row.name)
        if partner and partner not in on:
            yield note(f"{assignment(subject, row.name)} does nothing without {partner}", remedy=row.what)
