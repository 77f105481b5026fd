"""Describe changes to a compile: passes skipped, repeated or made the last; options of LLVM and of ptxas."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tritonsmith.core.errors import UsageError
from tritonsmith.worker.messages import SurgeryRequest

_NAME = re.compile(r"([A-Za-z_][\w.-]*)(?:#([1-9]\d{0,3}))?", re.ASCII)
_OPTION = re.compile(r"-{0,2}[A-Za-z][\w.-]*(=\S*)?", re.ASCII)


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
                if not _NAME.fullmatch(name):
                    hints = ["NAME or NAME#2: tritongpu-coalesce, canonicalize#2, add_coalesce"]
                    raise UsageError(f"{flag} cannot be {name!r}", hints=hints)
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
            skip=tuple(map(_numbered, self.skip)),
            stop=(_numbered(self.stop),) if self.stop else (),
            repeat=tuple(map(_numbered, self.repeat)),
            llvm=self.llvm,
            ptxas=self.ptxas,
        )


def _numbered(name: str) -> tuple[str, int]:
    """Split a name and its number; 0 means all runs."""
    head, _, number = name.partition("#")
    return head, int(number or 0)
