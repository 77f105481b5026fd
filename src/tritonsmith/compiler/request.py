"""A compile request: a kernel, its targets, values and options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritonsmith.compiler import values
from tritonsmith.compiler.surgery import Surgery
from tritonsmith.compiler.targets import Target
from tritonsmith.core import command_line
from tritonsmith.core.errors import UsageError

AUTOTUNE = "autotune"  # `--sweep autotune`


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
        options: of the backend, name to value.
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
        named = f"{self.listed}:{self.name}" if self.configs else f"{self.file}:{self.kernel}"
        sweeps = [f"{sweep.name}={','.join(sweep.texts)}" for sweep in self.sweeps]
        return command_line.arguments(
            named if self.kernel else self.file,
            signature=self.signature,
            target=[target.asked_again() for target in self.targets],
            option=[f"{name}={values.spell(value)}" for name, value in self.options.items()],
            sweep=[*sweeps, *([AUTOTUNE] if self.autotune else ())],
            stage=self.stages,
            **(self.surgery.flags() if self.surgery else {}),
            **more,
        )


def kernel_of(text: str) -> tuple[Path, str]:
    """Split `FILE[:KERNEL]` into file and kernel; an existing file may have a colon in its name.

    `make.k` is a kernel that the function `make` defines.

    Raises:
        UsageError: nothing is named.
    """
    name, colon, kernel = text.rpartition(":")
    words = all(part.isidentifier() for part in kernel.split("."))
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
    if not all(part.isidentifier() for part in words) or name.endswith((".py", ".ipynb", ".ttir", ".ttgir")):
        return "", ""
    return ("", "") if Path(name).is_file() else (name, kernel)


def options_of(texts: Iterable[str]) -> dict[str, Any]:
    """Parse options from `name=value`.

    Raises:
        UsageError: one has no name or no value.
    """
    options = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier() or not value.strip():
            raise UsageError(
                f"--option cannot be {text!r}", hints=["give a name and a value: --option maxnreg=128"]
            )
        options[name.strip()] = values.parse(value.strip())
    return options


def sweeps_of(texts: Iterable[str]) -> tuple[tuple[Sweep, ...], bool]:
    """Parse sweeps from `name=a,b,c`; the second value is True if `autotune` is among them.

    Raises:
        UsageError: one has no name or no values, or occurs twice.
    """
    sweeps: dict[str, Sweep] = {}
    autotune = False
    for text in texts:
        if text.strip() == AUTOTUNE:
            autotune = True
            continue
        name, equals, rest = text.partition("=")
        name = name.strip()
        parts = tuple(part for part in values.split(rest) if part)
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
