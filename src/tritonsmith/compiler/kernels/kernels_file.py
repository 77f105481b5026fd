"""Select kernels of a kernels file by a command line: `captured.toml`, `captured.toml:layer_norm`.

A trace of tritonparse (ndjson, plain or compressed) is read as a kernels file, too. Each of its lines is a
JSON object. The `payload` of a `compilation` has Triton's metadata, the IR (`file_content`), and the text
of the kernel or of its whole file (`python_source`); a `launch` has the grid, and the hash of the
compilation.
"""

from __future__ import annotations

import ast
import gzip
import hashlib
import io
import re
import textwrap
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from tritonsmith.compiler import from_cache, source, source_tree
from tritonsmith.compiler.kernels import kernel_list
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.manifest import folder_name
from tritonsmith.compiler.request import AUTOTUNE, CompileRequest
from tritonsmith.compiler.signature import DTYPE, spell_value
from tritonsmith.compiler.targets import Target
from tritonsmith.core import untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError, did_you_mean
from tritonsmith.core.plan import Plan, Write

_NAMED = re.compile(r"(.+?\.(?:toml|ndjson(?:\.gz)?))(?::(.+))?")
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# Bytes of all lines, unpacked: a gzip bomb of a few megabytes would fill the machine.
_LARGEST = 4 << 30
_HEAD = "import triton\nimport triton.language as tl\n\n\n"
_ARGUMENT = re.compile(r"%[\w$.-]+: (\S+?)(?=[ ,)])")
_INDEX = re.compile(r"\(?(\d+),?\)?", re.ASCII)
_DTYPE = re.compile(r"triton\.language\.core\.dtype\('(\w+)'\)", re.ASCII)
# Types of MLIR as signatures spell them; all others, such as i32 and bf16, are spelled alike.
_MLIR = {"f16": "fp16", "f32": "fp32", "f64": "fp64", "f8E4M3FN": "fp8e4nv", "f8E5M2": "fp8e5"}
# dtypes print themselves by their short names, and `tl` has them under the long ones.
_LONG = {"fp16": "float16", "fp32": "float32", "fp64": "float64", "bf16": "bfloat16", "fp8e4nv": "float8e4nv"}


def named(text: str) -> tuple[Path, str] | None:
    """Split a text into a kernels file and a kernel's name, empty for all kernels; None for other texts."""
    # By its suffix alone: a file that does not exist is reported as a kernels file, not as a kernel.
    match = _NAMED.fullmatch(text)
    return (Path(match[1]).expanduser().absolute(), match[2] or "") if match else None


def read(path: Path) -> tuple[tuple[ListedKernel, ...], tuple[str, ...]]:
    """Read the kernels of a file, and notes; sources that only a trace holds are written to the workspace.

    Raises:
        SmithError: as `kernel_list.read` and `read_trace`.
    """
    if ".ndjson" not in path.suffixes:
        return kernel_list.read(path), ()
    space = workspace.default()
    trace = read_trace(path, space.root / "kernels" / "sources")
    if trace.texts:
        space.claim()
        steps = (Write(place, text, phase="sources") for place, text in trace.texts.items())
        space.run(Plan("sources", tuple(steps)), "kernels", quiet=True)
    return trace.entries, trace.notes


def choose(entries: Sequence[ListedKernel], path: Path, name: str) -> tuple[ListedKernel, ...]:
    """Return the entries with a name, or else with this function; all if the name is empty.

    Raises:
        UsageError: there is none, or it is a function of several differently named entries.
    """
    if not name:
        return tuple(entries)
    matches = [entry for entry in entries if entry.name == name]
    # A name comes first: an entry may have the name of another one's function.
    matches = matches or [entry for entry in entries if entry.kernel == name]
    names = list(dict.fromkeys(entry.name for entry in entries))
    if not matches:
        hints = did_you_mean(name, names) or [f"this file lists {', '.join(names)}"]
        raise UsageError(f"this file lists no kernel {name!r}", where=path, hints=hints)
    if len({entry.name for entry in matches}) > 1:
        raise several(path, [entry.name for entry in matches])
    return tuple(matches)


def requests(
    entries: Sequence[ListedKernel], path: Path, flags: CompileRequest, default: tuple[Target, ...]
) -> tuple[CompileRequest, ...]:
    """Return one compile request per entry.

    Args:
        entries: entries of the file.
        path: the file.
        flags: the request of the flags; it overrides the file.
        default: targets for entries without any, if the flags have none either.

    Raises:
        SmithError: a request cannot be made, or a flag does not apply to several kernels.
    """
    many = len(entries) > 1
    hint = f"choose one: {path}:{entries[0].name}"
    if many and flags.signature:
        what = "--signature applies to one kernel, but a TOML file lists many"
        raise UsageError(what, where=path, hints=["omit it", hint])
    if many and flags.autotune and not any(entry.configs for entry in entries):
        what = f"--sweep {AUTOTUNE} applies to one kernel, or to configs that a kernels file has recorded"
        raise UsageError(what, where=path, hints=["omit it", hint])
    return tuple(
        _request(entry, path, flags, default, autotune=flags.autotune and (bool(entry.configs) or not many))
        for entry in entries
    )


def _request(
    entry: ListedKernel, path: Path, flags: CompileRequest, default: tuple[Target, ...], *, autotune: bool
) -> CompileRequest:
    effective = replace(entry, signature=flags.signature) if flags.signature else entry
    request = effective.request(path.parent, default, autotune=autotune)
    return replace(
        request,
        # `request` has left out what the configs set; what a flag sets must not give way to them.
        signature=flags.signature or request.signature,
        targets=flags.targets or request.targets,
        options={**request.options, **flags.options},
        sweeps=flags.sweeps,
        stages=flags.stages,
        surgery=flags.surgery,
        name=entry.name,
        listed=path,
    )


def changes(entries: Sequence[ListedKernel], path: Path) -> Iterator[str]:
    """Yield notes on files that have changed since they were captured."""
    for file in dict.fromkeys(entry.file for entry in entries if entry.changed(path.parent)):
        yield f"{file} has changed since it was captured"


def own_targets(entries: Sequence[ListedKernel], flag_targets: Sequence[object]) -> Iterator[str]:
    """Yield a note if `--target` does not apply to kernels that have targets of their own."""
    count = sum(bool(entry.targets) for entry in entries)
    if flag_targets and count:
        yield f"--target applies to kernels without targets; {count} of {len(entries)} have their own"


def check_folders(requests: Sequence[CompileRequest]) -> None:
    """Check that each kernel gets its own output folder.

    Raises:
        UsageError: two names give the same folder on some file system, or one entry is for several Tritons.
    """
    folders = [folder_name(request.name) for request in requests]
    times = Counter(folders)
    twice = [request for request, folder in zip(requests, folders, strict=True) if times[folder] > 1]
    if twice:
        names = " and ".join(dict.fromkeys(request.name for request in twice))
        hints = ['give one of them another name: name = "..."', f"or choose one: {twice[0].listed}:NAME"]
        raise UsageError(
            f"two kernels would use the same folder: {names}", where=twice[0].listed, hints=hints
        )


def several(path: Path, names: Sequence[str]) -> UsageError:
    """Return the error for a command that takes one kernel, when the file lists several."""
    what = f"this file lists {len(names)} kernels, and one must be chosen"
    return UsageError(what, where=path, hints=[f"choose one: {path}:{name}" for name in names])


@dataclass(frozen=True)
class Trace:
    """The kernels of a trace.

    Attributes:
        entries: the kernels; the configs that an autotuner compiled are the `configs` of one entry.
        texts: sources that are not on this machine, by the paths that entries name.
        notes: messages for the user.
    """

    entries: tuple[ListedKernel, ...]
    texts: Mapping[Path, str]
    notes: tuple[str, ...]


def read_trace(path: Path, folder: Path) -> Trace:
    """Read the kernels of a trace.

    Args:
        path: the trace.
        folder: folder for sources that only the trace has.

    Raises:
        FactError: it cannot be read, or has no kernel that can be compiled again.
        UsageError: there is no such file.
    """
    notes: dict[str, None] = {}
    groups: dict[str, list[_Compile]] = {}
    for compilation in _compiles(path, notes):
        groups.setdefault(compilation.kind, []).append(compilation)
    if not groups:
        what = "this trace has no kernel that can be compiled again"
        raise FactError(what, where=path, why="\n".join(notes) or "it has no compilation with a Python text")
    names = Counter(group[0].kernel for group in groups.values())
    numbers: Counter[str] = Counter()
    entries: list[ListedKernel] = []
    texts: dict[Path, str] = {}
    for group in groups.values():
        first = group[0]
        numbers[first.kernel] += 1
        suffix = f"-{numbers[first.kernel]}" if names[first.kernel] > 1 else ""
        entry = _entry(group, f"{first.kernel}{suffix}", path)
        here = Path(first.file)
        if untrusted.is_file(here):
            # Of an edited file the digest cannot match: `changes` then tells the user so.
            same = first.code in source.read(here)
            sha256 = source_tree.sum_of(here) if same else hashlib.sha256(first.code.encode()).hexdigest()
            entries.append(replace(entry, file=first.file, sha256=sha256))
            continue
        text = first.code if first.whole else _alone(first)
        place = folder / hashlib.sha256(text.encode()).hexdigest()[:16] / f"{first.kernel}.py"
        texts[place] = text
        entries.append(replace(entry, file=str(place)))
        notes[f"{here.name} is not on this machine: {first.kernel} is compiled from the trace's text"] = None
    return Trace(tuple(entries), texts, tuple(notes))


def _entry(group: Sequence[_Compile], name: str, path: Path) -> ListedKernel:
    # The autotuner compiles all of its configs, and then launches the best one ever after.
    used = max(group, key=lambda compilation: compilation.grids.total())
    grids = sum((compilation.grids for compilation in group), Counter[tuple[int, ...]]())
    return ListedKernel(
        where=f"{path}, {name}",
        file="",
        kernel=used.kernel,
        name=name,
        signature=used.signature,
        targets=(used.target,),
        options=used.options,
        count=grids.total(),
        grids=tuple(grid for grid, _ in grids.most_common()),
        configs=tuple(compilation.config for compilation in group) if len(group) > 1 else (),
    )


@dataclass(frozen=True)
class _Compile:
    """A compilation in a trace."""

    kernel: str
    file: str
    code: str
    whole: bool
    function: ast.FunctionDef
    target: Target
    constants: Mapping[str, Any]
    types: Mapping[str, str]
    options: Mapping[str, Any]
    grids: Counter[tuple[int, ...]] = field(default_factory=Counter)

    @property
    def tuned(self) -> frozenset[str]:
        """The parameters that the configs of its autotuner set, as far as its decorators spell them."""
        nodes = (node for decorator in self.function.decorator_list for node in ast.walk(decorator))
        calls = [
            call for call in nodes if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("Config")
        ]
        tables = [call.args[0] for call in calls if call.args and isinstance(call.args[0], ast.Dict)]
        keys = [key.value for table in tables for key in table.keys if isinstance(key, ast.Constant)]
        return frozenset(key for key in keys if isinstance(key, str))

    @property
    def kind(self) -> str:
        """A key that is equal for all configs of an autotuner."""
        fixed = {name: value for name, value in self.constants.items() if name not in self.tuned}
        own = {} if self.tuned else self.options
        return repr((self.file, self.kernel, self.code, self.target, self.types, fixed, own))

    @property
    def config(self) -> dict[str, Any]:
        """The values of the tuned parameters, with the options."""
        chosen = {name: _plain(value) for name, value in self.constants.items() if name in self.tuned}
        return chosen | dict(self.options)

    @property
    def signature(self) -> str:
        """The signature: all parameters, by name."""
        texts = {name: spell_value(value) for name, value in self.constants.items()} | dict(self.types)
        return ",".join(f"{name}={texts[name]}" for name in _parameters(self.function) if name in texts)


def _compiles(path: Path, notes: dict[str, None]) -> list[_Compile]:
    """Return the compilations, each once, with the grids of its launches."""
    compilations: dict[str, _Compile] = {}
    grids: dict[str, Counter[tuple[int, ...]]] = {}
    for number, line in enumerate(_lines(path), 1):
        try:
            event = untrusted.json_of(line)
            kind = event.get("event_type")
            if kind == "compilation" and event["payload"].get("python_source"):
                digest = event["payload"]["metadata"]["hash"]
                # Each process of a program writes an event, and all of them may share one cache.
                if digest not in compilations:
                    compilations[digest] = _compile(event["payload"])
            elif kind == "launch":
                grid = tuple(int(size) for size in event.get("grid") or ())
                digest = (event.get("compilation_metadata") or {}).get("hash", "")
                grids.setdefault(digest, Counter())[grid] += 1
        except _LeftOutError as error:
            notes[f"line {number}: {error} is left out"] = None
        # The last: a target or an option that this tool does not know.
        except (KeyError, TypeError, AttributeError, ValueError, SmithError) as error:
            why = f"line {number}: {error.what if isinstance(error, SmithError) else repr(error)}"
            raise FactError("this is not a trace of tritonparse", where=path, why=why) from None
    return [
        replace(compilation, grids=grids.get(digest, Counter()))
        for digest, compilation in compilations.items()
    ]


class _LeftOutError(Exception):
    """A kernel that cannot be compiled again from the trace."""


def _compile(payload: Mapping[str, Any]) -> _Compile:
    metadata, python = payload["metadata"], payload["python_source"]
    name, code = metadata["name"], textwrap.dedent(python["code"])
    function = _function(code, name)
    target = from_cache.target_of(metadata)
    if function is None or target is None:
        raise _LeftOutError(
            f"{name}, whose {'target' if function else 'definition'} the trace does not have,"
        )
    parameters = _parameters(function)
    try:
        constants = {_named(key, parameters): value for key, value in metadata["src_constants"].items()}
        hints = {_named(key, parameters): dict(value) for key, value in metadata["src_attrs"].items()}
    except (LookupError, ValueError):
        raise _LeftOutError(f"{name}, which has a tuple among its parameters,") from None
    if any(isinstance(value, dict) for value in constants.values()):
        raise _LeftOutError(f"{name}, one of whose constants is an object,")
    # The ttir has no argument for a constant, and names of arguments only in some releases: their order
    # tells.
    rest = [parameter for parameter in parameters if parameter not in constants]
    kinds = _types(payload["file_content"])
    if len(kinds) != len(rest):
        raise _LeftOutError(f"{name}, whose parameters are not those of its ttir,")
    # Triton specializes on one divisor only, which is 16.
    types = {
        parameter: f"{kind}:16" if hints.get(parameter, {}).get("tt.divisibility") else kind
        for parameter, kind in zip(rest, kinds, strict=True)
    }
    options = from_cache.options_of(metadata, target.backend)
    # Warp specialization adds warps to those of the launch, and would add them again to its own result.
    if "num_warps_base" in metadata:
        options["num_warps"] = metadata["num_warps_base"]
    return _Compile(
        kernel=name,
        file=str(python["file_path"]),
        code=code,
        whole="function_start_line" in python,
        function=function,
        target=target,
        constants={parameter: _value(value) for parameter, value in constants.items()},
        types=types,
        options=options,
    )


def _function(code: str, name: str) -> ast.FunctionDef | None:
    try:
        nodes = list(ast.walk(untrusted.python_tree(code)))
    except (SyntaxError, ValueError):
        return None
    return next((node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == name), None)


def _parameters(function: ast.FunctionDef) -> tuple[str, ...]:
    heads = function.args
    return tuple(parameter.arg for parameter in (*heads.posonlyargs, *heads.args, *heads.kwonlyargs))


def _named(key: str, parameters: Sequence[str]) -> str:
    """Return the parameter of a key: `(4,)` or `4`. A part of a tuple, `(4, 0)`, raises LookupError."""
    if key in parameters:
        return key
    match = _INDEX.fullmatch(key)
    if not match:
        raise LookupError(key)
    return parameters[int(match[1])]


def _types(files: Mapping[str, str]) -> list[str]:
    """Return the types of the ttir's arguments, as signatures spell them."""
    text = next((text for name, text in files.items() if name.endswith(".ttir")), "")
    head = next((line for line in text.splitlines() if "tt.func public" in line), "")
    return [_type(argument) for argument in _ARGUMENT.findall(head)]


def _type(text: str) -> str:
    inner = text.removeprefix("!tt.ptr<")
    return f"*{_type(inner.removesuffix('>'))}" if inner != text else _MLIR.get(text, text)


def _value(value: Any) -> Any:
    """Return a constant; a trace holds dtypes as texts."""
    match = _DTYPE.fullmatch(value) if isinstance(value, str) else None
    return {DTYPE: _LONG.get(match[1], match[1])} if match else value


def _plain(value: Any) -> Any:
    """Spell a config's value for a kernels file."""
    return value if isinstance(value, (bool, int, float)) else spell_value(value)


def _alone(recorded: _Compile) -> str:
    """Return a file with the function under @triton.jit alone."""
    # The effects of its other decorators are among the constants and configs already.
    lines = recorded.code.splitlines(keepends=True)[recorded.function.lineno - 1 :]
    return f"{_HEAD}@triton.jit\n{textwrap.dedent(''.join(lines))}"


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a plain or compressed file.

    Raises:
        FactError: it cannot be read, or is too large.
        UsageError: there is no such file.
    """
    if not untrusted.is_file(path):
        raise UsageError("no such file", where=path)
    try:
        with untrusted.opened(path) as file, _unpacked(file) as stream:
            left = _LARGEST
            # By lines, since a trace of a training run does not fit into memory; one line must.
            while line := stream.readline(untrusted.LIMIT + 1):
                left -= len(line)
                if len(line) > untrusted.LIMIT or left < 0:
                    raise FactError("this trace is too large", where=path)
                if line.strip():
                    yield line
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise FactError("cannot read this trace", where=path, why=str(error)) from error


def _unpacked(file: BinaryIO) -> BinaryIO | io.BufferedIOBase:
    # By content, not by name: tritonparse itself writes `.ndjson` compressed.
    begin = file.read(len(_ZSTD))
    file.seek(0)
    if begin.startswith(_GZIP):
        return gzip.GzipFile(fileobj=file)
    if begin == _ZSTD:
        return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True))
    return file
