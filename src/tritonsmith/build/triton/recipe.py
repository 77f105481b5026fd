"""`build-triton`: Triton's CMake configure and build against a given LLVM, era by era.

What upstream's setup.py would download comes from registry packages (`configs/toolchain.toml`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tritonsmith.build import cmake, compiler_cache, precompiled_headers
from tritonsmith.build.cmake import CmakeTools, Jobs
from tritonsmith.build.compiler_cache import Folders
from tritonsmith.build.debug_library import relink
from tritonsmith.compiler import debugger_init
from tritonsmith.core import configs
from tritonsmith.core.envs.settings import SPLIT_DWARF, Settings, TritonSettings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import UsageError
from tritonsmith.core.plan import (
    BuildObjects,
    Copy,
    MakeDir,
    OutdateForeignOutput,
    Plan,
    Stamp,
    Step,
    digest,
    files,
)
from tritonsmith.core.text import version_key
from tritonsmith.facts import checkout
from tritonsmith.facts.checkout import TritonCheckout, cmake_options, lit_requirement, relaxed_warnings
from tritonsmith.facts.llvm_tree import LlvmTree
from tritonsmith.facts.machine import Machine
from tritonsmith.facts.python_env import PythonEnv
from tritonsmith.facts.tools import Compilers
from tritonsmith.wheels import ptxas, venv

PHASE_COMPONENTS = "CUDA headers and tools"
PHASE_CONFIGURE = "configure Triton"
PHASE_BUILD = "build Triton"
PHASE_SUSPECTS = "files likely to break with an LLVM near the pin"
_HERE = Path(__file__).parent
_LIBRARIES = Path("python/triton/_C")  # in the checkout: all its environments write there
_NEVER_FROM_CMAKE = ("cmake", "ninja")  # the tool brings its own


@dataclass(frozen=True)
class Inputs:
    """Everything that Triton's build depends on.

    Attributes:
        settings: settings of the env.
        checkout: Triton's sources.
        llvm: the LLVM to build against.
        python: base interpreter of the env.
        machine: the machine of the build.
        compilers: compilers and linker.
        tools: CMake and Ninja.
        jobs: bounds for parallel work.
        workspace: the tool's own folder.
        env: the env's folder in it.
        after_project: the file that names its debug libraries (`debug_library.relink`), if it ever had one.
        llvm_sources: sources of the LLVM, for debuggers; None if they are not here.
        precompiled: CMake's variables of the precompiled headers (`precompiled.choose`), if it has any.
        suspects: batches of sources that this LLVM, which is not the pin, may break. They are compiled before
            all others, until one batch fails.
    """

    settings: Settings
    checkout: TritonCheckout
    llvm: LlvmTree
    python: PythonEnv
    machine: Machine
    compilers: Compilers
    tools: CmakeTools
    jobs: Jobs
    workspace: Workspace
    env: EnvDir
    after_project: Path | None = None
    llvm_sources: Path | None = None
    precompiled: Mapping[str, str] = field(default_factory=dict)
    suspects: tuple[tuple[Path, ...], ...] = ()

    @property
    def triton_home(self) -> Path:
        """The value of `TRITON_HOME`: keeps upstream's LLVM store out of `~/.triton`, one folder per pin."""
        pin = self.checkout.pin
        return self.workspace.triton_home(pin.commit if pin else "")


def plan(inputs: Inputs, *, again: bool = False) -> Plan:
    """Return the recipe: Python environment, CUDA headers and tools, configure, build.

    Args:
        inputs: facts and settings.
        again: configure even if nothing changed.
    """
    settings, env = inputs.settings.triton, inputs.env
    targets, jobs = settings.targets, inputs.jobs.compile
    build = cmake.build_targets(env.build, inputs.tools, targets=targets, jobs=jobs, phase=PHASE_BUILD)
    title = f"Triton {inputs.checkout.version} ({settings.build_type}) in {env.build}"
    debug = debugger_init.steps(
        env.build, relative=_folders(inputs) is not None, llvm=inputs.llvm_sources, phase=PHASE_CONFIGURE
    )
    first = (*before_compiles(inputs, again=again), *debug, *_first(inputs, jobs))
    return Plan(title, (*first, build, *cmake.keep_graph(env.build, phase=PHASE_BUILD)))


def before_compiles(inputs: Inputs, *, again: bool = False) -> tuple[Step, ...]:
    """Return the steps that must precede Ninja's compiles in the env's build folder."""
    build, venv_folder = inputs.env.build, inputs.env.venv
    links = compiler_cache.steps(_folders(inputs), phase=PHASE_CONFIGURE, venv=venv_folder)
    # Before CMake: its run and each compiled object make Ninja's log newer than another folder's output.
    ours = OutdateForeignOutput(
        inputs.checkout.root / _LIBRARIES, "libtriton*.so", build, phase=PHASE_CONFIGURE
    )
    return (*configure(inputs, build, ours, phase=PHASE_CONFIGURE, again=again), *links)


def _first(inputs: Inputs, jobs: int) -> tuple[Step, ...]:
    """Return steps that show within a minute whether this LLVM fits, by compiling objects needed anyway."""
    ninja, build = inputs.tools.ninja, inputs.env.build
    return tuple(BuildObjects(ninja, build, jobs, batch, phase=PHASE_SUSPECTS) for batch in inputs.suspects)


def configure(
    inputs: Inputs, build: Path, *before: Step, phase: str, again: bool = False
) -> tuple[Step, ...]:
    """Return the steps that prepare CMake's inputs, and configure.

    Args:
        inputs: facts and settings; the LLVM may be configured and not yet built.
        build: build folder.
        before: steps between the two.
        phase: name of the phase of CMake's run.
        again: configure even if nothing changed.
    """
    checkout, env, host = inputs.checkout, inputs.env, inputs.machine
    proton = inputs.settings.triton.proton
    prepare = before_llvm(checkout, env, inputs.python, inputs.workspace, host, proton=proton)
    run = cmake.configure(
        checkout.root,
        build,
        cache_variables(inputs),
        inputs.tools,
        phase=phase,
        about=_about(inputs),
        root=inputs.workspace.root,
        again=again,
    )
    return (*prepare.steps, *before, MakeDir(build, phase=phase), *run)


def before_llvm(
    checkout: TritonCheckout,
    env: EnvDir,
    python: PythonEnv,
    workspace: Workspace,
    host: Machine,
    *,
    proton: bool,
) -> Plan:
    """Plan the steps that do not depend on the LLVM: the env's Python, CUDA headers and tools."""
    packages = components_plan(checkout, workspace, host, env.python, proton=proton)
    return venv.plan(env, python, requirements(checkout)) + packages


def _about(inputs: Inputs) -> dict[str, str]:
    """Return the facts about the LLVM and the compiler, which may change while their paths stay."""
    cxx = inputs.compilers.cxx
    return {
        "LLVM": inputs.llvm.in_words,
        "compiler": f"{cxx.path.name} {cxx.version}" if cxx else "CMake's choice",
    }


def requirements(checkout: TritonCheckout) -> tuple[str, ...]:
    """Return the requirements of the env's venv for building and testing this checkout."""
    names = [name for name in checkout.requires if not name.startswith(_NEVER_FROM_CMAKE)]
    return tuple(sorted({*names, "wheel", lit_requirement()}))


def cache_variables(inputs: Inputs) -> dict[str, str]:
    """Return Triton's CMake variables: those that setup.py passes, and the locations of everything.

    Options that this checkout does not know are left out, because CMake would warn of each.
    """
    checkout, settings, machine = inputs.checkout, inputs.settings.triton, inputs.machine
    variables = {
        "CMAKE_BUILD_TYPE": settings.build_type,
        "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
        "CMAKE_LIBRARY_OUTPUT_DIRECTORY": str(checkout.root / _LIBRARIES),
        **cmake.compiler_variables(
            inputs.compilers,
            system=machine.system,
            gdb_index=_split(inputs),
            launcher=_launcher(inputs),
            flags=flags(inputs),
        ),
        "LLVM_ENABLE_WERROR": "ON",
        **_llvm(inputs.llvm),
        **(relink.variables(inputs.after_project) if inputs.after_project else {}),
        **_python(inputs),
        **precompiled_headers.triton_variables(
            inputs.precompiled, compiler_cache.relocatable(_folders(inputs))
        ),
        **_known(checkout, _options(inputs)),
    }
    if settings.sanitizer:
        _sanitize(variables, settings.sanitizer)
    # Last, so that the user's own arguments win.
    for argument in settings.cmake_args:
        name, _, value = argument.removeprefix("-D").partition("=")
        name = name.partition(":")[0]
        if name == "CMAKE_BUILD_TYPE" and value != variables[name]:  # split DWARF depends on the type
            hints = [f"use --build-type {value}, or triton.build-type in the env file"]
            raise UsageError(f"{argument} contradicts the build type {variables[name]}", hints=hints)
        variables[name] = value
    return variables


def flags(inputs: Inputs) -> str:
    """Return compiler flags: newer compilers' warnings, split DWARF if there are symbols, the cache's."""
    settings = inputs.settings.triton
    words: list[str] = [] if settings.werror else list(relaxed_warnings())
    if _split(inputs):
        # The linker makes gdb's index from the public names.
        words += ["-gsplit-dwarf", "-ggnu-pubnames"]
    words += compiler_cache.flags(_folders(inputs))
    return " ".join(words)


def _launcher(inputs: Inputs) -> tuple[str, ...]:
    injected = bool(inputs.precompiled)
    cache = compiler_cache.launcher(
        inputs.settings.cache,
        inputs.compilers,
        _folders(inputs),
        precompiled_headers=injected,
        relocated=injected,
    )
    return (*precompiled_headers.RETRY, *cache) if injected else cache


def _split(inputs: Inputs) -> bool:
    """Report whether debug information goes into separate files, which no link reads."""
    symbols = inputs.settings.triton.build_type in ("Debug", "RelWithDebInfo", "TritonRelBuildWithAsserts")
    return symbols and inputs.settings.llvm.debug_info in SPLIT_DWARF and inputs.machine.system == "Linux"


def _folders(inputs: Inputs) -> Folders | None:
    here = Folders(inputs.checkout.root, inputs.env.build, inputs.workspace.root)
    return compiler_cache.shared(inputs.compilers, inputs.machine.system, here)


def plugin_dirs(settings: TritonSettings) -> str:
    """Return the value of `TRITON_PLUGIN_DIRS`: absolute, because CMake and setup.py run in other folders."""
    return ";".join(str(Path(name).expanduser().absolute()) for name in settings.plugin_dirs)


def _llvm(llvm: LlvmTree) -> dict[str, str]:
    """Return every variable in which some era looks for LLVM."""
    # A distribution's MLIR links the shared libLLVM, and Triton names LLVM's static libraries: two copies
    # in one process abort at the first command-line option that both register.
    one_llvm = {"CMAKE_PROJECT_triton_INCLUDE": str(_HERE / "one_llvm.cmake")} if llvm.dylib else {}
    lld = {"LLD_DIR": str(llvm.cmake_dir("lld"))} if "lld" in llvm.packages else {}
    return one_llvm | {
        # All of them, explicitly: setting LLVM_SYSPATH alone leaves a cached LLVM_DIR of the LLVM before.
        "LLVM_SYSPATH": str(llvm.prefix),
        "LLVM_INCLUDE_DIRS": str(llvm.prefix / "include"),
        "LLVM_LIBRARY_DIR": str(llvm.prefix / "lib"),
        "LLVM_DIR": str(llvm.cmake_dir("llvm")),
        "MLIR_DIR": str(llvm.cmake_dir("mlir")),
        **lld,
    }


def _python(inputs: Inputs) -> dict[str, str]:
    packages = venv.site_packages(inputs.env, inputs.python)
    variables = {
        "Python3_EXECUTABLE": str(inputs.env.python),
        "Python3_INCLUDE_DIR": str(inputs.python.include),
        "LLVM_EXTERNAL_LIT": str(inputs.env.venv / "bin" / "lit"),
    }
    if inputs.checkout.has("nanobind"):
        return variables | {"nanobind_DIR": str(packages / "nanobind" / "cmake")}
    variables["pybind11_DIR"] = str(packages / "pybind11" / "share" / "cmake" / "pybind11")
    if inputs.checkout.has("pybind11-variable"):
        variables["PYTHON_INCLUDE_DIRS"] = str(inputs.python.include)
        variables["PYBIND11_INCLUDE_DIR"] = str(packages / "pybind11" / "include")
    return variables


def _options(inputs: Inputs) -> dict[str, str]:
    checkout, settings = inputs.checkout, inputs.settings.triton
    backend = checkout.root / "third_party" / "nvidia" / "backend"
    json = json_prefix(checkout, inputs.workspace)
    options = {
        "TRITON_BUILD_PYTHON_MODULE": "ON",
        "TRITON_BUILD_TUTORIALS": "OFF",
        "TRITON_BUILD_PROTON": "ON" if settings.proton else "OFF",
        # It fetches googletest from GitHub (triton#4461).
        "TRITON_BUILD_UT": "OFF",
        "TRITON_BUILD_WITH_CCACHE": "ON" if inputs.compilers.launcher else "OFF",
        "TRITON_CODEGEN_BACKENDS": ";".join(settings.backends),
        "TRITON_PLUGIN_DIRS": plugin_dirs(settings),
        "TRITON_PARALLEL_LINK_JOBS": str(inputs.jobs.link),
        "TRITON_WHEEL_DIR": str(checkout.root / "python" / "triton"),
        "TRITON_CACHE_PATH": str(inputs.triton_home / ".triton"),
        "TRITON_VERSION": checkout.version,
        # Everything that it would fetch is there already. With it, a missing piece is an error in this
        # configure and not a download in the middle of a build.
        "TRITON_OFFLINE_BUILD": "ON",
        "JSON_SYSPATH": str(json),
    }
    if not settings.plugin_dirs:
        del options["TRITON_PLUGIN_DIRS"]
    for part in components(checkout, inputs.workspace, proton=settings.proton):
        options[part.variable] = str(part.dest)
    if settings.proton:
        amd = str(checkout.root / "third_party" / "amd" / "backend" / "include")
        options |= {"JSON_INCLUDE_DIR": str(json / "include"), "CUPTI_INCLUDE_DIR": str(backend / "include")}
        options |= {"ROCTRACER_INCLUDE_DIR": amd} if checkout.has("proton-roctracer") else {}
        options |= {"ROCM_INCLUDE_DIR": amd} if checkout.has("proton-rocm") else {}
    return options


def _known(checkout: TritonCheckout, options: dict[str, str]) -> dict[str, str]:
    """Leave out options of other eras, which this checkout lacks."""
    # CMake warns of unused variables and goes on, so an option of another era would look as if it worked.
    foreign = cmake_options() - checkout.options
    known = {name: value for name, value in options.items() if name not in foreign}
    if "TRITON_PARALLEL_LINK_JOBS" in foreign:
        # Triton before 3.3 has no bound for links; CMake's own pools do the same.
        known["CMAKE_JOB_POOLS"] = f"link={options['TRITON_PARALLEL_LINK_JOBS']}"
        known["CMAKE_JOB_POOL_LINK"] = "link"
    return known


def _sanitize(variables: dict[str, str], sanitizer: str) -> None:
    # Without frame pointers the stacks of a report end after one frame.
    flag = f"-fsanitize={sanitizer}"
    for name in ("CMAKE_C_FLAGS", "CMAKE_CXX_FLAGS"):
        variables[name] = f"{variables.get(name, '')} {flag} -fno-omit-frame-pointer".strip()
    for kind in ("EXE", "MODULE", "SHARED"):
        name = f"CMAKE_{kind}_LINKER_FLAGS"
        variables[name] = f"{variables.get(name, '')} {flag}".strip()


def resolve_targets(settings: TritonSettings, root: Path) -> tuple[str, ...]:
    """Return Ninja's targets; none for all.

    Args:
        settings: the settings; named targets take precedence over a purpose.
        root: the checkout; its lit tests name the programs that they run.
    """
    if settings.targets or settings.for_ == "all":
        return settings.targets
    named: tuple[str, ...] = tuple(configs.load("triton-eras")["build-for"][settings.for_])
    if settings.for_ == "tests":
        # Programs of LLVM (FileCheck, not) are called as well, and are built with LLVM.
        programs = {path.stem for path in (root / "bin").glob("*.cpp")}
        named += tuple(name for name in checkout.lit_programs(root) if name in programs and name not in named)
    return named


@dataclass(frozen=True)
class Component:
    """A part of CUDA that Triton's build or runtime uses.

    Attributes:
        name: name of the row in `configs/toolchain.toml`.
        requirement: the registry package, with its exact version.
        source: path inside that package, once unpacked.
        dest: destination in the checkout, where Triton looks for it.
        variable: environment or CMake variable for its location.
        tree: whether it is a folder, not a program.
    """

    name: str
    requirement: str
    source: Path
    dest: Path
    variable: str
    tree: bool


def components(checkout: TritonCheckout, workspace: Workspace, *, proton: bool) -> tuple[Component, ...]:
    """Return the components for which a checkout names a version.

    Args:
        checkout: checkout that names the versions and the destinations.
        workspace: workspace for unpacked packages.
        proton: include what only the profiler needs.
    """
    versions = dict(checkout.nvidia)
    parts: list[Component] = []
    for row in configs.load("toolchain")["component"]:
        version = versions.get(row["wanted"])
        # Eras differ in what they use: a part for which the checkout names no version is not needed.
        if version is None or (row.get("proton") and not proton):
            continue
        package, at = ptxas.package_of(row, version)
        unpacked = workspace.toolchain / f"{package['name']}-{at}"
        source = unpacked / str(package["path"]).format(major=version_key(at)[0])
        requirement, dest = f"{package['name']}=={at}", _home(checkout) / row["dest"]
        parts.append(
            Component(
                row["name"],
                requirement,
                source,
                dest,
                row["variable"],
                tree=not row["dest"].startswith("bin/"),
            )
        )
    return tuple(parts)


def components_plan(
    checkout: TritonCheckout, workspace: Workspace, machine: Machine, python: Path, *, proton: bool
) -> Plan:
    """Plan to unpack the packages into the workspace and copy the files to where Triton looks for them.

    The destinations are those that upstream's own setup.py fills; its .gitignore lists them.

    Args:
        checkout: checkout that names the versions.
        workspace: workspace for unpacked packages.
        machine: macOS takes the Linux packages, as upstream does.
        python: interpreter with pip.
        proton: include what only the profiler needs.
    """
    parts = components(checkout, workspace, proton=proton)
    requirements = dict.fromkeys((*(part.requirement for part in parts), _json_requirement(checkout)))
    steps = [
        ptxas.unpack_step(requirement, workspace, machine, python, PHASE_COMPONENTS)
        for requirement in requirements
    ]
    steps += [_copy(part, workspace, checkout.root) for part in parts]
    return Plan("CUDA headers and tools", tuple(steps))


def json_prefix(checkout: TritonCheckout, workspace: Workspace) -> Path:
    """Return a prefix with `include/nlohmann/json.hpp`, for `JSON_SYSPATH`."""
    table = configs.load("toolchain")["json"]
    return ptxas.package_folder(_json_requirement(checkout), workspace) / str(table["path"])


def _copy(part: Component, workspace: Workspace, checkout: Path) -> Step:
    """Copy a component, unless its files are unchanged since the last copy of the same version."""
    # Comparing 40 MB in every build would be slow, so sizes and time stamps stand for the content. A copy
    # changes them: the next run compares once more, and later ones skip it.
    copied = (part.dest, *sorted(part.dest.rglob("*"))) if part.dest.is_dir() else (part.dest,)
    states = [(str(file), *files.size_and_time(file)) for file in copied]
    stamp = workspace.toolchain / f".copied-{part.name}-{digest(str(part.dest))}"
    return Copy(
        part.source,
        part.dest,
        part.tree,
        checkout,
        phase=PHASE_COMPONENTS,
        stamp=Stamp(stamp, digest(str(part.source), states), result=part.dest),
    )


def _home(checkout: TritonCheckout) -> Path:
    if checkout.has("nvidia-backend"):
        return checkout.root / "third_party" / "nvidia" / "backend"
    return checkout.root / "python" / "triton" / "third_party" / "cuda"


def _json_requirement(checkout: TritonCheckout) -> str:
    table = configs.load("toolchain")["json"]
    return f"{table['package']}=={checkout.json_version or table['default']}"
