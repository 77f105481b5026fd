"""What would fail minutes into a build: each problem with the fact that shows it, and one that does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.unit.build import made
from tritonsmith.build import preflight
from tritonsmith.build.cmake import Jobs
from tritonsmith.build.compile_commands import DatabaseLink
from tritonsmith.build.preflight import Problem, enforce
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.build.triton.source import request_for
from tritonsmith.core.envs.settings import BuildType, CacheSettings, ToolchainSettings
from tritonsmith.core.errors import PreflightError
from tritonsmith.facts.checkout import TritonCheckout
from tritonsmith.facts.tools import Tool

PLENTY = 500.0  # GiB of disk
Change = Callable[[Inputs], Inputs]


@pytest.fixture
def good(tmp_path: Path) -> Inputs:
    """Inputs without a problem: 3.5, with an LLVM at its pin."""
    for name in ("nvidia", "amd"):
        (tmp_path / "third_party" / name).mkdir(parents=True)
    checkout = made.checkout("3.5", tmp_path)
    assert checkout.pin
    return made.inputs(tree=made.llvm(commit=checkout.pin.commit), checkout=checkout)


def found(inputs: Inputs, *, free: float = PLENTY, lit: str = "") -> list[Problem]:
    request = request_for(inputs.settings, inputs.checkout)
    return list(preflight.triton(inputs, request, disk_free=free, lit=lit))


def with_checkout(**changes: Any) -> Change:
    return lambda good: replace(good, checkout=replace(good.checkout, **changes))


def with_llvm(**changes: Any) -> Change:
    return lambda good: replace(good, llvm=replace(good.llvm, **changes))


def with_settings(**changes: Any) -> Change:
    return lambda good: replace(
        good, settings=replace(good.settings, triton=replace(good.settings.triton, **changes))
    )


def with_python(**changes: Any) -> Change:
    return lambda good: replace(good, python=made.python(**changes))


def with_compilers(**changes: Any) -> Change:
    return lambda good: replace(good, compilers=made.compilers(**changes))


def with_jobs(compile_: int, link: int) -> Change:
    return lambda good: replace(good, jobs=Jobs(compile_, link), machine=made.machine(memory=8 * made.GIB))


def with_clang(version: str) -> Change:
    return with_compilers(cxx=Tool("clang++", Path("/usr/bin/clang++"), version))


def without_a_pin_or_commit(good: Inputs) -> Inputs:
    return with_checkout(pins=())(with_llvm(commit="")(good))


def with_default_linker(good: Inputs) -> Inputs:
    settings = replace(good.settings, toolchain=ToolchainSettings(linker="default"))
    return replace(good, settings=settings, compilers=made.compilers(linker=None))


def on_a_mac(good: Inputs) -> Inputs:
    return replace(
        good, machine=made.machine("macos"), compilers=made.compilers("macos", linker=None), jobs=Jobs(10, 10)
    )


BAD: list[tuple[str, bool, Change]] = [
    ("llvm-lacks", True, with_llvm(packages=frozenset({"mlir"}))),
    ("llvm-lacks", True, with_llvm(targets=frozenset({"X86", "NVPTX"}))),
    ("llvm-lacks", True, with_llvm(static=False)),
    ("llvm-not-the-pin", False, with_llvm(commit="")),
    ("llvm-not-the-pin", False, with_llvm(commit=made.OTHER)),
    ("werror", False, with_clang("22.1.8")),
    ("no-compiler", True, with_compilers(cxx=None)),
    ("no-compiler", True, with_compilers(cc=None)),
    ("no-linker", True, with_compilers(linker=None)),
    ("cmake-version", True, lambda good: replace(good, tools=replace(good.tools, cmake_version="4.1.0"))),
    ("cmake-version", True, lambda good: replace(good, tools=replace(good.tools, cmake_version="3.18.4"))),
    ("python-headers", True, with_python(headers=False)),
    ("python-version", False, with_python(version="3.8.19")),
    ("python-version", False, with_python(version="3.15.0")),
    ("backend", True, with_settings(backends=("nvidia", "amd", "intel"))),
    ("bin-backends", True, with_settings(backends=("nvidia",))),
    ("bin-backends", True, with_settings(backends=("amd",))),
    ("bin-backends", True, with_settings(backends=("nvidia",), targets=("check-triton-lit-tests",))),
    ("cuda-headers", True, with_checkout(nvidia=(("ptxas", "12.8.93"),))),
    ("memory", False, with_jobs(8, 1)),
    ("memory", False, with_jobs(1, 5)),
    ("memory", True, with_jobs(16, 1)),
    ("memory", True, with_jobs(1, 8)),
]
FINE = [
    pytest.param(lambda good: good, id="nothing changed"),
    pytest.param(without_a_pin_or_commit, id="no pin, no commit"),
    pytest.param(with_clang("20.1.0"), id="a clang that upstream had"),
    pytest.param(with_clang("99.0.0"), id="a clang nobody knows the date of"),
    pytest.param(
        with_compilers(cxx=Tool("clang++", Path("/usr/bin/g++"), "22.0")), id="g++ has other warnings"
    ),
    pytest.param(with_checkout(committed=""), id="a checkout without git"),
    pytest.param(with_default_linker, id="the compiler's own linker"),
    pytest.param(on_a_mac, id="the Mac's own linker"),
    pytest.param(
        lambda good: replace(good, tools=replace(good.tools, cmake_version="")), id="CMake of unknown version"
    ),
    pytest.param(with_python(version="3.9.0"), id="the oldest Python"),
    pytest.param(with_python(version="3.14.2"), id="the newest Python"),
    pytest.param(with_settings(backends=("amd",), targets=("triton",)), id="one backend, libtriton alone"),
    pytest.param(
        lambda good: with_checkout(nvidia=())(with_settings(backends=(), targets=("triton",))(good)),
        id="no CUDA without its backend",
    ),
    pytest.param(with_jobs(5, 2), id="just enough memory"),
]


@pytest.mark.parametrize(("name", "fatal", "change"), BAD, ids=[f"{row[0]}-{i}" for i, row in enumerate(BAD)])
def test_a_bad_fact_is_seen(name: str, fatal: bool, change: Change, good: Inputs) -> None:
    problems = found(change(good))
    assert [(problem.id, problem.fatal) for problem in problems] == [(name, fatal)]
    assert problems[0].what
    assert problems[0].remedy


@pytest.mark.parametrize("change", FINE)
def test_a_good_fact_is_not(change: Change, good: Inputs) -> None:
    assert found(change(good)) == []


@pytest.mark.parametrize(("version", "seen"), [("", []), ("18.1.8", []), ("23.1.0", ["lit"])])
def test_lit_in_the_venv(version: str, seen: list[str], good: Inputs) -> None:
    problems = found(good, lit=version)
    assert [problem.id for problem in problems] == seen
    assert all("pip install 'lit>=17,<20'" in problem.remedy for problem in problems)


@pytest.mark.parametrize(
    ("version", "backends", "missing"),
    [("2.2", "amd", ""), ("3.1", "nvidia", "amd"), ("3.1", "amd", "nvidia"), ("main", "nvidia", "amd")],
)
def test_bin_wants_backends_by_era(version: str, backends: str, missing: str, tmp_path: Path) -> None:
    (tmp_path / "third_party" / backends).mkdir(parents=True)
    checkout = made.checkout(version, tmp_path)
    inputs = with_settings(backends=(backends,))(made.inputs(checkout=checkout))
    told = [problem for problem in found(inputs) if problem.id == "bin-backends"]
    assert len(told) == bool(missing)
    for problem in told:
        assert f"headers of {missing}, which --backends {backends} leaves out" in problem.what
        assert "--target triton" in problem.remedy
        assert f"--backends {backends},{missing}" in problem.remedy


def test_a_program_that_includes_no_headers_of_backends_may_be_built(good: Inputs) -> None:
    folder = good.checkout.root / "bin"
    folder.mkdir()
    (folder / "triton-opt.cpp").write_text('#include "./RegisterTritonDialects.h"\n')
    (folder / "triton-llvm-opt.cpp").write_text("#include <llvm/Passes.h>\n")
    one = with_settings(backends=("nvidia",), targets=("triton-llvm-opt",))
    assert found(one(good)) == []
    other = with_settings(backends=("nvidia",), targets=("triton-llvm-opt", "triton-opt"))
    (problem,) = found(other(good))
    assert problem.what.startswith("triton-opt will not compile")


def test_setup_py_builds_bin_whatever_the_targets(good: Inputs) -> None:
    one = with_settings(backends=("nvidia",), targets=("triton",))(good)
    told = list(preflight.setup_py(one, DatabaseLink(good.checkout.root / "compile_commands.json", "absent")))
    assert [problem.id for problem in told] == ["bin-backends"]


def test_strict_warnings_change_the_advice(good: Inputs) -> None:
    newer = with_clang("22.1.8")(good)
    (relaxed,), (strict,) = found(newer), found(with_settings(werror=True)(newer))
    assert relaxed.remedy.startswith("these new warnings are not treated as errors")
    assert strict.remedy.startswith("remove werror = true")


@pytest.mark.parametrize(("free", "seen"), [(2.9, ["disk"]), (3.0, [])])
def test_disk_for_triton(free: float, seen: list[str], good: Inputs) -> None:
    assert [problem.id for problem in found(good, free=free)] == seen


def test_cuda_headers_that_are_there_already(good: Inputs) -> None:
    bare = with_checkout(nvidia=())(good)
    assert [problem.id for problem in found(bare)] == ["cuda-headers"]
    header = good.checkout.root / "third_party" / "nvidia" / "backend" / "include" / "cuda.h"
    header.parent.mkdir(parents=True)
    header.touch()
    assert found(bare) == []


def test_2_x_has_no_folder_for_its_backends(good: Inputs, tmp_path: Path) -> None:
    old = replace(good, checkout=replace(made.checkout("2.1"), root=tmp_path / "empty"))
    assert {problem.id for problem in found(old)} == {"llvm-not-the-pin", "werror"}


def llvm_problems(free: float = PLENTY, **changes: Any) -> list[str]:
    given: dict[str, Any] = {
        "machine": made.machine(),
        "compilers": made.compilers(),
        "jobs": Jobs(16, 16),
        "linker": "lld",
    }
    request = made.request(**{name: changes.pop(name) for name in list(changes) if name in _LLVM})
    problems = preflight.llvm(request, **(given | changes), disk_free=free, where=Path("/work"))
    return [problem.id for problem in problems]


_LLVM = ("build_type", "ninja_targets", "debug_info", "scope")


def test_llvm_from_sources() -> None:
    assert llvm_problems() == []
    assert llvm_problems(compilers=made.compilers(cxx=None, linker=None)) == ["no-compiler", "no-linker"]
    assert llvm_problems(compilers=made.compilers(linker=None), linker="mold") == ["no-linker"]
    assert llvm_problems(debug_info="full") == ["memory"]  # 16 links at 12 GiB


@pytest.mark.parametrize("build_type", get_args(BuildType))
def test_disk_for_llvm(build_type: BuildType) -> None:
    need = {"Debug": 62.5, "RelWithDebInfo": 52.5, "Release": 10.5, "MinSizeRel": 10.5}[build_type]
    for scope, least in (("all", need), ("closure", (need - 2.5) / 4 + 2.5)):
        assert llvm_problems(least - 0.1, build_type=build_type, scope=scope) == ["disk"]
        assert llvm_problems(least, build_type=build_type, scope=scope) == []
    assert llvm_problems(1.0, build_type=build_type, ninja_targets=("FileCheck",)) == []


@pytest.mark.parametrize(
    ("version", "state", "seen"),
    [
        ("3.5", "folder", "would delete the folder"),
        ("3.5", "file", "would fail on the file"),
        ("3.5", "link", None),
        ("3.5", "absent", None),
        ("3.4", "folder", None),  # its setup.py makes no link
        ("3.4", "file", None),
    ],
)
def test_what_setup_py_would_do(version: str, state: Any, seen: str | None) -> None:
    inputs = made.inputs(version)
    problems = list(
        preflight.setup_py(inputs, DatabaseLink(inputs.checkout.root / "compile_commands.json", state))
    )
    assert [(problem.id, problem.fatal) for problem in problems] == (
        [("compile-commands", True)] * bool(seen)
    )
    assert all(seen and seen in problem.what for problem in problems)


FATAL = Problem("disk", "the disk is too small", "buy another")
WARNING = Problem("werror", "clang is newer", "take an older one", fatal=False)


def test_fatal_problems_stop_it_all_together() -> None:
    second = Problem("no-linker", "there is no lld", "install it")
    with pytest.raises(PreflightError) as caught:
        enforce([WARNING, FATAL, second], force=False)
    assert caught.value.why == "[disk] the disk is too small\n[no-linker] there is no lld"
    assert caught.value.hints == (
        "[disk] buy another",
        "[no-linker] install it",
        "to ignore preflight errors: --force",
    )
    assert caught.value.exit_code == 1


def test_force_makes_them_warnings() -> None:
    assert enforce([WARNING, FATAL], force=True) == (
        "[werror] clang is newer (take an older one)",
        "[disk] the disk is too small (buy another)",
    )


def test_warnings_alone_stop_nothing() -> None:
    assert enforce([WARNING], force=False) == ("[werror] clang is newer (take an older one)",)
    assert enforce([], force=False) == ()


def test_every_checkout_is_fine_with_the_llvm_that_setup_mlir_would_build() -> None:
    """The era's own needs are met by the projects and tools that the recipe builds."""
    for version in made.stored():
        checkout: TritonCheckout = made.checkout(version)
        request = request_for(made.settings(), checkout)
        tree = made.llvm(
            packages=frozenset(request.projects),
            tools=frozenset(
                {"FileCheck", "mlir-tblgen", *(["clang++"] if "clang" in request.projects else [])}
            ),
        )
        assert request.lacks(tree) == [], version


def test_every_problem_has_its_test() -> None:
    source = Path(preflight.__file__).read_text(encoding="utf-8")
    ids = set(re.findall(r'Problem\(\s*"([a-z-]+)"', source))
    assert ids == {row[0] for row in BAD} | {"lit", "disk", "compile-commands"}


@pytest.mark.parametrize(
    ("cache", "found", "fatal"),
    [
        (CacheSettings(), [], []),
        (CacheSettings(distribute="icecc"), ["no-icecc"], ["no-icecc"]),
        (CacheSettings(launcher="sccache"), ["sccache-split-dwarf"], ["sccache-split-dwarf"]),
        (CacheSettings(launcher="none", remote="redis://cache"), ["no-ccache"], []),
    ],
)
def test_the_cache(
    cache: CacheSettings, found: list[str], fatal: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    name = cache.launcher
    launcher = None if name == "none" else Tool(name, Path("/opt") / name, "4.9")
    problems = list(preflight.cache(replace(made.settings(), cache=cache), made.compilers(launcher=launcher)))
    assert [problem.id for problem in problems] == found
    assert [problem.id for problem in problems if problem.fatal] == fatal
