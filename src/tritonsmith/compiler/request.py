"""A compile request, and the points that it expands to.

A request is what flags or a kernels file ask for, and a point is one compile of it: there is one per target,
config and combination of swept values. Both may carry a surgery: passes to skip, to repeat or to end with,
and options of LLVM and of ptxas.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tritonsmith.compiler import signature
from tritonsmith.compiler.signature import BoundSignature, parse_value, spell_value, split_values
from tritonsmith.compiler.source import KernelSource
from tritonsmith.compiler.targets import Target
from tritonsmith.core import command_line
from tritonsmith.core.errors import UsageError
from tritonsmith.worker.messages import PointRequest, SurgeryRequest

AUTOTUNE = "autotune"  # `--sweep autotune`
_PASS = re.compile(r"([A-Za-z_][\w.-]*)(?:#([1-9]\d{0,3}))?", re.ASCII)
_OPTION = re.compile(r"-{0,2}[A-Za-z][\w.-]*(=\S*)?", re.ASCII)
_FEW = 8  # values, and points, of a summary
# Characters of a folder's name, which file systems limit to 255 bytes.
_LONGEST = 120


@dataclass(frozen=True)
class Sweep:
    """One parameter or option that takes several values in turn.

    Attributes:
        name: a parameter of the kernel, or an option of the backend.
        texts: the values as they were written: their meaning depends on the name.
    """

    name: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class CompileRequest:
    """A kernel with all targets, values and options to compile it with.

    Attributes:
        file: the Python file, absolute; or the IR file (`.ttir`, `.ttgir`) of a cache entry.
        kernel: name of the function; empty for the only one in the file.
        signature: as in upstream's tools/compile.py, or as `name=value`; empty for an IR file.
        targets: at least one.
        options: options of the backend, name to value.
        sweeps: their product is compiled.
        autotune: compile the configs of the kernel's `@triton.autotune` too.
        stages: stages to keep; all if empty.
        disassemble: also disassemble each binary.
        name: its name in tables and folders, from a kernels file; empty for a kernel that is in none.
        listed: that kernels file.
        configs: the autotuner's configs that the file has recorded, for `autotune`: parameters and options in
            one table each. With them, the kernel's own file need not be run.
        surgery: changes to the compiler's pipelines; None for none.
        variants: several surgeries, each a point of its own, in place of `surgery`.
    """

    file: Path
    kernel: str
    signature: str
    targets: tuple[Target, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    sweeps: tuple[Sweep, ...] = ()
    autotune: bool = False
    stages: tuple[str, ...] = ()
    disassemble: bool = True
    name: str = ""
    listed: Path | None = None
    configs: tuple[Mapping[str, Any], ...] = ()
    surgery: Surgery | None = None
    variants: tuple[Surgery, ...] = ()

    @property
    def from_ir(self) -> bool:
        """True if the compile starts from a compiler's IR instead of Python."""
        return self.file.suffix in (".ttir", ".ttgir")

    @property
    def runs_for_configs(self) -> bool:
        """True if the autotuner's configs are known only by running the kernel's file."""
        return self.autotune and not self.configs

    def flags(self, **more: object) -> str:
        """Return the words and flags that make the same request again, for a shell.

        Args:
            more: flags for the output folder and the Triton.
        """
        rest = command_line.arguments(**more)
        return f"{self._own_flags} {rest}" if rest else self._own_flags

    @cached_property
    def _own_flags(self) -> str:
        # Recorded configs are in the kernels file only, so the command names that file and not the kernel's.
        kernel = f"{self.listed}:{self.name}" if self.configs else f"{self.file}:{self.kernel}"
        sweeps = [f"{sweep.name}={','.join(sweep.texts)}" for sweep in self.sweeps]
        return command_line.arguments(
            kernel if self.kernel else self.file,
            signature=self.signature,
            target=[target.spelling() for target in self.targets],
            option=[f"{name}={spell_value(value)}" for name, value in self.options.items()],
            sweep=[*sweeps, *([AUTOTUNE] if self.autotune else ())],
            stage=self.stages,
            **(self.surgery.flags() if self.surgery else {}),
        )


@dataclass(frozen=True)
class Surgery:
    """The changes to a compile's pipelines; without any, the passes are only counted.

    A pass is `tritongpu-coalesce`, `add_coalesce` or `passes.ttgpuir.add_coalesce`, for all of its runs; `#2`
    selects the second run.

    Attributes:
        skip: passes to skip.
        stop: the last pass; its first run if no number is given.
        repeat: passes to run twice.
        llvm: options of LLVM: `disable-lsr`, `opt-bisect-limit=9`.
        ptxas: options of ptxas: `-O1`.
    """

    skip: tuple[str, ...] = ()
    stop: str = ""
    repeat: tuple[str, ...] = ()
    llvm: tuple[str, ...] = ()
    ptxas: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for flag, names in (
            ("--skip-pass", self.skip),
            ("--stop-after", filter(None, [self.stop])),
            ("--repeat-pass", self.repeat),
        ):
            for name in names:
                if not _PASS.fullmatch(name):
                    hints = ["NAME or NAME#2: tritongpu-coalesce, canonicalize#2, add_coalesce"]
                    raise UsageError(f"{flag} cannot be {name!r}", hints=hints)
        # ptxas's options are not checked: they differ from release to release, and ptxas reports a wrong one.
        for option in self.llvm:
            if not _OPTION.fullmatch(option):
                hints = ["as opt and llc take it: disable-lsr, opt-bisect-limit=9"]
                raise UsageError(f"--set-llvm cannot be {option!r}", hints=hints)

    def __bool__(self) -> bool:
        return self != Surgery()

    def flags(self) -> dict[str, Any]:
        """Return the command-line flags for these changes."""
        return {
            "skip_pass": self.skip,
            "stop_after": self.stop,
            "repeat_pass": self.repeat,
            "set_llvm": self.llvm,
            "ptxas_option": self.ptxas,
        }

    @property
    def label(self) -> str:
        """A short description, for the name of a point."""
        parts = (value for value in self.flags().values() if value)
        return "+".join(value if isinstance(value, str) else "+".join(value) for value in parts)

    def request(self) -> SurgeryRequest:
        """Return the changes as the worker's request spells them."""
        return SurgeryRequest(
            skip=tuple(map(_pass_run, self.skip)),
            stop=(_pass_run(self.stop),) if self.stop else (),
            repeat=tuple(map(_pass_run, self.repeat)),
            llvm=self.llvm,
            ptxas=self.ptxas,
        )


@dataclass(frozen=True)
class Config:
    """One config of `@triton.autotune`.

    Attributes:
        values: values of the kernel's parameters.
        options: num_warps, num_stages ...
    """

    values: Mapping[str, Any]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class CompilePoint:
    """A compile to run.

    Attributes:
        id: name of its folder: the target, and the values that differ between points.
        target: the GPU.
        bound: types, constants and hints of the kernel's parameters; None if the source is IR.
        options: options of the backend.
        surgery: changes to the compiler's pipelines; None for none.
    """

    id: str
    target: Target
    bound: BoundSignature | None
    options: Mapping[str, Any] = field(default_factory=dict)
    surgery: Surgery | None = None

    def request(self) -> PointRequest:
        """Return the point as the worker's request spells it."""
        # IR has its types and constants in itself.
        bound = self.bound or BoundSignature()
        return PointRequest(
            target=(self.target.backend, self.target.arch, self.target.warp_size),
            id=self.id,
            options=dict(self.options),
            signature=bound.signature,
            constexprs=bound.constexprs,
            hints=bound.hints,
            ranges=tuple(bound.ranges),
            surgery=self.surgery.request() if self.surgery is not None else None,
        )


def kernel_of(text: str) -> tuple[Path, str]:
    """Split `FILE[:KERNEL]` into file and kernel; an existing file may have a colon in its name.

    `make.k` is a kernel that the function `make` defines.

    Raises:
        UsageError: nothing is named.
    """
    name, colon, kernel = text.rpartition(":")
    words = all(part.isidentifier() for part in kernel.split("."))
    # To `isidentifier`, the `matmul.py` of `C:matmul.py` is a kernel inside a function, too.
    if not colon or not name or not words or kernel.endswith(".py") or Path(text).expanduser().is_file():
        name, kernel = text, ""
    if not name.strip():
        raise UsageError(
            "no kernel is given", hints=["give a file, or a file and a kernel: matmul.py:matmul"]
        )
    return Path(name).expanduser().absolute(), kernel


def module_of(text: str) -> tuple[str, str]:
    """Split `package.module:kernel` into module and kernel; both are empty if the text names a file."""
    name, _, kernel = text.rpartition(":")
    words = kernel.split(".") + name.split(".")
    # `matmul.py` consists of identifiers, and so might be a module `py` in a package `matmul`.
    if not all(part.isidentifier() for part in words) or name.endswith((".py", ".ipynb", ".ttir", ".ttgir")):
        return "", ""
    return ("", "") if Path(name).is_file() else (name, kernel)


def options_of(texts: Iterable[str]) -> dict[str, Any]:
    """Parse options from `name=value`.

    Raises:
        UsageError: one has no name or no value.
    """
    # Which options there are is for the backend to say: its release has others, and the worker checks the
    # names.
    options = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier() or not value.strip():
            raise UsageError(
                f"--option cannot be {text!r}", hints=["give a name and a value: --option maxnreg=128"]
            )
        options[name.strip()] = parse_value(value.strip())
    return options


def sweeps_of(texts: Iterable[str]) -> tuple[tuple[Sweep, ...], bool]:
    """Parse sweeps from `name=a,b,c`; the second value is True if `autotune` is among them.

    Raises:
        UsageError: one has no name or no values, or occurs twice.
    """
    # Values stay texts here: `64` is a constant for a parameter and a number for an option, and the kernel is
    # not known yet.
    sweeps: dict[str, Sweep] = {}
    autotune = False
    for text in texts:
        if text.strip() == AUTOTUNE:
            autotune = True
            continue
        name, equals, rest = text.partition("=")
        name = name.strip()
        parts = tuple(part for part in split_values(rest) if part)
        if not equals or not name.isidentifier() or not parts:
            hints = ["give a name and its values: --sweep BLOCK_M=64,128", f"or --sweep {AUTOTUNE}"]
            raise UsageError(f"--sweep cannot be {text!r}", hints=hints)
        if name in sweeps:
            raise UsageError(
                f"--sweep is given twice for {name}",
                hints=[f"list all values in one flag: --sweep {name}=1,2,3"],
            )
        sweeps[name] = Sweep(name, tuple(dict.fromkeys(parts)))
    return tuple(sweeps.values()), autotune


def expand_points(
    request: CompileRequest, kernel: KernelSource | None, configs: Iterable[Config] = ()
) -> tuple[CompilePoint, ...]:
    """Return all points, targets outermost.

    Args:
        request: the request.
        kernel: its parameters; None if the source is IR.
        configs: configs of its autotuner, if they are to be compiled; the recorded ones if empty.

    Raises:
        UsageError: the signature does not fit the kernel, a swept value its parameter, or an option
            the configs.
    """
    points: dict[str, CompilePoint] = {}
    for point, _, _ in _combinations(request, kernel, tuple(configs)):
        # Two configs of an autotuner may be equal; one compile serves both.
        points.setdefault(point.id, point)
    return tuple(points.values())


def narrow(request: CompileRequest, kernel: KernelSource | None, point: str) -> CompileRequest | None:
    """Return the request for one of its points alone; None if it has no such point.

    Args:
        request: its configs, if it has any, are the recorded ones.
        kernel: as for `expand_points`.
        point: the point's id.

    Raises:
        UsageError: as `expand_points`.
    """
    for candidate, number, swept in _combinations(request, kernel, ()):
        if candidate.id == point:
            return replace(
                request,
                targets=(candidate.target,),
                configs=request.configs[number : number + 1],
                sweeps=tuple(Sweep(name, (text,)) for name, text in swept.items()),
            )
    return None


def _combinations(
    request: CompileRequest, kernel: KernelSource | None, configs: tuple[Config, ...]
) -> Iterator[tuple[CompilePoint, int, dict[str, str]]]:
    """Yield every point with the number of its config and the swept values."""
    chosen: tuple[Config | None, ...]
    chosen = configs or tuple(_recorded_configs(request.configs, kernel)) or (None,)
    # A config has up to ten values, and a folder's name only so many characters: it shows what differs.
    varying = _varying(config for config in chosen if config)
    combinations = itertools.product(
        request.targets,
        enumerate(chosen),
        itertools.product(*([(sweep.name, text) for text in sweep.texts] for sweep in request.sweeps)),
        request.variants or (request.surgery,),
    )
    for target, (number, config), swept, surgery in combinations:
        point = _expanded_point(request, kernel, target, config, dict(swept), varying)
        labels = {"surgery": surgery.label} if surgery and request.variants else {}
        yield replace(point, id=_point_id(point.id, labels), surgery=surgery), number, dict(swept)


def summarize_points(points: Sequence[CompilePoint]) -> Iterator[str]:
    """Summarize many points in a few lines: the number of values of each name, and the first points."""
    by_name: dict[str, dict[str, None]] = {"target": {}}
    for point in points:
        bound = point.bound
        named = {**bound.signature, **bound.constexprs} if bound else {}
        for name, value in {"target": str(point.target), **named, **point.options}.items():
            by_name.setdefault(name, {})[value if isinstance(value, str) else spell_value(value)] = None
    for name, taken in by_name.items():
        if len(taken) > 1:
            few = list(taken)[:_FEW]
            yield f"{name}: {len(taken)} values: {', '.join(few)}{', ...' if len(taken) > len(few) else ''}"
    for point in points[:_FEW]:
        yield point.id
    if len(points) > _FEW:
        yield f"... and {len(points) - _FEW} more"


def _recorded_configs(configs: Iterable[Mapping[str, Any]], kernel: KernelSource | None) -> Iterator[Config]:
    """Split each recorded config into values of the kernel's parameters and options of the backend."""
    # TOML has no None and no dtypes: a kernels file spells them as texts.
    names = {parameter.name for parameter in kernel.parameters} if kernel else set()
    for config in configs:
        known = {name: parse_value(text) if isinstance(text, str) else text for name, text in config.items()}
        values = {name: value for name, value in known.items() if name in names}
        yield Config(values, {name: value for name, value in known.items() if name not in names})


def _varying(configs: Iterable[Config]) -> frozenset[str]:
    """Return the names whose values differ between configs."""
    tables = [{**config.values, **config.options} for config in configs]
    names = {name for table in tables for name in table}
    return frozenset(name for name in names if len({spell_value(table.get(name)) for table in tables}) > 1)


def _expanded_point(
    request: CompileRequest,
    kernel: KernelSource | None,
    target: Target,
    config: Config | None,
    swept: Mapping[str, str],
    varying: frozenset[str],
) -> CompilePoint:
    """Return the point of one combination; its id tells all that differs between points but the surgery."""
    parameters = {parameter.name for parameter in kernel.parameters} if kernel else set()
    options = dict(request.options)
    tuned: dict[str, Any] = {}
    labels = {}
    if config:
        tuned |= config.values
        # Either could be meant, and a result under the wrong one would look like the right one.
        if twice := sorted(set(options) & set(config.options)):
            raise UsageError(
                f"both a flag and the configs of @triton.autotune set {', '.join(twice)}",
                hints=[f"omit the flag; --sweep {twice[0]}=... overrides the configs"],
            )
        options |= config.options
        every = tuned | dict(config.options)
        labels = {name: spell_value(value) for name, value in every.items() if name in varying}
    options |= {name: parse_value(text) for name, text in swept.items() if name not in parameters}
    labels |= swept
    bound = None
    if kernel:
        texts = {name: text for name, text in swept.items() if name in parameters}
        bound = signature.bind(request.signature, kernel, tuned, texts)
    return CompilePoint(_point_id(target, labels), target, bound, options)


def _point_id(head: Target | str, labels: Mapping[str, str]) -> str:
    """Return a name that every file system accepts: `cuda-90-32`, `cuda-90-32,BLOCK=64,num_warps=4`."""
    full = ",".join([str(head).replace(":", "-"), *(f"{name}={text}" for name, text in labels.items())])
    name = re.sub(r"[^\w.,=+-]", "_", full)
    if name == full and len(name) <= _LONGEST:
        return name
    # The digest keeps ids apart: long labels may begin alike, and different ones may be equal once odd
    # characters are replaced.
    return f"{name[: _LONGEST - 9]}-{hashlib.sha256(full.encode()).hexdigest()[:8]}"


def _pass_run(name: str) -> tuple[str, int]:
    """Split a name and its number; 0 means all runs."""
    head, _, number = name.partition("#")
    return head, int(number or 0)
