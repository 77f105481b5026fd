"""Plugins that fit and that do not, by a C compiler, and a libtriton that takes them as the real one does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.harness import Smith
from tests.support import require_c
from tritonsmith.build import plugins
from tritonsmith.build.plugins import FITS, MISFIT, UNSURE, PluginCheck
from tritonsmith.compiler.replay import replayer
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError
from tritonsmith.facts import elf, installed_tritons
from tritonsmith.facts.machine import Machine

MACHINE = Machine("Linux", "x86_64", 2, 1 << 33, glibc="2.99", glibcxx="3.4.99")
LIBTRITON = """
#ifndef HIDDEN
int run(void) __asm__("_ZN4mlir4Pass3runEv");
int checks __asm__("_ZN4llvm23EnableABIBreakingChecksE") = 1;
int id __asm__("_ZN4mlir6detail14TypeIDResolverINS_8ModuleOpEvE2idE") = 1;
int run(void) { return 1; }
#endif
"""
PLUGIN = """
#include <stdint.h>
#include <stdlib.h>
struct Info {
  uint32_t api;
  const char *name, *version;
  struct { const char **of; size_t count; } lists[3];
  const char *triton;
};
#ifdef MISSING
int taken(void) __asm__("_ZN4mlir4Pass6absentEv");
#else
int taken(void) __asm__("_ZN4mlir4Pass3runEv");
#endif
#ifdef CHECKS
extern int checks __asm__("_ZN4llvm24DisableABIBreakingChecksE");
int *held = &checks;
#endif
#ifdef COPY
__attribute__((visibility("hidden")))
int id __asm__("_ZN4mlir6detail14TypeIDResolverINS_8ModuleOpEvE2idE") = 1;
#endif
#ifndef ENTRY
#define ENTRY tritonGetPluginInfo
#endif
#ifndef API
#define API 2
#endif
#ifndef TRITON
#define TRITON "3.9.0+git1"
#endif
#ifndef HEADERS
#define HEADERS "0.1 (LLVM 24.0.0git)"
#endif
struct Info *ENTRY(void) {
  static struct Info info = {API, "mine", HEADERS, {{0, 0}, {0, 0}, {0, 0}}, TRITON};
  if (taken() != 1) abort();
  return &info;
}
"""
# As of 3.9: `extend_with`; what a pass does is in the name of its file.
PYTHON = """
import ctypes, os, types
ctypes.CDLL(os.path.join(os.path.dirname(__file__), "..", "libtriton.so"))
def extend_with(path):
    ctypes.CDLL(path).tritonGetPluginInfo
    plugin.add_mine = lambda manager, arguments: manager.append(path)
class ir:
    context = load_dialects = staticmethod(lambda *of: None)
    parse_mlir_module = staticmethod(lambda *of: types.SimpleNamespace())
    class pass_manager(list):
        def __init__(self, context):
            pass
        def run(self, module, name):
            if "/crash" in self[0]:
                os.abort()
            if "/fail" in self[0]:
                print("file:1:1: error: no layouts here", flush=True)
                raise RuntimeError("PassManager::run failed")
plugin = types.SimpleNamespace(extend_with=extend_with)
passes = types.SimpleNamespace(plugin=plugin)
"""


def compiled(source: str, out: Path, *flags: str | Path) -> Path:
    require_c()
    text = out.with_suffix(".c")
    text.write_text(source)
    argv = ["cc", "-shared", "-fPIC", "-o", out, text, *flags]
    subprocess.run([str(word) for word in argv], check=True)
    return out


@pytest.fixture
def libtriton(tmp_path: Path) -> Path:
    folder = tmp_path / "site" / "triton" / "_C"
    (folder / "libtriton").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder.parent / "__init__.py").touch()
    (folder / "libtriton" / "__init__.py").write_text(PYTHON)
    return compiled(LIBTRITON, folder / "libtriton.so", "-Wl,-soname,libtriton.so")


def checked(libtriton: Path, *flags: str, name: str = "mine", version: str = "3.9.0") -> PluginCheck:
    folder = libtriton.parents[3]
    linked = [] if "-DALONE" in flags else [libtriton]
    plugin = compiled(PLUGIN, folder / f"{name}.so", *flags, *linked)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{libtriton.parents[2]}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return plugins.check(plugin, libtriton, python, version, MACHINE, workspace.default())


def verdicts(one: PluginCheck, verdict: str) -> dict[str, str]:
    return {row.what: row.why for row in one.rows if row.verdict == verdict}


def test_a_plugin_that_fits(libtriton: Path) -> None:
    one = checked(libtriton)
    assert verdicts(one, MISFIT) == {}
    assert verdicts(one, UNSURE).keys() <= {"compiler", "LLVM's headers"}  # cc may be GCC
    fits = {row.what: row.plugin for row in one.rows if row.verdict == FITS}
    assert fits["symbols"] == "1 taken, 0 missing"
    assert (fits["interface version"], fits["Triton's version"]) == ("2", "3.9.0+git1")
    assert (fits["loaded by Triton"], fits["run on a small module"]) == ("add_mine", "yes")
    assert one.as_json()["verdict"] == UNSURE


@pytest.mark.parametrize(
    ("flags", "what", "why"),
    [
        (["-DENTRY=other"], "entry point", "with default visibility"),
        (["-DALONE"], "linked to libtriton", "for itself"),
        (["-DMISSING"], "symbols", "mlir::Pass::absent()"),
        (["-DMISSING"], "resolved at once", "undefined symbol: mlir::Pass::absent()"),
        (["-DCHECKS"], "LLVM's ABI checks", "different sizes"),
        (["-DCOPY"], "TypeIDs", "casts"),
        (["-DCOPY"], "copies of libtriton's code", "TypeIDResolver"),
        (["-DAPI=1"], "interface version", ""),
        (['-DTRITON="3.8.0"'], "Triton's version", ""),
        (["-DTRITON=0"], "Triton's version", "aborts the import"),
        (['-DHEADERS="x"'], "", ""),
    ],
)
def test_what_does_not_fit(libtriton: Path, flags: list[str], what: str, why: str) -> None:
    one = checked(libtriton, *flags)
    found = verdicts(one, MISFIT)
    assert (what in found) == bool(what)
    assert why in found.get(what, "")
    assert one.as_json()["verdict"] == (MISFIT if what else UNSURE)


def test_missing_symbols_are_all_named(libtriton: Path) -> None:
    assert checked(libtriton, "-DMISSING", "-DCHECKS").missing == (
        "_ZN4llvm24DisableABIBreakingChecksE",
        "_ZN4mlir4Pass6absentEv",
    )


def test_a_pass_that_crashes_or_fails(libtriton: Path) -> None:
    crashed = verdicts(checked(libtriton, name="crash"), MISFIT)
    assert "SIGABRT" in crashed["run on a small module"]
    failed = checked(libtriton, name="fail")
    assert verdicts(failed, MISFIT) == {}
    assert "no layouts here" in verdicts(failed, UNSURE)["run on a small module"]


def test_a_libtriton_that_hides_its_symbols(libtriton: Path) -> None:
    one_flag = compiled(LIBTRITON, libtriton, "-DHIDDEN", "-Wl,-soname,libtriton.so")
    found = verdicts(checked(one_flag, "-Wl,--unresolved-symbols=ignore-all"), MISFIT)
    assert "TRITON_EXT_ENABLED" in found["symbols"]


def test_a_release_that_takes_no_plugins(libtriton: Path) -> None:
    one = checked(libtriton, version="3.5.1")
    assert {row.what: row.triton for row in one.rows}["interface version"] == "unknown"


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("0.1 (LLVM 24.0.0git)", UNSURE),
        (f"0.1 (LLVM 24.0.0git {'ab' * 20})", FITS),
        (f"0.1 (LLVM 24.0.0git {'cd' * 20})", MISFIT),
        ("0.1 (LLVM 23.1.4)", MISFIT),
        ("0.1", UNSURE),
    ],
)
def test_whose_headers(libtriton: Path, said: str, verdict: str) -> None:
    producer = f'\nchar version[] = "\\0" "24.0.0git {"ab" * 20}";\n'
    compiled(LIBTRITON + producer, libtriton, "-Wl,-soname,libtriton.so")
    rows = {row.what: row for row in checked(libtriton, f'-DHEADERS="{said}"').rows}
    assert rows["LLVM's headers"].verdict == verdict


def test_a_newer_system(libtriton: Path) -> None:
    older = Machine("Linux", "x86_64", 2, 1 << 33, glibc="2.1")
    plugin = compiled(PLUGIN, libtriton.parents[3] / "x.so", libtriton)
    found = {row.what: row.verdict for row in plugins._runtime(elf.read_shared_library(plugin), older)}
    assert found == {"GLIBC": MISFIT}


@pytest.mark.slow
def test_a_wheel(with_wheel: Smith, tmp_path: Path) -> None:
    """The released libtriton itself; LLVM's headers, which a pass needs, are not on every machine."""
    smith = with_wheel.beside(tmp_path)
    python = smith.env("wheel") / "venv" / "bin" / "python"
    library = replayer.library(python)
    version = installed_tritons.of_python(python)
    assert version
    own = f'-DTRITON="{version.version}"'
    unlike = compiled(PLUGIN, tmp_path / "unlike.so", own, library)
    answer = json.loads(smith("plugin.check", str(unlike), "--wheel", "wheel", "--json", code=1).out)
    assert answer["verdict"] == MISFIT
    assert answer["missing"] == ["_ZN4mlir4Pass3runEv"]
    assert "undefined symbol" in {row["what"]: row["why"] for row in answer["rows"]}["loaded by Triton"]
    idle = PLUGIN.replace("if (taken() != 1) abort();", "")
    fits = compiled(idle, tmp_path / "idle.so", own, "-Wl,--no-as-needed", library)
    answer = json.loads(smith("plugin.check", str(fits), "--wheel", "wheel", "--json").out)
    found = {row["what"]: row["verdict"] for row in answer["rows"]}
    assert (found["interface version"], found["Triton's version"]) == (FITS, FITS)
    assert found["loaded by Triton"] == UNSURE  # it has no passes


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"text", b"\x7fELF\x02\x01" + b"\xff" * 90])
def test_a_file_that_is_no_library(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.so").write_bytes(content)
    with pytest.raises(FactError):
        elf.read_shared_library(tmp_path / "x.so")


def test_a_library_that_was_cut_off(libtriton: Path) -> None:
    whole = libtriton.read_bytes()
    for size in range(0, len(whole), 997):
        libtriton.write_bytes(whole[:size])
        with pytest.raises(FactError):
            elf.read_shared_library(libtriton)
