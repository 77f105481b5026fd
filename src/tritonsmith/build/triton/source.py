"""Locate Triton's sources: a flag, the env file, the checkout around the current folder, or a clone.

Editable installs and wheels by pip, both in the build folder of `build-triton`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tritonsmith.build import cmake
from tritonsmith.build.llvm.source import LlvmRequest
from tritonsmith.build.triton import recipe
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.core.command_line import command, version_key
from tritonsmith.core.envs.settings import Settings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import (
    GitFetch,
    Link,
    MakeDir,
    Plan,
    Remove,
    Run,
    Stamp,
    Step,
    Write,
    digest,
    stamped,
)
from tritonsmith.facts import checkout, llvm_tree, shared_library
from tritonsmith.facts import checkout as checkouts
from tritonsmith.facts.checkout import LlvmPin, TritonCheckout
from tritonsmith.facts.llvm_tree import LlvmTree
from tritonsmith.facts.python_env import PythonEnv
from tritonsmith.wheels import venv

PHASE = "Triton sources"
_VERSION = re.compile(r"^(?:v|release/)?(\d+\.\d+)(?:\.[\dx]+)?$")


@dataclass(frozen=True)
class TritonSource:
    """The location of Triton's sources, and the plan that fetches them.

    Attributes:
        root: folder of the checkout.
        fetch: plan that fetches it; empty for an existing checkout.
    """

    root: Path
    fetch: Plan


def locate(settings: Settings, workspace: Workspace, cwd: Path) -> TritonSource:
    """Find the checkout. Order: `--source`, a path in the env file, the one around `cwd`, a clone.

    Args:
        settings: settings of the env.
        workspace: workspace for a clone.
        cwd: the current folder.

    Raises:
        FactError: no checkout and no URL is named.
    """
    source = settings.triton.source
    from_flag = dict(settings.origin).get("triton.source") == "command line"
    is_url = "://" in source or source.startswith("git@")
    around = checkouts.enclosing(cwd)
    if source and not is_url:
        return TritonSource(Path(source).expanduser().absolute(), Plan("Triton's sources are present"))
    if around and not (is_url and from_flag):
        return TritonSource(around, Plan("Triton's sources are present"))
    if not source:
        raise FactError(
            f"environment {settings.name!r} has no Triton source, and this folder is not in a checkout",
            where=cwd,
            hints=[
                "run this in a checkout, or give one: --source PATH",
                "or use another environment: --env dev",
            ],
        )
    return _clone(source, settings.triton.revision, settings.name, workspace)


def _clone(url: str, revision: str, name: str, workspace: Workspace) -> TritonSource:
    repository = workspace.sources / f"triton-{name}"
    git = ("git", "-C", str(repository))
    steps = (
        MakeDir(workspace.sources, phase=PHASE),
        GitFetch(repository, (url,), revision, phase=PHASE, blobless=False),
        Run((*git, "checkout", "--quiet", "--detach", "FETCH_HEAD"), cwd=workspace.sources, phase=PHASE),
    )
    done = workspace.sources / f".triton-{name}.done"
    # From then on the clone is the user's: only they move it, by `git pull`.
    fetched = done.exists() and repository.is_dir()
    return TritonSource(
        repository, Plan(f"Triton {revision} from {url}", () if fetched else stamped(steps, done, repository))
    )


def request_for(settings: Settings, checkout: TritonCheckout) -> LlvmRequest:
    """Return this checkout's requirements for an LLVM."""
    return LlvmRequest(checkout.pin, checkout.features, checkout.version, settings.llvm)


def request_for_revision(settings: Settings) -> LlvmRequest | None:
    """Return a release's requirements for an LLVM, without a checkout; None if the revision is no version."""
    match = _VERSION.match(settings.triton.revision)
    if not match:
        return None
    row = checkout.release(match[1])
    pin = LlvmPin(row.llvm, f"configs/triton-eras.toml, Triton {row.version}") if row.llvm else None
    return LlvmRequest(pin, checkout.features(row.version), row.version, settings.llvm)


# Checkouts whose LLVM pin moved: select the matching LLVM, and explain.

_SHORT = 12  # digits of a commit


def right_llvm(
    tree: LlvmTree,
    request: LlvmRequest,
    receipt: Mapping[str, Any],
    stored: Callable[[], Iterable[Path]],
    env: str,
) -> LlvmTree:
    """Return the LLVM to build against: that of `setup-mlir`, or one at the new pin if the pin has moved.

    An LLVM that was not at the earlier pin either was a deliberate choice, and stays.

    Args:
        tree: the LLVM from `setup-mlir`.
        request: current requirements of the checkout.
        receipt: receipt of `setup-mlir`.
        stored: returns prefixes of finished LLVMs in the store; called only if needed.
        env: name of the environment.

    Raises:
        FactError: the pin moved, and no available LLVM matches it.
    """
    pin, before = request.pin, str(receipt.get("pin") or "")
    # An LLVM that was not at the earlier pin either was a deliberate choice, and stays.
    was_at_pin = llvm_tree.same_commit(str(receipt.get("commit") or tree.commit), before)
    if pin is None or not was_at_pin or request.fit(tree.commit) == "pin" or pin.commit == before:
        return tree
    for prefix in stored():
        try:
            other = llvm_tree.read(prefix)
        except FactError:
            continue
        if request.fit(other.commit) == "pin" and not request.lacks(other):
            return other
    raise FactError(
        f"the checkout's LLVM pin changed from {before[:_SHORT]} to {request.describe_pin()}, "
        f"and no available LLVM matches it",
        where=tree.prefix,
        why=f"environment {env!r} has LLVM {tree.version} at {tree.commit[:_SHORT] or before[:_SHORT]}",
        hints=[
            f"run `{command('setup-mlir', env=env)}`, which finds or builds the right LLVM",
            f"or keep the current LLVM deliberately: --llvm-dir {tree.prefix}",
        ],
    )


def newer_archive(receipt: Mapping[str, Any] | None, request: LlvmRequest, env: str) -> Iterator[str]:
    """Yield a note if upstream rebuilt the archive of the same commit since it was unpacked.

    Args:
        receipt: receipt of `setup-mlir`; None if there is none.
        request: current requirements of the checkout.
        env: name of the environment.
    """
    had, pin = receipt or {}, request.pin
    before = had.get("pin_build")
    if pin is None or had.get("kind") != "prebuilt" or None in (before, pin.build) or before == pin.build:
        return
    if llvm_tree.same_commit(pin.commit, str(had.get("pin") or "")):
        yield (
            f"upstream rebuilt the archive of this LLVM pin: {pin.file} names build {pin.build}, here is "
            f"build {before}; `{command('setup-mlir', env=env)}` installs the new one"
        )


def pin_notes(last: Mapping[str, Any] | None, request: LlvmRequest, tree: LlvmTree) -> Iterator[str]:
    """Yield notes about changes since the last build.

    Args:
        last: the receipt of that build; None if there was none.
        request: current requirements of the checkout.
        tree: the LLVM to build against.
    """
    if last is None:
        return
    before, pin = str(last.get("pin") or ""), request.pin
    if pin and before and not llvm_tree.same_commit(pin.commit, before):
        yield f"the checkout's LLVM pin changed from {before[:_SHORT]} to {request.describe_pin()}"
    if (prefix := str(last.get("llvm") or "")) and Path(prefix) != tree.prefix:
        yield f"the LLVM changed: {prefix} -> {tree.prefix}"


PHASE_INSTALL = "editable install"
PHASE_WHEEL = "wheel"
PHASE_BACK = "configure Triton as before the wheel"
WHEELS = "wheels"  # folder of the environment
_SCRATCH = "wheel-build"  # folder of the environment for setuptools' intermediate files
# Where setup.py puts files for the wheel; `build-triton` writes them into the checkout.
_PLACES = ("CMAKE_LIBRARY_OUTPUT_DIRECTORY", "TRITON_WHEEL_DIR")

_GLIBC = "GLIBC_"  # prefix of its symbols' versions
# setup.py's `get_build_type`: the first of these that is set wins.
_BUILD_TYPE_VARIABLES = {
    "Debug": "DEBUG",
    "RelWithDebInfo": "REL_WITH_DEB_INFO",
    "TritonRelBuildWithAsserts": "TRITON_REL_BUILD_WITH_ASSERTS",
    "TritonBuildWithO1": "TRITON_BUILD_WITH_O1",
}
# CMake's variables for headers of the profiler, and the names that some era's setup.py reads for each:
# setup.py at 513f38c47a, 523a1b235b and 5838701feb.
_PROFILER = {
    "ROCTRACER_INCLUDE_DIR": ("ROCTRACER_INCLUDE_PATH", "TRITON_ROCTRACER_INCLUDE_PATH"),
    "ROCM_INCLUDE_DIR": ("TRITON_ROCM_INCLUDE_PATH",),
    "ROCPROFILER_SDK_INCLUDE_DIR": ("TRITON_ROCPROFILER_SDK_INCLUDE_PATH",),
}
# Other variables that some era's setup.py reads; a value for another purpose would change the build.
_REMOVED = (
    "LLVM_BUILD_SHARED_LIBS",
    "TRITON_BUILD_DIR",
    "TRITON_BUILD_TUTORIALS",
    "TRITON_BUILD_WITH_ASAN",
    "TRITON_BUILD_WITH_CLANG_LLD",
    "TRITON_EXT_ENABLED",
    "TRITON_LLVM_SYSTEM_SUFFIX",
    "TRITON_STABLE_ABI",
    "TRITON_WHEEL_NAME",
    "TRITON_WHEEL_VERSION_SUFFIX",
)


def plan(inputs: Inputs, *, occupied: bool) -> Plan:
    """Return the recipe: the steps of `build-triton`, then pip, which finds everything built.

    Args:
        inputs: facts and settings, as for `build-triton`.
        occupied: pip's own build folder exists and is not the tool's link; it is left alone.
    """
    build = recipe.plan(inputs)
    setup_dir = inputs.checkout.setup_dir
    # With build isolation pip makes a new environment in /tmp for each build; its paths get into
    # CMakeCache.txt, and the next plain `ninja` fails on folders that are gone (triton#5076).
    command = venv.pip_install(inputs.env.python, "--no-build-isolation", "--editable", str(setup_dir))
    pip = Run(
        command, cwd=inputs.env.path, env=install_environment(inputs), path=_path(inputs), phase=PHASE_INSTALL
    )
    steps = (*build.steps, *_linked(inputs, PHASE_INSTALL, occupied=occupied), pip)
    return Plan(f"editable install of {inputs.checkout.root} into {inputs.env.venv}", steps, build.notes)


def wheel(inputs: Inputs, *, occupied: bool) -> Plan:
    """Return the recipe: the steps of `build-triton`, then pip, which relinks libtriton for the wheel.

    Args:
        inputs: facts and settings, as for `build-triton`.
        occupied: pip's own build folder exists and is not the tool's link; it is left alone.
    """
    env, build = inputs.env, recipe.plan(inputs)
    scratch, cached = env.path / _SCRATCH, recipe.cache_variables(inputs)
    cache, base = scratch / cmake.CACHE_FILE, scratch / "setup.cfg"
    # setup.py chooses these two places by itself, for a wheel inside its own scratch folder.
    kept = {name: value for name, value in cached.items() if name not in _PLACES}
    texts = {cache: cmake.settings(kept), base: f"[build]\nbuild_base = {scratch / 'build'}\n"}
    argv = ("wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation")
    places = ("--wheel-dir", str(env.path / WHEELS), str(inputs.checkout.setup_dir))
    change = dict(install_environment(inputs)) | {
        # The checkout's build/lib may hold files of older commits, which setuptools would pack.
        "DIST_EXTRA_CONFIG": str(base),
        "TRITON_APPEND_CMAKE_ARGS": shlex.join(("-C", str(cache))),
    }
    steps: tuple[Step, ...] = (
        *build.steps,
        *_linked(inputs, PHASE_WHEEL, occupied=occupied),
        Remove((scratch,), env.root, phase=PHASE_WHEEL),
        MakeDir(scratch, phase=PHASE_WHEEL),
        *(Write(path, text, phase=PHASE_WHEEL) for path, text in texts.items()),
        Run(
            (str(env.python), "-m", "pip", *argv, *places),
            cwd=env.path,
            env=tuple(sorted(change.items())),
            path=_path(inputs),
            phase=PHASE_WHEEL,
            # setup.py configures the build folder for the wheel's places. So the configure's stamp gets
            # another key first, and the last steps configure as before: a killed run leaves no folder that
            # silently links elsewhere.
            stamp=Stamp(env.build / cmake.STAMP_FILE, digest(PHASE_WHEEL, *texts.values()), again=True),
        ),
        *(
            # `again`, because the runner asks all stamps before the first step, when this one still holds.
            replace(step, stamp=replace(step.stamp, again=True))
            for step in recipe.configure(inputs, env.build, phase=PHASE_BACK)
            if step.stamp and step.stamp.path.name == cmake.STAMP_FILE
        ),
    )
    return Plan(f"wheel of {inputs.checkout.root} in {env.path / WHEELS}", steps, build.notes)


def made_wheel(env: EnvDir) -> str:
    """Describe the location of the new wheel, and where it runs.

    Raises:
        FactError: the wheel lacks its library.
    """
    newest = max((env.path / WHEELS).glob("*.whl"), key=lambda path: path.stat().st_mtime_ns)
    libraries = sorted((env.path / _SCRATCH / "build").glob("lib*/triton/_C/libtriton*"))
    if not libraries:
        raise FactError(
            "the wheel has no libtriton",
            where=newest,
            why="setup.py of this checkout did not build it where the wheel takes it from",
            hints=["the log has what setup.py printed"],
        )
    tag = newest.stem.split("-", 2)[2]  # Python, its ABI and the platform
    try:
        library = shared_library.read(libraries[0])
    except FactError:  # macOS has no ELF files
        return f"{newest}\nfor {tag}"
    versions = [version.removeprefix(_GLIBC) for version in library.versions if version.startswith(_GLIBC)]
    least = max(versions, key=version_key, default="")
    own = [name for name in library.needed if name.startswith(("libLLVM", "libMLIR"))]
    needs = [f"glibc {least} or newer"] if least else []
    needs += [f"{', '.join(own)}, which the wheel does not contain"] if own else []
    return f"{newest}\nfor {tag}; it needs {' and '.join(needs) or 'no more'}"


def _linked(inputs: Inputs, phase: str, *, occupied: bool) -> tuple[Step, ...]:
    """Return the steps that make pip use the build folder of `build-triton`."""
    folder = pip_build_dir(inputs.checkout, inputs.python)
    if occupied:
        return ()
    return MakeDir(folder.parent, phase=phase), Link(folder, inputs.env.build, phase=phase)


def _path(inputs: Inputs) -> tuple[Path, ...]:
    """Return the folders where setup.py finds compilers, CMake and Ninja."""
    tools = inputs.tools
    compiler = (inputs.compilers.cc.path.parent,) if inputs.compilers.cc else ()
    return (*compiler, inputs.env.venv / "bin", inputs.llvm.bin, tools.cmake.parent, tools.ninja.parent)


def pip_build_dir(source: TritonCheckout, python: PythonEnv) -> Path:
    """Return CMake's build folder in upstream's setup.py, the same name in every era."""
    return source.setup_dir / "build" / f"cmake.{python.platform}-cpython-{python.minor}"


def install_environment(inputs: Inputs) -> tuple[tuple[str, str | None], ...]:
    """Return environment variables under which setup.py builds the same as `build-triton`."""
    checkout, settings = inputs.checkout, inputs.settings.triton
    # Every variable that setup.py reads is set or removed: `DEBUG=1`, meant for another tool, would
    # silently change the build type.
    variables: dict[str, str | None] = dict.fromkeys((*_BUILD_TYPE_VARIABLES.values(), *_REMOVED))
    variables |= {
        "LLVM_SYSPATH": str(inputs.llvm.prefix),
        "JSON_SYSPATH": str(recipe.json_prefix(checkout, inputs.workspace)),
        "PYBIND11_SYSPATH": str(venv.site_packages(inputs.env, inputs.python) / "pybind11"),
        "TRITON_BUILD_PROTON": "ON" if settings.proton else "OFF",
        "TRITON_BUILD_WITH_CCACHE": "ON" if inputs.compilers.launcher else "OFF",
        "TRITON_HOME": str(inputs.triton_home),
        "TRITON_OFFLINE_BUILD": "ON",
        "TRITON_PARALLEL_LINK_JOBS": str(inputs.jobs.link),
        "TRITON_PLUGIN_DIRS": recipe.plugin_dirs(settings) or None,
        "TRITON_APPEND_CMAKE_ARGS": shlex.join(("-C", str(inputs.env.build / cmake.CACHE_FILE))),
        "MAX_JOBS": str(inputs.jobs.compile),
        "CFLAGS": recipe.flags(inputs),
        "CXXFLAGS": recipe.flags(inputs),
    }
    if _clang_and_lld(inputs):
        variables["TRITON_BUILD_WITH_CLANG_LLD"] = "ON"
    if settings.build_type in _BUILD_TYPE_VARIABLES:
        variables[_BUILD_TYPE_VARIABLES[settings.build_type]] = "ON"
    for part in recipe.components(checkout, inputs.workspace, proton=settings.proton):
        variables[part.variable] = str(part.dest)
    variables |= _profiler(inputs)
    # 3.0 and 3.1 know no TRITON_OFFLINE_BUILD either, and would download CUPTI.
    if not checkout.has("triton-home"):
        variables["TRITON_CUPTI_PATH"] = str(checkout.root / "third_party" / "nvidia" / "backend" / "include")
    return tuple(sorted(variables.items()))


def _profiler(inputs: Inputs) -> dict[str, str | None]:
    """Return the profiler's header folders, as in `build-triton`; None removes the shell's own."""
    proton = inputs.settings.triton.proton
    cached = recipe.cache_variables(inputs) if proton else {}
    return {name: cached.get(key) for key, names in _PROFILER.items() for name in names}


def _clang_and_lld(inputs: Inputs) -> bool:
    """Report whether upstream's switch, which uses programs named clang and lld, matches the choice."""
    compilers = inputs.compilers
    names = [tool.path.name for tool in (compilers.cc, compilers.cxx, compilers.linker) if tool]
    return names == ["clang", "clang++", "ld.lld"] and inputs.machine.system != "Darwin"
