"""Runs single passes through libtriton's own bindings, in an interpreter that has Triton 3.0 or later.

    python worker.py bindings JSON     which binding adds which pass, and where its arguments show
    python worker.py rehearse JSON     which bindings a backend calls, with which arguments; compiles nothing
    python worker.py replay REQUEST    passes, each on its own input

One file, Triton and the standard library, Python 3.8 and later, so that any env can run it. The answer is one
JSON object a line, on standard output or in the file that the request names.

libtriton.so is loaded alone where that is enough: the package around it takes longer, and 3.0's needs
setuptools.
Whatever may end the process, a pass or the adding of one, happens in a child.
"""

# `open` and os.path: as in kernels/worker.py.
# ruff: noqa: PLC0415, PTH100, PTH113, PTH118, PTH120, PTH123

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import json
import os
import re
import signal
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # Python 3.8 cannot evaluate these
    Table = dict[str, Any]  # what JSON carries

SIGNATURE = re.compile(r"^\w+\((.*)\) -> ")
PARAMETER = re.compile(r"(?:^|, )\w+: ([^,\[\]]+(?:\[[^\]]*\])?)")
# Two values for each type of argument: whatever changes in the pass's options between them, is that argument.
PROBES: Table = {"int": (7001, 7002), "bool": (False, True), "str": ("first", "second")}


EXIT_REFUSED = 2


class UnusableError(Exception):
    """The request cannot be done with this Triton."""


# ---------------------------------------------------------------- libtriton


def library() -> str:
    """The path of libtriton.so."""
    spec = importlib.util.find_spec("triton")
    if spec is None or not spec.origin:
        raise UnusableError("this interpreter has no Triton")
    folder = os.path.join(os.path.dirname(spec.origin), "_C")
    found = [os.path.join(folder, "libtriton" + ending) for ending in importlib.machinery.EXTENSION_SUFFIXES]
    for path in found:  # in Python's own order: a library for another Python may lie beside it
        if os.path.isfile(path):
            return path
    raise UnusableError(f"{os.path.dirname(spec.origin)} has no libtriton.so for this Python")


def load(path: str) -> Any:
    """The module itself, without the package around it."""
    spec = importlib.util.spec_from_file_location("libtriton", path)
    assert spec is not None  # noqa: S101 - for the type checker
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def context_of(lib: Any) -> Any:
    """A context that knows the dialects of Triton and of all backends."""
    context = lib.ir.context()
    lib.ir.load_dialects(context)
    for name in sorted(dir(lib)):
        part = getattr(lib, name)
        if name != "ir" and hasattr(part, "load_dialects"):
            part.load_dialects(context)
    return context


def bindings_of(lib: Any) -> Iterator[tuple[Any, str, str]]:
    """Every `add_*` below a module named `passes`: the module, its path, the name."""

    def walk(module: Any, path: str) -> Iterator[tuple[Any, str, str]]:
        for name in sorted(dir(module)):
            part = getattr(module, name)
            if isinstance(part, types.ModuleType):
                yield from walk(part, f"{path}.{name}")
            elif name.startswith("add_") and callable(part):
                yield module, path, name

    for name in sorted(dir(lib)):
        part = getattr(lib, name)
        inner = part if name == "passes" else getattr(part, "passes", None)
        if isinstance(inner, types.ModuleType):
            yield from walk(inner, "passes" if name == "passes" else f"{name}.passes")


def binding(lib: Any, path: str) -> Any:
    """The function of `nvidia.passes.ttgpuir.add_to_llvmir`."""
    found = lib
    for name in path.split("."):
        found = getattr(found, name)
    return found


def kinds_of(function: Any) -> list[str] | None:
    """Types of a binding's arguments after the pass manager; None if its docstring does not tell."""
    match = SIGNATURE.match((function.__doc__ or "").strip())
    if not match:
        return None
    kinds = [kind.strip() for kind in PARAMETER.findall(match[1].replace(", /", ""))]
    return [{"typing.SupportsInt": "int"}.get(kind, kind) for kind in kinds[1:]]


def value_of(lib: Any, kind: str, number: int) -> Any:
    """The first or second value to try for an argument."""
    if kind in PROBES:
        return PROBES[kind][number]
    short = re.split(r"::|\.", kind)[-1]
    for name in sorted(dir(lib)):  # ClusterInfo: a class of a backend, made without arguments
        made = getattr(getattr(lib, name), short, None)
        if isinstance(made, type):
            return made()
    raise UnusableError(f"nobody knows how to make a {kind}")


def form_of(lib: Any, path: str, arguments: list[Any]) -> Table:
    """The pipeline that holds this pass alone, as `value`: `any(tritongpu-pipeline{num-stages=3})`.

    Up to 3.2 no pass manager tells. A reproducer does, and is written before the passes run: so it counts
    even if the pass then ends the process, because an empty module is not what it expects.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = in_child(lambda: _form(lib, path, arguments, folder))
        if answer["status"] != "ok":
            with contextlib.suppress(OSError), open(f"{folder}/out.mlir", encoding="utf-8") as file:
                match = re.search(r'pipeline: "(.*)"', file.read())
                if match:
                    return {"status": "ok", "value": match[1]}
    return answer


def _form(lib: Any, path: str, arguments: list[Any], folder: str) -> str:
    context = context_of(lib)
    manager = lib.ir.pass_manager(context)
    add(lib, manager, path, arguments)
    if hasattr(manager, "get_pipeline_str"):  # since 3.3
        return str(manager.get_pipeline_str())
    write(f"{folder}/empty.mlir", "module {\n}\n")
    os.environ["TRITON_REPRODUCER_PATH"] = f"{folder}/out.mlir"
    manager.run(lib.ir.parse_mlir_module(f"{folder}/empty.mlir", context))
    raise UnusableError("the reproducer tells")


def add(lib: Any, manager: Any, path: str, arguments: list[Any]) -> None:
    """Call a binding."""
    values = [value_of(lib, one["class"], 0) if isinstance(one, dict) else one for one in arguments]
    binding(lib, path)(manager, *values)


# ---------------------------------------------------------------- children


def in_child(act: Callable[[], Any], log: str = os.devnull, timeout: float = 600.0) -> Table:
    """Do something in a process of its own.

    Returns:
        `status` (`ok`, `failed`, `crashed`, `timeout`), `value` or `error`, `seconds`.
    """
    began = time.monotonic()
    reader, writer = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _child(act, log, writer)
    os.close(writer)
    with open(reader, encoding="utf-8") as file:
        said, late = _hear(file, pid, timeout)
    status = os.waitpid(pid, 0)[1]
    seconds = time.monotonic() - began
    if late:
        return {"status": "timeout", "error": f"given up after {timeout:.0f} s", "seconds": seconds}
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return {"status": "crashed", "error": f"the compiler died: {name}", "seconds": seconds}
    if not said:
        code = os.WEXITSTATUS(status)
        return {"status": "crashed", "error": f"the process ended: exit code {code}", "seconds": seconds}
    answer: Table = json.loads(said)
    answer["seconds"] = seconds
    return answer


def _hear(file: Any, pid: int, timeout: float) -> tuple[str, bool]:
    late = []

    def kill(*_: Any) -> None:
        late.append(pid)
        os.kill(pid, signal.SIGKILL)

    before = signal.signal(signal.SIGALRM, kill)
    signal.setitimer(signal.ITIMER_REAL, timeout)
    try:
        return file.read(), bool(late)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _child(act: Callable[[], Any], log: str, writer: int) -> None:
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with its worker
    into = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(into, 1)
    os.dup2(into, 2)
    try:
        answer = {"status": "ok", "value": act()}
    except BaseException as error:  # noqa: BLE001 - whatever a binding raises
        answer = {"status": "failed", "error": f"{type(error).__name__}: {error}"}
    with contextlib.suppress(OSError), open(writer, "w", encoding="utf-8") as file:
        file.write(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)


# ---------------------------------------------------------------- what is asked for


def bindings(_: Table) -> Iterator[Table]:
    """A row for each binding: its path, the types of its arguments, the pass's form for values of them."""
    lib = load(library())
    for module, path, name in bindings_of(lib):
        kinds = kinds_of(getattr(module, name))
        row: Table = {"binding": f"{path}.{name}", "kinds": kinds, "forms": [], "error": ""}
        if kinds is None:
            row["error"] = "its docstring does not tell what it takes"
        for values in () if kinds is None else _tries(kinds):
            answer = form_of(lib, row["binding"], values)
            if answer["status"] == "ok":
                row["forms"].append({"arguments": values, "form": answer["value"]})
            else:
                row["error"] = answer["error"]
        yield row


def _tries(kinds: list[str]) -> Iterator[list[Any]]:
    """Arguments to call a binding with: the first value for each, then one of them changed."""
    first = [PROBES[kind][0] if kind in PROBES else {"class": kind} for kind in kinds]
    yield first
    for position, kind in enumerate(kinds):
        if kind in PROBES:
            yield [*first[:position], PROBES[kind][1], *first[position + 1 :]]


class EnoughError(BaseException):
    """Ends a rehearsal: the last pass manager of MLIR is behind it."""


def rehearse(request: Table) -> Iterator[Table]:
    """For each stage the calls that the backend makes, in order, with the forms of their passes."""
    answer = in_child(lambda: _rehearse(request))  # first, so that no thread runs where children come from
    if answer["status"] != "ok":
        raise UnusableError(answer["error"])
    lib = load(library())
    known: Table = {}
    for row in answer["value"]:
        for call in row["calls"]:
            key = json.dumps(call)
            if key not in known:
                known[key] = form_of(lib, call["binding"], call["arguments"])
            call["form"] = known[key].get("value", "")
        yield row


def _rehearse(request: Table) -> list[Table]:
    """What the stages call.

    Pass managers do not run. So this takes no time, and the calls depend on target and options only; a stage
    that reads what its passes would have made ends early, with the calls that were made by then.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [part for part in sys.path if os.path.abspath(part or ".") != here]
    for name in request["stand-ins"]:
        if importlib.util.find_spec(name) is None:
            sys.modules[name] = types.ModuleType(name)
    from triton._C import libtriton as lib
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    calls: list[Table] = []
    for module, path, name in list(bindings_of(lib)):
        _watch(module, path, name, calls)
    lib.ir.pass_manager.run = lambda *_: None
    lib.llvm.context = _enough
    target = GPUTarget(*request["target"])
    backend = make_backend(target)
    known = set(getattr(backend.parse_options({}), "__dataclass_fields__", ()))
    options = backend.parse_options({key: one for key, one in request["options"].items() if key in known})
    context = lib.ir.context()
    lib.ir.load_dialects(context)
    backend.load_dialects(context)
    stages: Table = {}
    backend.add_stages(stages, options, *_language(backend))
    module = lib.ir.parse_mlir_module(request["input"], context)
    module.context = context
    metadata = {"target": target, **vars(options)}
    rows = []
    for name in ("ttir", "ttgir", "llir"):
        before, error = len(calls), ""
        try:
            if name in stages:
                stages[name](module, metadata)
        except EnoughError:
            pass
        except Exception as failure:  # noqa: BLE001 - the calls that were made count
            error = f"{type(failure).__name__}: {failure}"
        rows.append({"stage": name, "calls": calls[before:], "error": error})
    return rows


def _language(backend: Any) -> list[Any]:
    """The last argument of `add_stages`, where it has one (since 3.4)."""
    import inspect

    if len(inspect.signature(backend.add_stages).parameters) < 3:  # noqa: PLR2004 - stages, options, language
        return []
    from triton.backends.compiler import Language

    return [Language.TRITON]


def _enough(*_: Any) -> None:
    raise EnoughError


def _watch(module: Any, path: str, name: str, calls: list[Table]) -> None:
    real = getattr(module, name)

    def watched(manager: Any, *arguments: Any) -> Any:
        plain = [
            one if isinstance(one, (bool, int, str)) else {"class": type(one).__name__} for one in arguments
        ]
        calls.append({"binding": f"{path}.{name}", "arguments": plain})
        return real(manager, *arguments)

    setattr(module, name, watched)


def replay(request: Table) -> Iterator[Table]:
    """Passes on their inputs."""
    lib = load(library())
    for job in request["jobs"]:
        answer = in_child(partial(_replay, lib, job), job["log"], request["timeout"])
        yield {
            "number": job["number"],
            **{key: answer.get(key, "") for key in ("status", "error", "seconds")},
        }
        print(f"[{job['number']}] {answer['status']}", flush=True)


def _replay(lib: Any, job: Table) -> None:
    context = context_of(lib)
    module = lib.ir.parse_mlir_module(job["input"], context)
    manager = lib.ir.pass_manager(context)
    for call in job["calls"]:
        add(lib, manager, call["binding"], call["arguments"])
    tagged = ": str" in (manager.run.__doc__ or "")  # since 3.5: a name for the reproducer
    manager.run(module, *(["replay"] if tagged else []))
    write(job["out"], str(module))


def write(path: str, text: str) -> None:
    """A file, whole."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main(what: str, text: str) -> int:
    """What the command line asks for."""
    if what == "replay":
        with open(text, encoding="utf-8") as file:
            request = json.load(file)
        with open(request["results"], "w", encoding="utf-8") as results:
            return answer(replay(request), results)
    return answer({"bindings": bindings, "rehearse": rehearse}[what](json.loads(text)), sys.stdout)


def answer(rows: Iterator[Table], out: Any) -> int:
    """Write rows down as they come; the exit code."""
    try:
        for row in rows:
            out.write(json.dumps(row) + "\n")
            out.flush()
    except (UnusableError, ImportError) as error:
        out.write(json.dumps({"refused": str(error)}) + "\n")
        return EXIT_REFUSED
    return 0


if __name__ == "__main__":
    exit_code = main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(exit_code)  # as in kernels/worker.py
