"""`--dry-run` of every task, for Linux and macOS, from Triton 2.1 to main, as files to read and compare."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from tests.support import as_plain_user
from tests.unit.build import made
from tests.unit.build.conftest import UPDATE, Golden
from tests.unit.build.llvm.test_closure import BUILT
from tests.unit.build.llvm.test_source import BROUGHT
from tests.unit.build.made import System, shell
from tritonsmith.build import compile_commands
from tritonsmith.build.cmake import bounded_jobs
from tritonsmith.build.compile_commands import DatabaseLink
from tritonsmith.build.llvm import prebuilt, source
from tritonsmith.build.llvm import providers as llvm_providers
from tritonsmith.build.llvm.prebuilt import Consumer
from tritonsmith.build.llvm.providers import ProviderChoice, ProviderInputs
from tritonsmith.build.triton import commands, recipe
from tritonsmith.build.triton.install import environment as install_environment
from tritonsmith.build.triton.install import plan, wheel
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.build.triton.source import TritonSource, request_for
from tritonsmith.compiler import targets, up
from tritonsmith.core.envs.settings import LlvmSettings, Provider, Settings, TritonSettings
from tritonsmith.core.plan import Plan, Step
from tritonsmith.facts.llvm_tree import LlvmTree
from tritonsmith.wheels import venv

VERSIONS = ("main", "3.7", "3.5", "3.3", "3.1", "2.1")
SYSTEMS: tuple[System, ...] = ("linux", "macos")
WHEELS = {
    "2.1": "2.1.0",
    "3.1": "3.1.0",
    "3.3": "3.3.1",
    "3.5": "3.5.1",
    "3.7": "3.7.1",
    "main": "newest",
}
SHA256 = "0f" * 32  # upstream gives none before 3.8, so the user does
WHEELED = ("main", "3.3")  # setup.py in the top folder, and in python/
PROFILED = ("main", "3.7", "3.3", "3.1")  # 2.1 has no profiler
UNHASHED = ("2.1", "3.1", "3.3", "3.5", "3.7")

each_checkout = pytest.mark.parametrize("version", VERSIONS)
each_system = pytest.mark.parametrize("system", SYSTEMS)


def choice(version: str, system: System, provider: Provider) -> ProviderChoice:
    checkout = made.checkout(version, made.root(system))
    wanted = LlvmSettings(provider=provider, sha256=SHA256 if provider == "prebuilt" else "")
    chosen = made.settings(wanted)
    means = made.means(system, jobs=bounded_jobs(made.machine(system), chosen.toolchain, wanted.debug_info))
    probe = made.workspace(system).env("dev").probe

    def configure(tree: LlvmTree) -> tuple[tuple[Step, ...], Path]:
        facts = made.inputs(version, system, chosen, tree)
        return recipe.configure(facts, probe, phase=prebuilt.PHASE_PROBE), probe

    facts = ProviderInputs(
        workspace=made.workspace(system),
        means=means,
        installed=(made.installed(system),),
        source=source.locate(""),
        reachable=lambda _: None,
        store=made.store(system),
        consumer=Consumer(configure, ("FileCheck", "opt")),
    )
    return llvm_providers.choose(request_for(chosen, checkout), facts)


def inputs(version: str, system: System) -> Inputs:
    """Triton's build against the LLVM that `setup-mlir --provider source` makes."""
    taken = choice(version, system, "source")
    tree = made.llvm(taken.prefix, taken.commit, assertions=True, build_tree=True)
    headers = made.precompiled() if system == "linux" else {}
    return made.inputs(version, system, tree=tree, precompiled=headers)


def replaced(text: str, old: str, new: str) -> str:
    """The text with what differs from version to version replaced; it must occur."""
    assert old in text
    return text.replace(old, new)


@each_system
@each_checkout
def test_up(version: str, system: System, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(venv, "base_interpreter", lambda _: made.python(system))
    settings = Settings("wheel", triton=TritonSettings(wheel=WHEELS[version]))
    prepared = up.prepare(settings, made.workspace(system).env("wheel"), made.programs(system))
    wanted = "triton" if version == "main" else f"triton=={WHEELS[version]}"
    golden(f"up-{system}.sh", replaced(shell(prepared.plan, system), f" {wanted})\n", " triton)\n"))


@each_system
@each_checkout
def test_install_triton_and_build_triton_which_is_how_it_begins(
    version: str, system: System, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = inputs(version, system)
    request = request_for(facts.settings, facts.checkout)
    monkeypatch.setattr(commands, "gather", lambda *_: (facts, request))
    located = TritonSource(facts.checkout.root, Plan("there"))
    env = facts.env
    proof = up.smoke_test(env.path, env.python, (targets.parse("a100"),), made.programs(system))
    prepared = commands.prepare_install(facts.settings, facts.workspace, located, proof, force=True)
    installed = shell(prepared.plan, system)
    golden(f"install-triton-{system}-{version}.sh", installed, f"install-triton-{system}-main.sh")
    title, build = shell(recipe.plan(facts), system).split("\nset -eu\n")
    assert title.endswith(
        f"\n# Triton {facts.checkout.version} (TritonRelBuildWithAsserts) in {facts.env.build}"
    )
    assert build == installed.split("\nset -eu\n")[1].split("\n# editable install\n")[0]


@pytest.mark.parametrize("version", WHEELED)
def test_a_wheel(version: str, golden: Golden) -> None:
    """pip links libtriton elsewhere, and the build folder is configured as before afterwards."""
    facts = inputs(version, "linux")
    text = shell(wheel(facts, occupied=False), "linux")
    like = (f"install-triton-linux-{version}.sh", "install-triton-linux-main.sh")
    golden(f"wheel-linux-{version}.sh", text, *like)
    *_, last = wheel(facts, occupied=False).steps
    assert last.stamp
    assert last.stamp.again, "the runner asks stamps before the first step"
    before = [step for step in recipe.plan(facts).steps if step.stamp and step.stamp.path == last.stamp.path]
    assert last.shell() == before[-1].shell()
    assert replace(last.stamp, again=False) == before[-1].stamp


@pytest.mark.parametrize("version", PROFILED)
def test_install_triton_with_the_profiler(version: str, golden: Golden) -> None:
    """Which headers CMake and setup.py of each era look for, and where they are."""
    facts = replace(inputs(version, "linux"), settings=made.settings(proton=True))
    text = shell(plan(facts, occupied=False), "linux")
    like = (f"install-triton-linux-{version}.sh", "install-triton-linux-main.sh")
    golden(f"install-triton-proton-linux-{version}.sh", text, *like)
    cached = recipe.cache_variables(facts)
    rocm, roctracer = "ROCM_INCLUDE_DIR", "ROCTRACER_INCLUDE_DIR"
    assert {rocm, roctracer} & cached.keys() == ({rocm} if version == "main" else {roctracer})
    variables = dict(install_environment(facts))
    assert variables["TRITON_ROCM_INCLUDE_PATH"] == cached.get(rocm)
    assert variables["TRITON_ROCTRACER_INCLUDE_PATH"] == cached.get(roctracer)
    assert Path(cached["JSON_INCLUDE_DIR"]).parent == Path(str(variables["JSON_SYSPATH"]))


@each_system
@each_checkout
def test_setup_mlir_from_source(version: str, system: System, golden: Golden) -> None:
    text = shell(choice(version, system, "source").plan, system)
    like = (f"install-triton-{system}-{one}.sh" for one in (version, "main"))
    golden(f"setup-mlir-source-{system}-{version}.sh", text, *like)


@each_system
@each_checkout
def test_setup_mlir_installed(version: str, system: System, golden: Golden) -> None:
    golden(f"setup-mlir-system-{system}.sh", shell(choice(version, system, "system").plan, system))


@each_system
@each_checkout
def test_setup_mlir_prebuilt(version: str, system: System, golden: Golden) -> None:
    text = shell(choice(version, system, "prebuilt").plan, system)
    if version in UNHASHED:
        text = replaced(text, f"llvm-{made.checkout(version).pins[0].commit[:8]}-", "llvm-PIN-")
        golden(f"setup-mlir-prebuilt-{system}-before-3.8.sh", text)
    else:
        golden(f"setup-mlir-prebuilt-{system}-{version}.sh", text)


@each_system
@each_checkout
def test_link_compile_commands(version: str, system: System, golden: Golden) -> None:
    facts = inputs(version, system)
    databases = tuple(
        folder / compile_commands.COMPILE_COMMANDS for folder in (facts.env.build, facts.llvm.prefix)
    )
    place = DatabaseLink(facts.checkout.root / compile_commands.COMPILE_COMMANDS, "absent")
    text = shell(compile_commands.link_plan(place, facts.env, databases), system)
    golden(
        f"link-compile-commands-{system}.sh",
        replaced(text, f"/llvm/{facts.llvm.prefix.name}/", "/llvm/ENTRY/"),
    )


@pytest.mark.parametrize("provider", ["source", "prebuilt", "system"])
def test_a_recipe_does_not_depend_on_who_runs_it(provider: Provider) -> None:
    """The made-up home folder is writable to root only, whom nothing keeps from making it."""
    mine, plain = choice("main", "linux", provider), as_plain_user(lambda: choice("main", "linux", provider))
    assert mine.plan == plain.plan


def test_every_golden_file_has_its_test() -> None:
    tasks = ["install-triton", "setup-mlir-source"]
    wanted = {f"{task}-{system}-{version}.sh" for task in tasks for system in SYSTEMS for version in VERSIONS}
    wanted |= {f"install-triton-proton-linux-{version}.sh" for version in PROFILED}
    wanted |= {f"wheel-linux-{version}.sh" for version in WHEELED}
    alike = ["up", "setup-mlir-system", "link-compile-commands"]
    wanted |= {f"{task}-{system}.sh" for task in alike for system in SYSTEMS}
    wanted |= {
        f"setup-mlir-prebuilt-{system}-{era}.sh" for system in SYSTEMS for era in ("before-3.8", "main")
    }
    wanted |= {f"llvm-sources-{kind}.sh" for kind in BROUGHT} | {f"llvm-build-{kind}.sh" for kind in BUILT}
    wanted |= {"llvm-archive.sh", "worktree-add.sh", "worktree-remove.sh"}
    assert {path.name for path in made.GOLDEN.glob("*.sh")} == wanted


def test_every_provider_that_makes_an_llvm_has_golden_files() -> None:
    makers = {name for name in get_args(Provider) if name not in ("auto", "store")}
    names = (path.name.removeprefix("setup-mlir-") for path in made.GOLDEN.glob("setup-mlir-*.sh"))
    assert {name.partition("-")[0] for name in names} == makers


def test_a_phase_that_another_golden_file_has_is_one_line(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(UPDATE, raising=False)
    name, other = (f"install-triton-linux-{version}.sh" for version in ("3.7", "main"))
    head = "# compile vector-add"
    phase = (made.GOLDEN / other).read_text(encoding="utf-8").rstrip().split("\n\n")[-1]
    whole = replaced((made.GOLDEN / name).read_text(encoding="utf-8"), f"{head}: as in {other}", phase)
    assert phase.startswith(f"{head}\n")
    golden(name, whole, other)
    with pytest.raises(pytest.fail.Exception, match='"timeout": 601'):
        golden(name, replaced(whole, '"timeout": 600', '"timeout": 601'), other)


def test_a_difference_is_shown_as_a_diff(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(UPDATE, raising=False)
    name = "install-triton-linux-3.5.sh"
    text = (made.GOLDEN / name).read_text(encoding="utf-8")
    with pytest.raises(pytest.fail.Exception) as failure:
        golden(name, text.replace("[RelWithDebInfo]", "[Debug]").replace("LLVM_DIR", "LLVM_DOR"))
    shown = str(failure.value).splitlines()
    assert shown[0] == f"--- golden/{name}"
    assert any(line.startswith("-set(LLVM_DIR ") for line in shown)
    assert any(line.startswith("+set(LLVM_DOR ") for line in shown)
    assert "TRITONSMITH_UPDATE_GOLDEN=1" in shown[-1]


def test_the_same_facts_make_the_same_plan() -> None:
    first, second = (recipe.plan(inputs("3.7", "linux")) for _ in range(2))
    assert first == second
    other = inputs("3.7", "linux")
    moved = replace(other, python=made.python(include=Path("/opt/python/include")))
    stamps = [{step.stamp.key for step in plan.steps if step.stamp} for plan in (first, recipe.plan(moved))]
    assert stamps[0] != stamps[1]
