"""`plugin.check`: compare a plugin with a Triton before an import aborts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tritonsmith.compiler import call
from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.text import version_key
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.facts import elf, libtriton, tools
from tritonsmith.facts.elf import SharedLibrary
from tritonsmith.facts.machine import Machine
from tritonsmith.worker.messages import LoadPluginRequest, PluginStepRow, TriedPluginRow

FITS, MISFIT, UNSURE = "fits", "does not fit", "not sure"
_TAG = re.compile(r"(GLIBC|GLIBCXX|CXXABI)_(\d+(?:\.\d+)*)")
_OWN_LLVM = re.compile(r"lib(?:LLVM|MLIR|clang-cpp)\b")
_CHECKS = re.compile(r"_ZN4llvm\d+(?:Enable|Disable)ABIBreakingChecksE")
_HEADERS = re.compile(r"\bLLVM (\d+\.\d+\.\d+\w*) ?([0-9a-f]{40}|)")
_SIGNAL = "A signal was caught"  # MLIR continues after a signal, to print a reproducer
_SHOWN = 5  # symbols in one row


@dataclass(frozen=True)
class PluginRow:
    """One compared property.

    Attributes:
        what: name of the property.
        plugin: value in the plugin.
        triton: value in Triton, or the one that it requires.
        verdict: `fits`, `does not fit` or `not sure`.
        why: reason for the last two; may be empty.
    """

    what: str
    plugin: str
    triton: str
    verdict: str
    why: str = ""


@dataclass(frozen=True)
class PluginRelease:
    """The plugin interface of a release: a row of `configs/plugins.toml`."""

    since: str
    api: int
    variable: str


@dataclass(frozen=True)
class PluginCheck:
    """All compared properties, and all missing symbols.

    Attributes:
        plugin: the file.
        library: libtriton.
        version: version of Triton.
        rows: the properties.
        missing: mangled names.
    """

    plugin: Path
    library: Path
    version: str
    rows: tuple[PluginRow, ...]
    missing: tuple[str, ...] = field(default=())

    @property
    def misfits(self) -> tuple[PluginRow, ...]:
        """The properties that do not fit."""
        return tuple(row for row in self.rows if row.verdict == MISFIT)

    def as_json(self) -> dict[str, Any]:
        """Return the check as JSON data."""
        unsure = any(row.verdict == UNSURE for row in self.rows)
        verdict = MISFIT if self.misfits else UNSURE if unsure else FITS
        files = {"plugin": str(self.plugin), "libtriton": str(self.library), "triton": self.version}
        rows = [asdict(row) for row in self.rows]
        return {"schema": 1, **files, "verdict": verdict, "rows": rows, "missing": list(self.missing)}


def check(
    plugin: Path, library: Path, python: Path, version: str, machine: Machine, space: Workspace
) -> PluginCheck:
    """Compare a plugin with the libtriton of an interpreter, and let the interpreter load it.

    Args:
        plugin: the shared library.
        library: libtriton.
        python: the interpreter that it belongs to.
        version: version of that Triton.
        machine: this machine.
        space: workspace, to which Triton may write.

    Raises:
        FactError: a file is not a shared library, or the interpreter does not answer.
    """
    mine, theirs = elf.read_shared_library(plugin), elf.read_shared_library(library)
    release = _release(version)
    rows = [
        *_files(mine, theirs),
        *_symbols(mine, theirs),
        *_runtime(mine, machine),
        _compilers(mine, theirs),
    ]
    # Another machine's library cannot be loaded here, but its symbols have been compared.
    if mine.machine == theirs.machine:
        answers = _ask(plugin, python, release, space)
        rows += [_llvm(answers.said, library), *_tried(answers, release, version)]
    return PluginCheck(plugin, library, version, tuple(rows), _missing(mine, theirs))


def _release(version: str) -> PluginRelease:
    rows = [configs.as_dataclass(PluginRelease, row) for row in configs.load("plugins")["release"]]
    # Without a version no row fits, and then no interface is assumed.
    known = [row for row in rows if version_key(row.since) <= version_key(version or "0")]
    return known[-1] if known else PluginRelease("", 0, "")


def _files(mine: SharedLibrary, theirs: SharedLibrary) -> Iterator[PluginRow]:
    same = mine.machine == theirs.machine
    yield PluginRow("machine", mine.machine, theirs.machine, FITS if same else MISFIT)
    entry = configs.load("plugins")["entry"]
    there = entry in mine.exported
    why = "" if there else 'it must be exported: extern "C", with default visibility'
    yield PluginRow("entry point", entry if there else "none", entry, FITS if there else MISFIT, why)
    own = [name for name in mine.needed if _OWN_LLVM.match(name)]
    # Python loads libtriton without RTLD_GLOBAL, so its symbols reach a plugin only through a link.
    linked = theirs.soname in mine.needed
    why = "" if linked else f"Python loads {theirs.soname} for itself: link the plugin to that file"
    yield PluginRow(
        "linked to libtriton",
        theirs.soname if linked else "no",
        theirs.soname,
        FITS if linked else MISFIT,
        why,
    )
    if own:
        why = "a second LLVM in the process has different TypeIDs and options"
        yield PluginRow("a second LLVM", ", ".join(own), "in libtriton", MISFIT, why)


def _symbols(mine: SharedLibrary, theirs: SharedLibrary) -> Iterator[PluginRow]:
    missing = _missing(mine, theirs)
    taken = sum(name in theirs.exported for name in mine.missing)
    # A libtriton that hides its symbols has none to offer, whatever the plugin lacks.
    shows = any(name.startswith("_ZN4mlir") for name in theirs.strong)
    more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    listed = "; ".join(tools.demangled_names(missing[:_SHOWN])) + more
    if not shows:
        why = "this libtriton hides its symbols: built without TRITON_EXT_ENABLED, as wheels before 3.7"
        yield PluginRow("symbols", f"{len(missing)} missing", "hidden", MISFIT, why)
    else:
        offered = f"{len(theirs.exported)} exported"
        words = f"{taken} taken, {len(missing)} missing"
        yield PluginRow("symbols", words, offered, MISFIT if missing else FITS, listed)
    checks = [name for name in missing if _CHECKS.fullmatch(name)]
    if checks and shows:
        why = "LLVM_ABI_BREAKING_CHECKS differs from LLVM's headers, so classes have different sizes"
        mine_has, others = ("with", "without") if "Enable" in checks[0] else ("without", "with")
        yield PluginRow("LLVM's ABI checks", mine_has, others, MISFIT, why)
    # Weak names, inline functions and templates, are in both by nature.
    copies = sorted(mine.defined & theirs.strong)
    # A TypeID is the address of a variable: with two copies, `isa` and `cast` between the two fail.
    ids = [name for name in copies if "TypeIDResolver" in name]
    if copies:
        why = "LLVM or MLIR was linked into it: link it to libtriton only. " + "; ".join(
            tools.demangled_names(copies[:_SHOWN])
        )
        yield PluginRow("copies of libtriton's code", str(len(copies)), "one", MISFIT, why)
    if ids:
        yield PluginRow("TypeIDs", f"{len(ids)} of its own", "one each", MISFIT, "casts between the two fail")
    elif mine.stripped:
        why = "it was stripped: a hidden copy of LLVM in it would not be seen"
        yield PluginRow("TypeIDs", "unknown", "one each", UNSURE, why)
    else:
        yield PluginRow("TypeIDs", "libtriton's", "one each", FITS)


def _missing(mine: SharedLibrary, theirs: SharedLibrary) -> tuple[str, ...]:
    """Return the names that neither libtriton nor a versioned library (of C and C++) defines."""
    return tuple(
        sorted(name for name, tag in mine.missing.items() if not tag and name not in theirs.exported)
    )


def _runtime(mine: SharedLibrary, machine: Machine) -> Iterator[PluginRow]:
    newest: dict[str, str] = {}
    for tag in mine.versions:
        if match := _TAG.fullmatch(tag):
            newest[match[1]] = max(newest.get(match[1], "0"), match[2], key=version_key)
    here = {"GLIBC": machine.glibc, "GLIBCXX": machine.glibcxx}
    for kind, limit in configs.load("plugins")["manylinux_2_28"].items():
        need = newest.get(kind)
        if need is None:
            continue
        has = here.get(kind) or ""
        verdict, why = FITS, ""
        if has and version_key(need) > version_key(has):
            verdict, why = MISFIT, "built on a newer system than this one"
        elif version_key(need) > version_key(limit):
            verdict, why = (
                UNSURE,
                f"loads here; the wheel also runs where there is only {limit} (manylinux_2_28)",
            )
        yield PluginRow(kind, need, f"{has} here" if has else limit, verdict, why)


def _compilers(mine: SharedLibrary, theirs: SharedLibrary) -> PluginRow:
    ours, of = (libtriton.read(side.path) for side in (mine, theirs))
    clang = any("clang" in name for name in ours.compilers)
    shown = next((name for name in ours.compilers if clang == ("clang" in name)), "not recorded")
    why = (
        ""
        if clang
        else "MLIR names types as the compiler spells them, and GCC spells some differently from clang"
    )
    theirs_too = "clang" if any("clang" in name for name in of.compilers) else "unknown"
    return PluginRow("compiler", shown.partition(" (")[0], theirs_too, FITS if clang else UNSURE, why)


def _llvm(answer: PluginStepRow, library: Path) -> PluginRow:
    """Compare the versions of LLVM's headers; a plugin of `pass.new --plugin` records its own."""
    # No symbol shows the layout of classes, so only a recorded version can tell.
    of = libtriton.read(library)
    theirs = f"{of.llvm_version} {of.llvm_commit[:12]}".strip() or "unknown"
    match = _HEADERS.search(answer.value["version"]) if answer.status == "ok" else None
    if match is None:
        why = "no symbol shows the layout of LLVM's classes: build with the headers of that commit"
        return PluginRow("LLVM's headers", "not recorded", theirs, UNSURE, why)
    mine = f"{match[1]} {match[2][:12]}".strip()
    if of.llvm_commit and match[2] == of.llvm_commit:
        return PluginRow("LLVM's headers", mine, theirs, FITS)
    # Within a major version LLVM keeps the layout of classes, but not between commits of main.
    apart = bool(match[2]) or match[1].partition(".")[0] != of.llvm_version.partition(".")[0]
    why = "its classes may have a different layout" if apart else "its commit is not recorded"
    return PluginRow("LLVM's headers", mine, theirs, MISFIT if apart and of.llvm_version else UNSURE, why)


def _ask(plugin: Path, python: Path, release: PluginRelease, space: Workspace) -> TriedPluginRow:
    table = configs.load("plugins")
    request = LoadPluginRequest(
        plugin=str(plugin),
        variable=release.variable,
        timeout=table["timeout"],
        memory=table["memory"],
        names_triton=table["names-triton"],
    )
    # Other plugins of the user's might fail by themselves.
    change = {"TRITON_PLUGIN_PATHS": None, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        # The interpreter tries several things, each within the limit, and takes time to start.
        return call.ask_one(
            python, request, TriedPluginRow, space, timeout=4 * table["timeout"], change=change
        )
    except call.UnansweredError as error:
        raise FactError(
            "cannot load plugins with this Triton",
            where=python,
            why=error.why,
            hints=[f"check that this works: {python} -c 'import triton'"],
        ) from error


def _tried(answers: TriedPluginRow, release: PluginRelease, version: str) -> Iterator[PluginRow]:
    loaded, taken = answers.said, answers.taken
    if loaded.status == "ok":
        about = loaded.value
        known = release.api != 0
        verdict = UNSURE if not known else FITS if about["api"] == release.api else MISFIT
        yield PluginRow("interface version", str(about["api"]), str(release.api or "unknown"), verdict)
        if about["api"] >= configs.load("plugins")["names-triton"]:
            # What follows the `+` names a build, by commit or day; the interface is that of the version.
            same = about["triton"].partition("+")[0] == version.partition("+")[0]
            why = "" if about["triton"] else "a plugin without a version aborts the import"
            yield PluginRow("Triton's version", about["triton"], version, FITS if same else MISFIT, why)
    else:
        yield PluginRow("resolved at once", "no", "all of it", MISFIT, _error(loaded))
    if taken.status != "ok":
        yield PluginRow("loaded by Triton", "no", version, MISFIT, _error(taken))
        return
    names = taken.value["bindings"]
    if not names:
        why = "" if release.api else "this release does not support plugins"
        yield PluginRow("loaded by Triton", "no passes", version, UNSURE if release.api else MISFIT, why)
        return
    yield PluginRow("loaded by Triton", ", ".join(names), version, FITS)
    ran = answers.ran
    if ran.status == "ok":
        yield PluginRow("run on a small module", "yes", version, FITS)
        return
    crashed = ran.status != "failed" or _SIGNAL in ran.printed
    why = _error(ran) if crashed else f"it may need a different module: {_error(ran)}"
    words = ("crashed", version, MISFIT) if crashed else ("failed", version, UNSURE)
    yield PluginRow("run on a small module", *words, why)


def _error(answer: PluginStepRow) -> str:
    """Return the error, with the first error lines of the output."""
    printed = re.findall(r"^.*(?:error|ERROR|Assertion).*$", answer.printed, re.MULTILINE)
    return tools.demangled_text("\n".join([answer.error, *(line.strip("\0 ") for line in printed[:3])]))


def rows_table(checked: PluginCheck) -> Grid:
    """Return a table with a row for each property."""
    rows = [[row.what, row.plugin, row.triton, row.verdict, row.why] for row in checked.rows]
    head = ["", checked.plugin.name, f"Triton {checked.version}", "verdict", "why"]
    return tables.plain(str(checked.plugin), head, rows)
