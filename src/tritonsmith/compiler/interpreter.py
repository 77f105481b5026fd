"""An interpreter that is ready to compile, and what only it can tell about a kernel's file.

It has Triton, limits, and programs of this machine that Triton does not include. Where a kernel is known only
by running its file, the worker runs it; a refusal of the worker becomes one error with hints.
"""

from __future__ import annotations

import io
import json
import os
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

from tritonsmith.compiler import call, targets
from tritonsmith.compiler.manifest import folder_name
from tritonsmith.compiler.request import CompileRequest, Config
from tritonsmith.compiler.source import KernelParameter, KernelSource
from tritonsmith.compiler.targets import Target
from tritonsmith.core import configs, process, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError, did_you_mean
from tritonsmith.core.plan import files
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.core.text import version_key
from tritonsmith.facts import installed_tritons, machine
from tritonsmith.ir import merged_cubins
from tritonsmith.worker import file_context
from tritonsmith.worker.border import WorkerRefusal
from tritonsmith.worker.messages import DescribedRow, DescribeRequest, DisassemblerRequest, PointRequest

_MIB = 1 << 20
_PATIENCE = 120.0  # seconds for one binary
_AT_ONCE = 32  # cubins in one file: more save little, and would wait for each other
_NOWHERE = "/nonexistent"  # the folder of a Triton that is not known


class UnavailableError(FactError):
    """Report that there is no answer about a kernel now, on this machine; another time there may be one."""


@dataclass(frozen=True)
class Disassembler:
    """A way to turn one binary stage into text.

    Attributes:
        binary: the stage that it reads, such as `cubin`.
        stage: the stage that it writes, such as `sass`.
        program: its usual name.
        programs: paths to try in order; `{triton}` stands for the folder that holds Triton's package.
        flags: arguments before the file.
        remedy: advice where no program is found.
        kept: folder with texts of earlier compiles.
    """

    binary: str
    stage: str
    program: str
    programs: tuple[str, ...]
    flags: tuple[str, ...]
    remedy: str
    kept: Path

    def request(self) -> DisassemblerRequest:
        """Return the disassembler as the worker's request spells it."""
        return DisassemblerRequest(self.stage, self.programs, self.flags, str(self.kept))

    def text(self, binary: Path, origin: Path) -> str | None:
        """Disassemble a binary with the first of the programs that exists and can read it.

        Args:
            binary: the file.
            origin: folder of Triton's package, if known.

        Returns:
            The text; None if no program could produce it.
        """
        # The next one may succeed where the first fails: an older nvdisasm does not know a newer cubin.
        for name in self.programs:
            program = Path(name.replace("{triton}", str(origin)))
            if os.access(program, os.X_OK):
                text = process.capture((str(program), *self.flags, str(binary)), timeout=_PATIENCE)
                if text is not None:
                    return text + "\n"
        return None

    def as_compiled(self, binary: Path, packages: Iterable[Path]) -> bytes | None:
        """Return the text that a compile would have kept beside a binary; None if no program can produce it.

        Args:
            binary: the file, under the name that the compile gave it.
            packages: folders of Triton packages whose programs are tried, in this order.
        """
        # What the programs say where all of them fail is in the note about the text that is missing.
        with redirect_stderr(io.StringIO()):
            return file_context.disassembled(self._available(packages), str(binary))

    def read_ahead(self, binaries: Iterable[Path], packages: Iterable[Path]) -> None:
        """Disassemble many binaries at once, so that `as_compiled` finds the texts that it would make.

        A binary that cannot be merged with others is left to `as_compiled`.

        Args:
            binaries: the files.
            packages: as of `as_compiled`.
        """
        tool = self._available(packages)
        if self.binary != "cubin" or not tool.programs:
            return
        program = tool.programs[0]
        groups: defaultdict[Hashable, dict[bytes, tuple[str, bytes]]] = defaultdict(dict)
        for binary in binaries:
            slot, key = file_context.text_slot(tool, program, str(binary))
            if slot and file_context.read_slot(slot, key) is None:
                with suppress(FactError):
                    content = untrusted.read_bytes(binary, untrusted.OURS)
                    groups[merged_cubins.group(content)][key] = slot, content
        alone = replace(tool, programs=(program,), kept="")
        for group in groups.values():
            rows = list(group.items())
            for begin in range(0, len(rows), _AT_ONCE):
                with suppress(FactError):
                    self._read_merged(alone, rows[begin : begin + _AT_ONCE])

    @staticmethod
    def _read_merged(tool: DisassemblerRequest, rows: Sequence[tuple[bytes, tuple[str, bytes]]]) -> None:
        """Keep the texts of some cubins of one group, each with the key and the slot of its text.

        Raises:
            FactError: they cannot be merged, or the text of the merged file cannot be split.
        """
        cubins = [content for _, (_, content) in rows]
        if len(cubins) == 1:  # it takes as long without being merged
            return
        names = merged_cubins.prefixes(cubins)
        with files.scratch("cubins-") as folder, redirect_stderr(io.StringIO()):
            merged = folder / "merged.cubin"
            files.write(merged, merged_cubins.merge(cubins, names))
            text = file_context.disassembled(tool, str(merged))
        if text is None:
            return
        # A path in a line table may be no UTF-8.
        texts = merged_cubins.split(text.decode("utf-8", "surrogateescape"), names)
        for (key, (slot, _)), own in zip(rows, texts, strict=True):
            file_context.keep_slot(slot, key, own.encode("utf-8", "surrogateescape"))

    def _available(self, packages: Iterable[Path]) -> DisassemblerRequest:
        """Return the request with the programs that exist, of the packages in their order."""
        request = self.request()
        tools = [file_context.available(request, str(package)) for package in packages]
        tools = tools or [file_context.available(request, _NOWHERE)]
        programs = tuple(dict.fromkeys(program for tool in tools for program in tool.programs))
        return replace(tools[0], programs=programs)


@dataclass(frozen=True)
class HostPrograms:
    """Programs of this machine that a compile uses besides Triton's own, found before the plan is made.

    Attributes:
        disassemblers: in the order of configs/kernels.toml.
        linker: variables that let AMD's backend of Triton 3.4 and older find a linker; empty if not needed.
        lent: packages of this tool's environment for an interpreter that lacks them, each with its folder.
    """

    disassemblers: tuple[Disassembler, ...] = ()
    linker: tuple[tuple[str, str], ...] = ()
    lent: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Interpreter:
    """The interpreter that compiles, and its limits.

    Attributes:
        python: an interpreter that has Triton.
        space: the workspace: scratch folders, logs, and outputs without a given folder.
        folder: parent folder of outputs without a given folder.
        jobs: compiles at once.
        timeout: seconds for one point.
        flags: flags that select the same interpreter again, for a shell.
        programs: programs of this machine that Triton does not include.
        variables: environment variables for the compiler.
    """

    python: Path
    space: Workspace
    folder: Path
    jobs: int
    timeout: int
    flags: Mapping[str, str] = field(default_factory=dict)
    programs: HostPrograms = field(default_factory=HostPrograms)
    variables: Mapping[str, str] = field(default_factory=dict)

    def output(self, request: CompileRequest, kernel: str) -> Path:
        """Return the default output folder of a kernel."""
        # A name of a kernels file is unique in it; two of its kernels may have one file and function.
        own = folder_name(f"{request.listed.stem}.{request.name}") if request.listed else ""
        return self.folder / (own or f"{request.file.stem}.{kernel}")


def choose_interpreter(
    env: str, python: str = "", *, jobs: int | None = None, timeout: int | None = None
) -> Interpreter:
    """Choose the interpreter with Triton by its environment or its path, and the limits of its compiles.

    Args:
        env: an environment, by name or file.
        python: an interpreter to use instead.
        jobs: compiles at once; None or 0 for as many as cores and memory allow.
        timeout: seconds for one point; None or 0 for the default.

    Raises:
        FactError: the interpreter does not exist.
    """
    space = workspace.default()
    table = configs.load("kernels")["jobs"]
    if python:
        path, folder, flags = (
            Path(python).expanduser().absolute(),
            space.root / "kernels",
            {"python": python},
        )
        hints = ["give an interpreter that has Triton: --python .venv/bin/python"]
    else:
        chosen = settings.load(env)
        environment = space.env(chosen.name)
        path, folder, flags = environment.python, environment.path / "kernels", {"env": env}
        if chosen.triton.wheel:
            hints = [f"{command('up', env=env)} creates it"]
        else:
            hints = [
                f"{command('install-triton', env=env)} creates it, after build-triton",
                "or use a release: --env wheel",
            ]
    if not (path.is_file() and os.access(path, os.X_OK)):
        hints += [f"or use one that is there: --env {name}" for name in installed_tritons.environments(space)]
        raise UnavailableError("no Python interpreter with Triton yet", where=path, hints=hints)
    here = machine.read()
    # Each job is a process with LLVM in it: on a small machine memory ends before the cores do.
    fitting = max(1, min(here.cores, here.memory // (table["memory"] * _MIB)))
    programs = locate_programs(space)
    return Interpreter(path, space, folder, jobs or fitting, timeout or table["timeout"], flags, programs)


def worker_variables(interpreter: Interpreter) -> tuple[tuple[str, str | None], ...]:
    """Return the changes to the worker's environment; None unsets a variable."""
    # In this order: what a Triton or a user sets for one compile wins over the linker of this machine.
    return (
        *((name, None) for name in configs.load("kernels")["variables"]["unset"]),
        *interpreter.programs.linker,
        *interpreter.variables.items(),
    )


def locate_programs(space: Workspace) -> HostPrograms:
    """Find the programs on this machine."""
    # `find_spec` reads no module: it tells where a package is, and the worker puts that folder on its path if
    # its own interpreter lacks the package.
    specs = ((name, find_spec(name)) for name in configs.load("kernels")["lent"]["modules"])
    lent = ((name, str(Path(spec.origin).parents[1])) for name, spec in specs if spec and spec.origin)
    return HostPrograms(_disassemblers(space), _linker(space), tuple(lent))


def _disassemblers(space: Workspace) -> tuple[Disassembler, ...]:
    disassemblers, kept = [], space.root / "kernels" / "disassembled"
    for binary, row in configs.load("kernels")["disassemblers"].items():
        # Triton's own come before this machine's: they are as new as the binary.
        by_user = os.environ.get(row["variable"], "") if row["variable"] else ""
        here = tuple(map(str, _on_this_machine(row["program"], space)))
        programs = (*((by_user,) if by_user else ()), *row["programs"], *here)
        flags = tuple(row["flags"])
        disassemblers.append(
            Disassembler(binary, row["stage"], row["program"], programs, flags, row["remedy"], kept)
        )
    return tuple(disassemblers)


def remedy(stage: str) -> str:
    """Explain why a stage of text is missing, and what to do about it."""
    rows = configs.load("kernels")["disassemblers"].values()
    row = next(row for row in rows if row["stage"] == stage)
    return f"no {stage}: {row['program']} is missing; {row['remedy']}"


def _linker(space: Workspace) -> tuple[tuple[str, str], ...]:
    table = configs.load("kernels")["linker"]
    # Where the user named a linker, or ROCm is installed, Triton finds one by itself.
    if os.environ.get(table["variable"]) or Path(table["default"]).exists():
        return ()
    linker = next(_on_this_machine(table["program"], space), None)
    return ((table["variable"], str(linker)),) if linker else ()


def _on_this_machine(program: str, space: Workspace) -> Iterator[Path]:
    """Yield paths of a program: unpacked packages, system LLVMs (newest first), PATH, our LLVM builds."""
    # A program on PATH may be years older than the distribution's others: LLVM 14 does not know gfx942.
    yield from sorted(space.toolchain.glob(f"*/nvidia/*/bin/{program}"), reverse=True)
    installed = Path("/usr/lib").glob(f"llvm-*/bin/{program}")
    yield from sorted(installed, key=lambda path: version_key(path.parts[3]), reverse=True)
    if path := process.which(program):
        yield Path(path)
    yield from sorted(space.llvm.glob(f"*/bin/{program}"), reverse=True)


@dataclass(frozen=True)
class KernelDescription:
    """A kernel as Triton sees it.

    Attributes:
        kernel: the kernel and its parameters.
        configs: the configs of its autotuner.
        queried_gpu: the file queried the GPU at import, so that the kernel may differ for another target.
    """

    kernel: KernelSource
    configs: tuple[Config, ...]
    queried_gpu: bool


def describe_kernel(
    request: CompileRequest, kernel: str, target: Target, interpreter: Interpreter
) -> KernelDescription:
    """Return the facts about a kernel that are known only by running its file.

    Args:
        request: names the file.
        kernel: name of the function.
        target: the GPU that the file sees.
        interpreter: the interpreter.

    Raises:
        SmithError: the file cannot be run, or has no such kernel.
    """
    table = configs.load("kernels")
    question = DescribeRequest(
        file=str(request.file),
        kernel=kernel,
        ir=False,
        points=(PointRequest((target.backend, target.arch, target.warp_size)),),
        stand_ins=tuple(table["stand-ins"]["modules"]),
        gpus=targets.all_gpu_facts([target]),
        lent=dict(interpreter.programs.lent),
    )
    try:
        # As long as a compile may take, and not as `import triton` may: on a machine with many compiles at
        # once, a rehearsal would report as a regression that this one was late.
        row = call.ask_one(
            interpreter.python, question, DescribedRow, interpreter.space, timeout=interpreter.timeout
        )
    except call.UnansweredError as error:
        if error.refusal:
            raise _error(error.refusal, request, interpreter.python) from error
        raise UnavailableError(
            "cannot inspect the kernel's file",
            where=request.file,
            why=error.why,
            hints=[f"check that this works: {interpreter.python} -c 'import triton'"],
        ) from error
    parameters = tuple(KernelParameter(**asdict(parameter)) for parameter in row.parameters)
    return KernelDescription(
        KernelSource(kernel, parameters, row.heuristics, bool(row.configs)),
        tuple(Config(each.values, each.options) for each in row.configs),
        row.asked,
    )


def provided(module: str) -> tuple[str, ...]:
    """Return hints for a missing module; a package is named only if it is known to be the right one."""
    # On PyPI anybody may own the name of a module: `pip install` of a guess can run a stranger's code.
    packages: dict[str, str] = configs.load("kernels")["packages"]
    own = f"if it is your own module: PYTHONPATH=/folder/that/has/{module}"
    if package := packages.get(module):
        return f"install it into the environment: pip install {package}", own
    return own, f"a package named {module} may be unrelated: check the requirements of the kernel's project"


def failed_run(
    results: Path, request: CompileRequest, python: Path, failure: CommandFailedError
) -> SmithError:
    """Return the error for a worker run that produced nothing."""
    # The worker tells what it refuses in its results, and only the rest by its exit code and output.
    if refusal := call.refusal_in(results):
        return _error(refusal, request, python)
    hints = ["the log contains the full command and its output"]
    # The worker opens its file first: an empty one means that it died before the first row, as when an
    # import of the kernel's file crashes.
    if results.is_file() and not results.stat().st_size:
        hints = [f"it ended before compiling anything, perhaps while importing {request.file}", *hints]
    return SmithError(
        f"the compiler process failed with exit code {failure.code}",
        where=failure.log,
        why="\n".join(failure.output[-8:]) or None,
        hints=hints,
    )


def _error(refusal: WorkerRefusal, request: CompileRequest, python: Path) -> SmithError:
    """Turn the worker's reason into one error with hints."""
    # What a flag names wrongly is a usage error without a place; what the file lacks is a fact about the
    # file.
    what, why, module = refusal.what, refusal.why or None, refusal.module
    kind: type[SmithError] = FactError
    where: Path | None = request.file
    hints: tuple[str, ...] = ()
    names: Sequence[str] = refusal.names
    if refusal.kind == "kernel":
        hints = did_you_mean(request.kernel, names) if names else ("a kernel is a function with @triton.jit",)
        kind = UsageError
    elif refusal.kind == "option":
        name = refusal.name
        if name in {sweep.name for sweep in request.sweeps}:
            what = f"{name!r} is neither a parameter of the kernel nor an option of a backend"
            names = [*refusal.parameters, *names]
        kind, where, hints = UsageError, None, did_you_mean(name, names)
    elif module == "triton":
        what = f"the kernel imports something that this Triton lacks: {what}"
        hints = ("use a newer Triton: --env, --python",)
    elif module:
        what = f"the kernel needs a module that is not installed: {what}"
        hints = provided(module)
    elif refusal.kind == "unknown":
        hints = (
            provided(refusal.package)
            if refusal.package
            else ("use a constant in the file instead of a value computed at import",)
        )
    elif refusal.kind == "triton":
        where, hints = python, ("invoke up creates an environment with a Triton release",)
    elif refusal.kind == "file":
        hints = ("only what the kernel needs is run from the file: its definition and the names in it",)
    error = kind(what, where=where, why=why, hints=hints)
    error.reads = refusal.reads
    return error


# A top-level package is searched by all finders, since that of an editable install may know it; its
# submodules are searched in the package's folder only, because `find_spec` would import the parents.
_SEARCH = """
import importlib.machinery, importlib.util, json, sys
name, *parts = sys.argv[1].split(".")
spec = importlib.util.find_spec(name)
for part in parts:
    name += "." + part
    inside = spec and spec.submodule_search_locations
    spec = importlib.machinery.PathFinder.find_spec(name, list(inside)) if inside else None
    if spec is None:
        break
print(json.dumps({"name": name, "file": spec and spec.origin}))
"""


def module_file(module: str, python: Path) -> Path:
    """Return the file of a module.

    Args:
        module: its dotted name.
        python: the interpreter that would import it, from the current folder.

    Raises:
        FactError: there is none, or it is not written in Python.
    """
    # Only that interpreter knows: its finders include those of editable installs. The module itself is not
    # imported, since that would run the user's code.
    answer = process.query((str(python), "-c", _SEARCH, module))
    try:
        # The last line: a `sitecustomize` of the user may print.
        location = json.loads(answer.out.splitlines()[-1]) if answer else {}
    except (ValueError, IndexError):
        location = {}
    if not location:
        why = answer.err[-2000:] if answer else f"{python} did not respond in time"
        raise FactError("cannot search for the module", where=module, why=why)
    if not location["file"]:
        package = module.partition(".")[0]
        hints = ["give its file instead", *(provided(package) if location["name"] == package else ())]
        raise FactError(f"no module {location['name']}", where=module, why=f"for {python}", hints=hints)
    if not location["file"].endswith(".py"):
        raise FactError("this module is not written in Python", where=location["file"])
    return Path(location["file"])
