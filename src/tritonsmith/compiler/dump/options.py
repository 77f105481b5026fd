"""Choose what a compile prints, and the environment variables that request it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import configs


@dataclass(frozen=True)
class Choices:
    """A choice of what is printed.

    Attributes:
        llvm: the IR after LLVM's passes, and their durations.
        backend: PTX and AMD's assembly.
        line_info: locations.
        reproducers: write a reproducer for each pipeline.
    """

    llvm: bool = False
    backend: bool = False
    line_info: bool = True
    reproducers: bool = False

    def environ(self, out: Path) -> dict[str, str | None]:
        """Return the variables to set; None marks one that must be unset."""
        table = configs.load("ir-dump")["variables"]
        enabled = {
            "always": True,
            "llvm": self.llvm,
            "backend": self.backend,
            "no-line-info": not self.line_info,
            "reproducers": self.reproducers,
        }
        chosen: dict[str, str | None] = dict.fromkeys(table["off"])
        for name in filter(enabled.get, enabled):
            chosen |= {key: value.format(out=out) for key, value in table[name].items()}
        return chosen
