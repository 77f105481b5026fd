"""Options that several tasks share: single flags, and groups of them. Each help text is written once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonsmith.cli.tasks.option_fields import CommaList, again, flag, word

# Any task.
ENV = flag("environment name or env file", "dev", value="ENV")
TRITON = flag("Triton that compiles: 3.9.0, debug, ./python or 3.9.0,ptxas=13.0", "", value="TRITON")
# Compiles need no build of Triton: the environment `wheel`, which `up` makes, has a release.
WHEEL_ENV = again(ENV, default="wheel")
# Empty where the task chooses by what is there, such as an active virtual environment.
ANY_ENV = again(ENV, default="")
ENV_WORD = again(ENV, "dev", default="", word=True)
PYTHON = flag("interpreter to use instead of the environment's", None, value="PYTHON")
DRY_RUN = flag("print the plan as a shell script, and do nothing", default=False)
JSON = flag("print JSON", default=False)
CSV = flag("print CSV", default=False)
YES = flag("do not ask for confirmation", default=False)
JOBS = flag(
    "parallel jobs (0: as many as cores and memory allow)", None, example="--jobs 4; 0 for as many as fit"
)

PACKAGES = flag("interpreter whose pytest, numpy and torch the tests use", None, value="PYTHON")
PYTORCH = flag("PyTorch release: 2.9.1, or 2.9 for its last", "", value="VERSION")

# Outputs.
OUT = flag("folder for the outputs", None, unset="in the workspace", value="DIR")
OUT_FILE = flag("file to write, or a folder for it", None)
PLOT = flag("write a picture: FILE.png or FILE.svg", None, value="FILE")

# Experiments.
CONFIRM = flag("number of times to test each change; all must agree", None, least=1, example="--confirm 3")

# Builds.
SOURCE = flag("Triton checkout or git URL", "", value="CHECKOUT")
LLVM_DIR = flag("install prefix or build folder of the LLVM to use", "", value="DIR")
LLVM_SOURCE = flag("LLVM sources: git URL, checkout or tarball", "", value="SOURCES")
SHA256 = flag("SHA-256 checksum of the tarball or archive", "")
NINJA_TARGET = flag("Ninja target, instead of the usual ones (repeatable)", (), value="TARGET")
BUILD_FOR = flag("what the build is for: opt, python, tests or all", "", value="WHAT")
FORCE = flag("ignore preflight errors", default=False)
RECONFIGURE = flag("configure even if nothing changed", default=False)

# Kernels.
KERNEL_SOURCE = word(
    "FILE[:KERNEL], MODULE:KERNEL, kernels file, or folder of kernel.compile", value="FILE[:KERNEL]"
)
# Optional where `--from-cache` or a command after `--` may stand in its place.
KERNEL = again(KERNEL_SOURCE, default="")
COMPILED_KERNEL = word("FILE[:KERNEL], MODULE:KERNEL, or a kernels file", value="FILE[:KERNEL]")
SIGNATURE = flag("types, hints and values: '*fp32:16,i32,BLOCK=1024'", "", value="TYPES")
TARGET = flag("target: cuda:90, hip:gfx942:64, h100, native or all (repeatable)", (), value="GPU")
NUM_WARPS = flag("warps per program", None, least=1)
NUM_STAGES = flag("stages of software pipelining", None, example="--num-stages 3")
BACKEND_OPTION = flag("other option of the backend: maxnreg=128 (repeatable)", (), value="NAME=VALUE")
SWEEP = flag("values to try: BLOCK_M=64,128 or num_warps=4,8; or autotune (repeatable)", (), value="NAME=A,B")
SKIP_PASS = flag("pass to skip: NAME, or NAME#2 for its second run (repeatable)", (), value="PASS")
STOP_AFTER = flag("last pass to run: NAME or NAME#2; its IR is kept", "", value="PASS")
REPEAT_PASS = flag("pass to run twice: NAME or NAME#2 (repeatable)", (), value="PASS")
SET_LLVM = flag("option of LLVM, as opt takes it: disable-lsr (repeatable)", (), value="OPTION")
PTXAS_OPTION = flag("option of ptxas: --ptxas-option=-O1 (repeatable)", (), value="OPTION")
TIMEOUT = flag(
    "seconds after which a compile is stopped",
    None,
    unset="600",
    example="seconds, --timeout 600; 0 for the default",
)
MANY_TRITONS = flag("versions, environments, interpreters: 3.2.0,3.6.0,debug (repeatable)", ())
FROM_CACHE = flag("entry of Triton's cache to compile: its folder, or its name", "", value="ENTRY")
KERNELS_FILE = word("kernels file (format: docs/kernels.md)", value="FILE.toml")
AT = flag("folder of the cache where it will be used", None, value="DIR")
LIBCUDA = flag("folders of libcuda.so.1 where the cache will be used", (), value="DIR")
TRITON_AT = flag("folder of the package triton there", "", unset="that of the interpreter", value="DIR")
TODAY = flag("Triton in use today: a version, environment or interpreter", "", value="TRITON")
LOADER = flag("Triton of the plugin: version, environment, interpreter", "wheel", value="TRITON")
TOMORROW = flag("Triton to upgrade to: a version, environment or interpreter", "", value="TRITON")
FAIL_ON = flag("changes that fail the comparison: 'registers>+5%,spills>0'", None, value="LIMITS")
WHEN = flag("symptom: 'spills>0', 'ptx contains TEXT' or wrong (repeatable)", (), value="SYMPTOM")
CHECK = flag("check that a correct run passes: 'out ~ reference', or a function", "", value="CHECK")
CORPUS = flag("folder of the corpus", None, unset="in the workspace", value="DIR")
SCHEDULER = flag("Dask scheduler whose workers compile: tcp://HOST:8786", "", value="URL")

# Dumps of passes.
NUMBER = word("number of the pass in passes.list, or its name if it ran once", value="PASS")
MAYBE_NUMBER = again(NUMBER, default="")
FOLDER = word("folder that passes.dump wrote", value="DIR")
DUMPED_KERNEL = flag("kernel of the dump, if it has several", "", value="KERNEL")
# Reductions have no natural end: each candidate that still fails may be reduced further.
REDUCE_TIMEOUT = flag(
    "time limit in seconds; the best result so far is kept",
    None,
    unset="600",
    example="seconds, --timeout 120",
)
TOOL_SOURCE = flag("checkout that triton-opt was built from", None, value="DIR")


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """Options of a build of Triton."""

    source: str = SOURCE
    llvm_dir: str = LLVM_DIR
    debug: bool = flag("same as --build-type Debug", default=False)
    build_type: str = flag("CMake build type, or TritonRelBuildWithAsserts, TritonBuildWithO1", "")
    backends: CommaList = flag("backends to build, by their folders in third_party/: amd,nvidia", ())
    plugin_dir: tuple[str, ...] = flag("folder of an out-of-tree backend (repeatable)", ())
    proton: bool | None = flag("build the profiler", None)
    jobs: int | None = JOBS


@dataclass(frozen=True, kw_only=True)
class ReplayerOptions:
    """The program that runs the passes of a dump."""

    env: str = again(ANY_ENV, "the dump's")
    python: Path | None = again(PYTHON, "the dump's")
    triton_opt: Path | None = flag("triton-opt of a build, instead of an interpreter", None)
    option: tuple[str, ...] = flag(
        "option of the compile, if the dump lacks it: num_stages=4 (repeatable)", ()
    )


@dataclass(frozen=True, kw_only=True)
class EntryOptions:
    """Filters of the entries of Triton's caches."""

    kernel: str = flag("only kernels whose name matches this glob: 'matmul_*'", "")
    target: str = flag("only this target: cuda:90, hip:gfx942, or a GPU such as h100", "", value="GPU")
    older_than: str = flag("only entries unchanged for this long: 90s, 30m, 12h, 7d, 2w", "")
    stale: bool = flag("only entries of a Triton that is no longer installed", default=False)
    keep_newest: int | None = flag(
        "leave out the N newest entries of each kernel", None, example="--keep-newest 2"
    )
    root: str = flag("only the cache in this folder", "")


@dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """The store of LLVMs."""

    store: str = flag("folder of the store, instead of the environment's", "")
    env: str = ENV


FAIL_ON_CODES = flag("findings that fail it: any, or comma-separated codes", None, value="CODES")
# Of the modes `--changed`, which pre-commit runs.
SINCE = flag("commit or branch to compare with", "", unset="HEAD", value="COMMIT")
LISTS = flag("kernels file, if not those of pyproject.toml (repeatable)", (), value="FILE.toml")
STRICT = flag("fail, too, if something is undecided or not looked at", default=False)
