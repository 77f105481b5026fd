"""Declare what crosses the border between the tool and the worker: a class for each request and each row.

The tool imports this module by its full name, the worker relatively: a field that one side renames is an
error of the type checker on the other. `border` carries them across.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from .records import dataclass

# Annotations of fields are texts to Python 3.8, and `border` reads them with a parser of its own: it knows
# JSON's plain types, Any, classes of this module, `X | None`, `dict[str, X]`, `tuple[X, ...]`, and
# `tuple[X, Y]` of plain types. A field without a default has to be in the JSON; a default is for what one
# side may leave out.


@dataclass(frozen=True)
class SurgeryRequest:
    """Changes to the passes of a compile; a pass has a name and a number, 0 for all of its runs."""

    skip: tuple[tuple[str, int], ...] = ()
    stop: tuple[tuple[str, int], ...] = ()
    repeat: tuple[tuple[str, int], ...] = ()
    llvm: tuple[str, ...] = ()
    ptxas: tuple[str, ...] = ()


@dataclass(frozen=True)
class PointRequest:
    """One compile; `compiler.points.CompilePoint` explains the fields.

    Attributes:
        target: backend, architecture, threads of a warp.
    """

    target: tuple[str, int | str, int]
    id: str = ""
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    signature: dict[str, str] = dataclasses.field(default_factory=dict)
    constexprs: dict[str, Any] = dataclasses.field(default_factory=dict)
    hints: dict[str, int] = dataclasses.field(default_factory=dict)
    ranges: tuple[str, ...] = ()
    # None is not the same as a request that changes nothing: without an operation, Triton's bindings and the
    # keys of its caches stay as they are.
    surgery: SurgeryRequest | None = None


@dataclass(frozen=True)
class DisassemblerRequest:
    """A way to turn a binary stage into text: the first of `programs` that runs; `{triton}` is its folder.

    Texts are kept in the folder `kept`, for the next binary with the same content; nowhere if it is empty.
    """

    stage: str
    programs: tuple[str, ...]
    flags: tuple[str, ...]
    kept: str = ""


@dataclass(frozen=True)
class FileRequest:
    """A kernel's file and its surroundings.

    Attributes:
        file: the file, which is IR if `ir`.
        kernel: name of the function.
        points: the compiles; one with a target only, where nothing is compiled.
        stand_ins: modules to replace where they are not installed.
        gpus: facts about the GPU of each target.
        disassemblers: the disassembler of each binary stage.
        lent: packages of the tool's environment, each with its folder.
    """

    file: str
    kernel: str
    ir: bool
    points: tuple[PointRequest, ...]
    stand_ins: tuple[str, ...]
    gpus: dict[str, Any]
    disassemblers: dict[str, DisassemblerRequest] = dataclasses.field(default_factory=dict)
    lent: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class DescribeRequest(FileRequest):
    """Describe a kernel as the first point's target sees it."""

    # The word after `python worker`. A ClassVar is no field, so it stays out of the JSON.
    COMMAND: ClassVar[str] = "describe"


@dataclass(frozen=True)
class ParameterRow:
    """A parameter of a kernel; `compiler.source.KernelParameter` explains the fields."""

    name: str
    constexpr: bool
    has_default: bool
    default: Any


@dataclass(frozen=True)
class ConfigRow:
    """A config of an autotuner: values of parameters, and options of the backend."""

    values: dict[str, Any]
    options: dict[str, Any]


@dataclass(frozen=True)
class DescribedRow:
    """A kernel, as running its file shows it.

    Attributes:
        heuristics: names of the parameters that heuristics compute.
        asked: the file queried the GPU.
    """

    parameters: tuple[ParameterRow, ...]
    configs: tuple[ConfigRow, ...]
    heuristics: tuple[str, ...]
    asked: bool


@dataclass(frozen=True)
class BindingsRequest:
    """List the bindings that add passes; the request has no parameters."""

    COMMAND: ClassVar[str] = "bindings"


@dataclass(frozen=True)
class FormRow:
    """The pipeline with only one pass, for these arguments of its binding."""

    arguments: tuple[Any, ...]
    form: str


@dataclass(frozen=True)
class BindingRow:
    """A binding that adds a pass.

    Attributes:
        binding: its path below libtriton.
        kinds: types of its arguments; None if its docstring lacks them.
        forms: its forms for sample values.
        error: the reason why the forms are incomplete.
    """

    binding: str
    kinds: tuple[str, ...] | None
    forms: tuple[FormRow, ...]
    error: str


@dataclass(frozen=True)
class RehearseRequest:
    """List the calls that a backend makes for a target; nothing is compiled.

    Attributes:
        target: backend, architecture, threads of a warp.
        options: of the backend.
        stand_ins: modules to replace where they are not installed.
        input: a file with the first IR; empty for an empty kernel.
    """

    COMMAND: ClassVar[str] = "rehearse"

    target: tuple[str, int | str, int]
    options: dict[str, Any]
    stand_ins: tuple[str, ...]
    input: str = ""


@dataclass(frozen=True)
class CallRow:
    """A call of a binding: at a file and line of the backend, with the form of its pass."""

    binding: str
    arguments: tuple[Any, ...]
    at: tuple[str, int]
    form: str


@dataclass(frozen=True)
class RehearsedRow:
    """The calls of a stage, and the error that ended it."""

    stage: str
    calls: tuple[CallRow, ...]
    error: str


@dataclass(frozen=True)
class LayoutRequest:
    """Convert the layouts of types, each within `timeout` seconds."""

    COMMAND: ClassVar[str] = "layout"

    types: tuple[str, ...]
    timeout: float


@dataclass(frozen=True)
class LayoutRow:
    """The layout of a type: the bases of each dimension; or an error.

    Attributes:
        padding: pairs of an interval and the elements that are left out after it.
    """

    type: str
    bases: dict[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)
    shape: tuple[int, ...] = ()
    padding: tuple[tuple[int, int], ...] = ()
    error: str = ""


@dataclass(frozen=True)
class LoadPluginRequest:
    """Load a plugin.

    Attributes:
        plugin: its file.
        variable: the environment variable by which this Triton finds plugins; empty for none.
        timeout: seconds of each of the three steps.
        memory: bytes.
        names_triton: the first version of the interface that has Triton's version.
    """

    COMMAND: ClassVar[str] = "plugin"

    plugin: str
    variable: str
    timeout: float
    memory: int
    names_triton: int


@dataclass(frozen=True)
class ChildRow:
    """The outcome of a call in its own process.

    Attributes:
        status: `ok`, `failed`, `crashed`, `timeout`.
        error: empty if it is `ok`.
        seconds: wall time.
    """

    status: str
    error: str
    seconds: float


@dataclass(frozen=True)
class PluginStepRow(ChildRow):
    """The outcome of a step with a plugin: its result and its output."""

    value: dict[str, Any]
    printed: str


@dataclass(frozen=True)
class TriedPluginRow:
    """The plugin's own description, Triton's, and a run of its passes."""

    said: PluginStepRow
    taken: PluginStepRow
    ran: PluginStepRow


@dataclass(frozen=True)
class PointsRequest(FileRequest):
    """Compile a kernel for all points.

    Attributes:
        output: folder of the outputs.
        scratch: folder of the caches.
        results: the file of the rows: a `CompileHead`, and a `CompiledRow` for each point.
        jobs: compiles at once.
        timeout: seconds for one point.
        strict: fail if one of the points does.
        keep: the stages to keep; all if empty.
        disassemble: also disassemble each binary.
        stages: names of all stages that a backend may have.
        last: the stage after which the compile ends; empty for a whole compile.
        shared: folder with the outputs of stages by their inputs, for compiles of many Tritons; empty for
            none.
        sent: a folder of copies of files, and the folder that they are from, which debug information names;
            empty if the file is not a copy.
    """

    COMMAND: ClassVar[str] = "compile"

    # These are required, but follow fields with defaults in FileRequest; `kw_only`, which would allow that,
    # came with Python 3.10.
    output: str = ""
    scratch: str = ""
    # A file and not standard output, to which the kernel's file, MLIR and ptxas print what they like.
    results: str = ""
    jobs: int = 1
    timeout: float = 0
    strict: bool = False
    keep: tuple[str, ...] = ()
    disassemble: bool = True
    stages: tuple[str, ...] = ()
    last: str = ""
    shared: str = ""
    sent: tuple[str, ...] = ()


@dataclass(frozen=True)
class LedgerNews:
    """The values that user code was given in place of modules that are not installed.

    Attributes:
        stand_ins: name of each replaced object to the place of its first use.
        gone: name of each module that the file does without, to the place.
        doubts: reasons to doubt that a machine with all packages would compile the same code.
    """

    stand_ins: dict[str, str] = dataclasses.field(default_factory=dict)
    gone: dict[str, str] = dataclasses.field(default_factory=dict)
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class CompileHead:
    """The first row of a compile.

    Attributes:
        triton: the version of Triton.
        variables: the environment variables that change the compiled code, according to Triton.
        origin: the folder of Triton's package.
        python: the version of the interpreter.
        file_sha256: the digest of the kernel's file.
        missing: the stages for which there is no disassembler.
        notes: messages about options that were left out.
        news: the news of loading the file.
        reads: the files that loading it has read, each with the digest of its content; empty for one that
            changed meanwhile, or stands for too many.
    """

    triton: str
    variables: dict[str, str]
    origin: str
    python: str
    file_sha256: str
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    news: LedgerNews = LedgerNews()
    reads: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class StageFile:
    """The file of a stage: its path in the output folder, its size in bytes, and its digest."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class CompiledRow:
    """A compiled point; `compiler.manifest.Point` explains the other fields.

    Attributes:
        news: the news of the compile.
        reads: as in `CompileHead`, of files that this process has not told before.
        loaded: the kernel could be loaded for this target.
    """

    id: str
    target: str
    signature: dict[str, str]
    constexprs: dict[str, Any]
    hints: dict[str, int]
    options: dict[str, Any]
    status: str
    seconds: float
    # What a failure leaves out comes last, with defaults: a failed point is a row like any other.
    stages: dict[str, StageFile] = dataclasses.field(default_factory=dict)
    metadata: dict[str, Any] = dataclasses.field(default_factory=dict)
    error: str = ""
    log: str = ""
    # Empty says that ptxas ran and had no remarks, None that nothing is known.
    remarks: tuple[str, ...] | None = None
    surgery: SurgeryRequest | None = None
    passes: tuple[dict[str, Any], ...] | None = None
    cpu_seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    shared: tuple[str, ...] = ()
    news: LedgerNews = LedgerNews()
    reads: dict[str, str] = dataclasses.field(default_factory=dict)
    loaded: bool = True


@dataclass(frozen=True)
class ServedRow:
    """The outcome of one line of `attend`: if the status is `ok`, the value is the exit code."""

    status: str
    value: int | None
    error: str | None


@dataclass(frozen=True)
class InterpretedProgram:
    """One program of a launch, and the memory that it sees.

    Attributes:
        memory: addresses, each with the bytes there in hexadecimal.
        program: its place in the grid.
        grid: the grid.
        arguments: bits of numbers, addresses, and objects for descriptors.
    """

    # Pairs, as keys of a table are texts in JSON; and hexadecimal, as JSON has no bytes.
    memory: tuple[tuple[int, str], ...]
    program: tuple[int, ...]
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class InterpretRequest(FileRequest):
    """Run programs of the first point's kernel in Triton's interpreter, in order, until one fails.

    Attributes:
        results: the file of the rows.
        numpy: a folder that has NumPy, for an interpreter that lacks it.
        limit: seconds of a run.
        runs: the programs.
    """

    COMMAND: ClassVar[str] = "interpret"

    results: str = ""
    numpy: str = ""
    limit: float = 0
    runs: tuple[InterpretedProgram, ...] = ()


@dataclass(frozen=True)
class InterpretedRow(ChildRow):
    """The outcome of a run: the bytes that it wrote, and the number that it read outside its `memory`."""

    written: tuple[tuple[int, str], ...] = ()
    outside: int = 0


@dataclass(frozen=True)
class StageRequest:
    """Run one stage of the pipeline on a file.

    Attributes:
        target: backend, architecture, threads of a warp.
        options: of the backend.
        file: the text of another stage.
        of: that stage.
        stage: the stage to run.
        out: the file of its output.
        result: the file of the row.
        log: the file of all that is printed.
        stand_ins: modules to replace where they are not installed.
    """

    COMMAND: ClassVar[str] = "stage"

    target: tuple[str, int | str, int]
    options: dict[str, Any]
    file: str
    of: str
    stage: str
    out: str
    result: str
    log: str
    stand_ins: tuple[str, ...]


@dataclass(frozen=True)
class StageRow:
    """The outcome of a stage: an error, or the command line of ptxas if it ran."""

    error: str
    argv: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallRequest:
    """A call of a binding; `{"class": NAME}` as an argument is a new object of a class."""

    binding: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class ReplayJobRequest:
    """Passes to run on a file; the output and what they print are files, too."""

    number: int
    input: str
    calls: tuple[CallRequest, ...]
    out: str
    log: str


@dataclass(frozen=True)
class ReplayRequest:
    """Run jobs, each in its own process and within `timeout` seconds; the rows go to the file `results`."""

    COMMAND: ClassVar[str] = "replay"

    results: str
    timeout: float
    jobs: tuple[ReplayJobRequest, ...]


@dataclass(frozen=True)
class ReplayedRow(ChildRow):
    """The outcome of a job."""

    number: int


@dataclass(frozen=True)
class ReduceRequest:
    """Run passes on a file; one line of a conversation that begins with a `ReadyRow`.

    Attributes:
        input: the file.
        calls: the passes; none to parse it only.
        log: the file of all that is printed.
        out: the file of the output; empty for none.
        generic: write the generic form.
        timeout: seconds.
    """

    COMMAND: ClassVar[str] = "reduce"

    input: str
    calls: tuple[CallRequest, ...]
    log: str
    out: str
    generic: bool
    timeout: float


@dataclass(frozen=True)
class ReadyRow:
    """The worker has loaded libtriton."""

    # A first line of its own, sent once libtriton is loaded: to load it takes seconds, which belong to no
    # request.
    ready: bool


@dataclass(frozen=True)
class GenericJobRequest:
    """A file to print, and the file of its generic form."""

    input: str
    out: str


@dataclass(frozen=True)
class GenericRequest:
    """Print files in MLIR's generic form, each within `timeout` seconds and `memory` bytes."""

    COMMAND: ClassVar[str] = "generic"

    jobs: tuple[GenericJobRequest, ...]
    results: str
    timeout: float
    memory: int


@dataclass(frozen=True)
class OperateRequest:
    """Change all compiles of this process.

    Attributes:
        results: the folder of the rows, a file for each process.
        surgery: changes to the passes.
        options: backend options that replace those of a launch.
        allocator: let torch allocate the scratch memory of kernels.
    """

    COMMAND: ClassVar[str] = "operate"

    results: str
    surgery: SurgeryRequest
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    allocator: bool = False


@dataclass(frozen=True)
class OperatedRow:
    """A compile that was changed.

    Attributes:
        kernel: its name.
        passes: those that the backend requested: `pass`, `number`, `binding`, `stage`, `times`.
        error: the compile's error.
        changed: the options that were replaced, with the launch's values.
        unmet: a change without effect; empty if all had one.
    """

    kernel: str
    passes: tuple[dict[str, Any], ...]
    error: str
    changed: dict[str, Any]
    unmet: str


@dataclass(frozen=True)
class CheckRequest:
    """Compare two values of a script.

    Attributes:
        left: an expression in the script's names.
        right: the expression that it has to be close to; empty if the left one is a condition.
        rtol: relative tolerance; None for torch's own.
        atol: absolute tolerance; None for torch's own.
        result: the file of the row.
    """

    COMMAND: ClassVar[str] = "check"

    left: str
    right: str
    rtol: float | None
    atol: float | None
    result: str


@dataclass(frozen=True)
class ScriptRequest:
    """Run a script; one line of a conversation that begins with a `ReadyRow`. A `ServedRow` answers.

    Attributes:
        script: the file.
        arguments: its arguments.
        log: the file of all that it prints.
        timeout: seconds.
    """

    COMMAND: ClassVar[str] = "scripts"

    script: str
    arguments: tuple[str, ...]
    log: str
    timeout: float


@dataclass(frozen=True)
class CheckedRow:
    """The result of a check: `holds`, `differs` or `error`, and one line that says more."""

    status: str
    text: str


@dataclass(frozen=True)
class CaptureRequest:
    """Record the launches of this process; configs/capture.toml explains the last five fields.

    Attributes:
        target: backend, architecture, threads of a warp.
        gpus: facts about the GPU.
        results: the folder of the rows, a file for each process.
        stand_ins: modules to replace where they are not installed.
        canaries: the folder that remembers which torch was tried, and how that ended.
    """

    COMMAND: ClassVar[str] = "capture"

    target: tuple[str, int | str, int]
    gpus: dict[str, Any]
    results: str
    stand_ins: tuple[str, ...]
    canaries: str
    built: dict[str, str]
    memory: int
    inductor: dict[str, Any]
    autocast: dict[str, tuple[str, ...]]
    canary_timeout: float


@dataclass(frozen=True)
class RecordedParameter:
    """A parameter of a recorded kernel."""

    name: str
    constexpr: bool


@dataclass(frozen=True)
class SpecializedKernel:
    """A kernel and its specialization by Triton.

    Attributes:
        file: its file, or the name that Python gives to a source that is in none.
        line: the line of its function, with its decorators.
        function: name of the function.
        kernel: its name in the file, as FILE:KERNEL has it; empty if nothing there refers to it.
        module: name of its module.
        parameters: in order.
        target: backend, architecture, threads of a warp.
        options: those that differ from the backend's defaults; warps and stages always.
        signature: name of a parameter to its type, or to a list of them for a tuple.
        constexprs: name, or `x.1` for a part of a tuple, to a value.
        hints: likewise to 16, for values that are multiples of it.
        ranges: pointers whose memory has less than 2 GiB (AMD).
        unwritten: parameters that a signature cannot express.
    """

    file: str
    line: int
    function: str
    kernel: str
    module: str
    parameters: tuple[RecordedParameter, ...]
    target: tuple[str, int | str, int]
    options: dict[str, Any]
    signature: dict[str, Any] = dataclasses.field(default_factory=dict)
    constexprs: dict[str, Any] = dataclasses.field(default_factory=dict)
    hints: dict[str, int] = dataclasses.field(default_factory=dict)
    ranges: tuple[str, ...] = ()
    unwritten: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExampleLaunch:
    """The arguments of one launch: numbers, and of tensors their elements and integers.

    Attributes:
        grid: number of programs along each axis; empty if there is none.
        arguments: name to number, or to `elements`, with `values`, or with `low` and `high`.
        elements: of all tensors together.
    """

    grid: tuple[int, ...] = ()
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)
    elements: int = 0


@dataclass(frozen=True)
class LaunchesRow:
    """The launches of a specialised kernel until now, by one process.

    Attributes:
        kernel: the kernel.
        count: number of launches.
        grids: each grid, such as `4,1,1`, with its number of launches.
        sites: each call site, FILE:LINE, with its number of launches.
        configs: those of its autotuner.
        largest: the largest value of each parameter that is an integer.
        example: the launch with the most elements.
    """

    kernel: SpecializedKernel
    count: int = 0
    grids: dict[str, int] = dataclasses.field(default_factory=dict)
    sites: dict[str, int] = dataclasses.field(default_factory=dict)
    configs: tuple[dict[str, Any], ...] = ()
    largest: dict[str, int] = dataclasses.field(default_factory=dict)
    example: ExampleLaunch = ExampleLaunch()


@dataclass(frozen=True)
class CaptureRow:
    """A line of a process's record; each has one of these.

    Attributes:
        launches: the launches of a kernel; a later line of the same kernel replaces them.
        note: a message for the user.
        texts: sources that are in no file, by the names that Python gives them.
        versions: of `python`, `triton` or `torch`.
        end: the process has ended, so that its counts are complete.
    """

    # One class for all lines, so that a reader needs no look at a line to know how to read it. Counts are
    # totals: the last line of a kernel counts, and a process that is killed loses little.
    launches: LaunchesRow | None = None
    note: str = ""
    texts: dict[str, str] = dataclasses.field(default_factory=dict)
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    end: bool = False


@dataclass(frozen=True)
class CanaryRow:
    """The result of trying a torch: the error, or empty if it did no harm."""

    error: str


@dataclass(frozen=True)
class ProfileSession:
    """A way to start Proton: a backend and its mode, which may be empty."""

    backend: str
    mode: str


@dataclass(frozen=True)
class ProfileRequest:
    """Profile this process with the first session that its Proton can start; files go to `results`."""

    COMMAND: ClassVar[str] = "profile"

    results: str
    sessions: tuple[ProfileSession, ...]


@dataclass(frozen=True)
class ProfiledRow:
    """The session that was started, if one was, and the refusals before it."""

    session: ProfileSession | None
    refused: tuple[str, ...]


@dataclass(frozen=True)
class NamedKernelRequest(FileRequest):
    """A kernel of a list, with the launches to fill a cache for."""

    name: str = ""


@dataclass(frozen=True)
class FillRequest:
    """Write the entries that Triton's JIT looks up into a cache.

    Attributes:
        kernels: at least one; all points have one target.
        cache: the cache's folder.
        results: the file of the rows: a `FillHead`, and a `FilledRow` for each point.
        jobs: processes at once.
        timeout: seconds for one point.
        libcuda: folders of libcuda.so.1 where the cache will be used; those of this machine if empty.
        folder: the folder of the package `triton` there; the one of this interpreter if empty.
        without_extensions: why no C extension is to be built; empty to build them.
    """

    COMMAND: ClassVar[str] = "fill"

    kernels: tuple[NamedKernelRequest, ...]
    cache: str
    results: str
    jobs: int
    timeout: float
    libcuda: tuple[str, ...] = ()
    folder: str = ""
    without_extensions: str = ""


@dataclass(frozen=True)
class FillHead:
    """The Triton, the Python and the machine that a filled cache is good for.

    Attributes:
        triton: the version.
        key: digest of the part of a key that stands for this Triton.
        python: the version of the interpreter.
        suffix: of its extensions: `.cpython-312-x86_64-linux-gnu.so`.
        folder: of the package `triton`, where the cache will be used.
        backend: the backend's part of a key: NVIDIA's is the version of ptxas, and the architecture.
        variables: environment variables that count in a key.
        extensions: entries of the driver's extension.
        per_kernel: kernels have extensions of their own.
        libcuda: folders of libcuda.so.1 where the cache will be used.
        folder_counts: the keys of the extensions depend on `folder`: since Triton 3.8.
        without: why there are no extensions; empty if there are.
    """

    triton: str
    key: str
    python: str
    suffix: str
    folder: str
    backend: str
    variables: dict[str, str]
    extensions: tuple[str, ...] = ()
    per_kernel: bool = False
    libcuda: tuple[str, ...] = ()
    folder_counts: bool = False
    without: str = ""


@dataclass(frozen=True)
class CacheFactsRequest:
    """Describe what a cache would be good for if this interpreter filled it: a `FillHead`."""

    COMMAND: ClassVar[str] = "cache-facts"

    target: tuple[str, int | str, int]


@dataclass(frozen=True)
class CacheKey:
    """The parts of the key by which Triton looks a kernel up.

    Attributes:
        kernel: the kernel and its specialization; without options.
        source: a digest of its source and of what it depends on.
        constants: each constant as the key spells it.
        options: each option of the backend as the JIT resolves it.
        backend: see `FillHead`.
        triton: see `key` of `FillHead`.
        variables: environment variables that count.
    """

    kernel: SpecializedKernel
    source: str
    constants: dict[str, str]
    options: dict[str, str]
    backend: str
    triton: str
    variables: dict[str, str]


@dataclass(frozen=True)
class FilledRow:
    """An entry of a cache, or why there is none.

    Attributes:
        name: the kernel's name in the list.
        point: the point's id.
        status: `ok`, `failed`, or `different`: the JIT would look up something else than what was recorded.
        error: empty if it is `ok`.
        entry: the entry's name.
        key: the parts of its key.
        extensions: entries of its launcher.
        seconds: wall time.
    """

    name: str
    point: str
    status: str
    error: str
    entry: str = ""
    key: CacheKey | None = None
    extensions: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Fill:
    """The entries that one run has written into a cache.

    Attributes:
        target: `cuda:90:32`.
        home: the folder in which the cache has to lie to be used: indexes of entries name absolute paths.
        head: what it is good for.
        rows: the entries.
    """

    target: str
    home: str
    head: FillHead
    rows: tuple[FilledRow, ...]


@dataclass(frozen=True)
class FillRecord:
    """The record in a cache of the runs that have filled it."""

    schema: int
    fills: tuple[Fill, ...]


@dataclass(frozen=True)
class LookUpRequest:
    """Record the entries that this process looks up; a file for each process goes to `results`."""

    COMMAND: ClassVar[str] = "look-up"

    results: str


@dataclass(frozen=True)
class LookedUpRow:
    """An entry that a program looked up, and the parts of its key."""

    entry: str
    key: CacheKey
