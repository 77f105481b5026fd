"""Editable installs and wheels by pip, both in the build folder of `build-triton`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.build import cmake
from tritonsmith.build.triton import recipe
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.core import untrusted
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Link, MakeDir, Plan, Remove, Run, Stamp, Step, Write, digest, files
from tritonsmith.core.plan.steps.base import StepTools
from tritonsmith.core.text import version_key
from tritonsmith.facts import elf, git
from tritonsmith.facts.checkout import TritonCheckout
from tritonsmith.facts.python_env import PythonEnv
from tritonsmith.wheels import venv

PHASE = "editable install"
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


_RECORD = ".editable.done"  # file of the environment: what pip depended on, and what it left
# Beside setup.py and in python/: what it reads of itself, imports, or takes the metadata from.
_READ_BY_SETUP = (".py", ".toml", ".cfg", ".in", ".txt")


@dataclass(frozen=True)
class EditableInstall(Step):
    """Let pip install a checkout, unless it would leave what it has left already.

    Attributes:
        pip: the call of pip.
        checkout: the checkout.
        site: the folder that pip installs into.
        record: the file that says what pip depended on, and what it left.
    """

    # pip takes seconds to find out that there is nothing to do. What it would build, Ninja has built before.
    pip: Run
    checkout: TritonCheckout
    site: Path
    record: Path

    def shell(self) -> list[str]:
        """Return pip's command line."""
        return self.pip.shell()

    def act(self, tools: StepTools) -> None:
        """Run pip, unless nothing has changed since it ran."""
        # Only now: an earlier step of the plan may have made a new virtual environment.
        if untrusted.text_if_any(self.record) == self.state():
            tools.write_log("pip has nothing to do: the checkout and the environment are as it left them")
            return
        files.remove([self.record])
        self.pip.act(tools)
        files.write_atomically(self.record, self.state())

    def state(self) -> str:
        """Digest the call, what setup.py reads or makes in the checkout, and what is installed."""
        root, setup_dir = self.checkout.root, self.checkout.setup_dir
        folders = dict.fromkeys((root, setup_dir, root / "python"))
        texts = (path for folder in folders for path in _sorted(folder) if path.suffix in _READ_BY_SETUP)
        contents = [(str(path), digest(untrusted.read_text(path))) for path in texts if path.is_file()]
        # The version that setup.py computes has the commit in it, except on branches of releases.
        git_folder = git.git_folder(root)
        branch = untrusted.text_if_any(git_folder / "HEAD") if git_folder else ""
        scripts = _states(_sorted(Path(self.pip.argv[0]).parent))
        return digest(
            repr(self.pip),
            contents,
            (self.checkout.commit, branch),
            list(_packages(setup_dir / "python" if setup_dir == root else setup_dir)),
            list(_packages(root / "third_party", depth=2)),
            [list(scripts), list(_installed(self.site))],
        )


def _sorted(folder: Path) -> list[Path]:
    """Return what is in a folder; nothing if it is none."""
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _packages(top: Path, depth: int = 100) -> Iterator[tuple[str, str]]:
    """Yield folders below another, and the targets of links to folders: packages, and those of backends."""
    for folder, names, _ in os.walk(top):
        names[:] = sorted(set(names) - {"__pycache__", "build"})
        for path in (Path(folder, name) for name in names):
            yield str(path), str(path.readlink()) if path.is_symlink() else ""
        if len(Path(folder).relative_to(top).parts) + 1 >= depth:
            names.clear()


def _installed(site: Path) -> Iterator[tuple[str, ...]]:
    """Yield what is in a folder of packages, with the states of files there and of all metadata."""
    for path in _sorted(site):
        # Python writes bytecode into the packages themselves, so these count by their names.
        yield (path.name,)
        yield from _states(_sorted(path) if path.suffix == ".dist-info" else [path] * path.is_file())


def _states(paths: Iterable[Path]) -> Iterator[tuple[str, ...]]:
    for path in paths:
        status = path.lstat()
        # The last one, because the others can be set.
        yield str(path), *map(str, (status.st_size, status.st_mtime_ns, status.st_ctime_ns))


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
    pip = Run(command, cwd=inputs.env.path, env=environment(inputs), path=_path(inputs), phase=PHASE)
    site, record = venv.site_packages(inputs.env, inputs.python), inputs.env.path / _RECORD
    # In a build folder of its own, pip is what builds.
    install = pip if occupied else EditableInstall(pip, inputs.checkout, site, record, phase=PHASE)
    steps = (*build.steps, *_linked(inputs, PHASE, occupied=occupied), install)
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
    change = dict(environment(inputs)) | {
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
        library = elf.read_shared_library(libraries[0])
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


def environment(inputs: Inputs) -> tuple[tuple[str, str | None], ...]:
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
