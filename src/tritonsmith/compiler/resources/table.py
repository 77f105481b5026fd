"""A table row for one compiled kernel, and the columns with their units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

_IN_LINE = re.compile(r" in line \d+$")  # of PTX: it tells two points apart that have one remark
Value = int | float | str | None


@dataclass(frozen=True)
class ResourceColumn:
    """One column.

    Attributes:
        key: in JSON and CSV; ends with the unit.
        head: on the screen, above the unit.
        unit: on the screen, below the head.
    """

    key: str
    head: str
    unit: str = ""

    @property
    def title(self) -> str:
        """The head of the column on the screen."""
        return f"{self.head}\n{self.unit}" if self.unit else self.head


COLUMNS = (
    ResourceColumn("registers_per_thread", "registers", "per thread"),
    ResourceColumn("sgprs_per_wave", "SGPRs", "per wave"),
    ResourceColumn("vgprs_per_lane", "VGPRs", "per lane"),
    ResourceColumn("agprs_per_lane", "of which\nAGPRs"),
    ResourceColumn("stack_bytes", "stack", "B/thread"),
    ResourceColumn("scratch_bytes", "scratch", "B/lane"),
    ResourceColumn("spill_store_bytes", "spill\nstores", "B/thread"),
    ResourceColumn("spill_load_bytes", "spill\nloads", "B/thread"),
    ResourceColumn("sgpr_spills", "SGPRs\nspilled"),
    ResourceColumn("vgpr_spills", "VGPRs\nspilled"),
    ResourceColumn("shared_static_bytes", "static\nshared", "B/block"),
    ResourceColumn("shared_dynamic_bytes", "dynamic\nshared", "B/block"),
    ResourceColumn("lds_bytes", "LDS", "B/group"),
    ResourceColumn("barriers", "barriers"),
    ResourceColumn("constant_bytes", "constant\nbank 0", "B"),
    ResourceColumn("wave_size", "wave", "lanes"),
    ResourceColumn("threads_per_block", "threads", "per block"),
    ResourceColumn("code_bytes", "code", "B"),
    ResourceColumn("blocks_per_sm", "blocks", "per SM"),
    ResourceColumn("waves_per_simd", "waves", "per SIMD"),
    ResourceColumn("compiler_waves_per_simd", "LLVM\nsays", "waves"),
    ResourceColumn("occupancy_percent", "occupancy", "%"),
    ResourceColumn("limiter", "limited by"),
    ResourceColumn("launch", "launch"),
)
WORDS = ("limiter", "launch")  # columns with text values
LAUNCH, CAN_LAUNCH = "launch", "yes"
SPILLS = ("spill_store_bytes", "spill_load_bytes", "sgpr_spills", "vgpr_spills")
_STACK = "stack_bytes"


@dataclass(frozen=True)
class ResourceRow:
    """One compiled kernel.

    Attributes:
        kernel: name of the function.
        point: the compile, or the cache entry.
        target: `cuda:90:32`.
        options: options and constants that differ from those of other rows.
        values: by the keys of `COLUMNS`.
        instructions: instruction class to count; empty without a disassembly.
        error: reason why there are no values.
        notes: limits of the numbers.
        axes: values that a sweep varied: name to value, as text.
        remarks: remarks of ptxas on the code; None if unknown.
    """

    kernel: str
    point: str
    target: str
    options: str = ""
    values: Mapping[str, Value] = field(default_factory=dict)
    instructions: Mapping[str, int] = field(default_factory=dict)
    error: str = ""
    axes: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    remarks: Sequence[str] | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """The reason why the kernel cannot be launched, if any, and the remarks of ptxas."""
        launch = str(self.values.get(LAUNCH) or CAN_LAUNCH)
        refused = () if launch == CAN_LAUNCH else (f"cannot launch: {launch.removeprefix('no: ')}",)
        return (*refused, *(f"ptxas: {_IN_LINE.sub('', text)}" for text in self.remarks or ()))

    @property
    def backend(self) -> str:
        """The backend: `cuda` or `hip`."""
        return self.target.partition(":")[0]

    @property
    def spilled(self) -> int:
        """The sort key of `--spills`: bytes, or registers; a stack of unknown use counts as bytes."""
        known = [self.values.get(key) for key in SPILLS]
        numbers = [value for value in known if isinstance(value, int)]
        stack = self.values.get(_STACK)
        return sum(numbers) if numbers else stack if isinstance(stack, int) else 0


def spilling(rows: Iterable[ResourceRow]) -> tuple[ResourceRow, ...]:
    """Return the rows that spill, the worst first."""
    spilled = [row for row in rows if row.spilled]
    return tuple(sorted(spilled, key=lambda row: (-row.spilled, row.kernel, row.target, row.point)))


def columns(rows: Sequence[ResourceRow]) -> tuple[ResourceColumn, ...]:
    """Return the columns that at least one row has a value for."""
    return tuple(column for column in COLUMNS if any(row.values.get(column.key) is not None for row in rows))


def classes(rows: Sequence[ResourceRow], known: Sequence[str]) -> tuple[str, ...]:
    """Return the known instruction classes, in their order, that at least one row has."""
    here = {name for row in rows for name in row.instructions}
    return tuple(name for name in dict.fromkeys(known) if name in here)
