"""Convert layouts with an interpreter's Triton, and show them: as tables, JSON and pictures.

For shared memory, they come with the bank conflicts of NVIDIA's GPUs, for plain loads and stores of one warp.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from textwrap import wrap
from typing import Any

from tritonsmith.compiler import call
from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.inspect import resources
from tritonsmith.ir.layouts import Element, LayoutType, LinearLayout, MemoryAccess, WrittenType
from tritonsmith.worker.messages import LayoutRequest, LayoutRow


@dataclass(frozen=True)
class BankAccess:
    """An access of one warp to shared memory.

    Attributes:
        what: the access in words.
        width: the bytes per lane at once.
        instructions: the number of instructions of the warp.
        wavefronts: the number of wavefronts that they take.
        least: the number of wavefronts that they would take without conflicts.
    """

    what: str
    width: int
    instructions: int
    wavefronts: int
    least: int

    @property
    def ways(self) -> float:
        """The `n` of an `n`-way conflict: wavefronts taken per wavefront needed."""
        return self.wavefronts / self.least


def accesses_along(shared: LinearLayout, bits: int) -> Iterator[BankAccess]:
    """Yield accesses by adjacent lanes along each dimension, one element each."""
    # Without a layout of threads, the two access patterns that every kernel has: along rows and columns.
    lanes = configs.load("layouts")["banks"]["lanes"]
    for dim in range(len(shared.shape)):
        if shared.shape[dim] < lanes:
            continue
        elements = [
            tuple(lane if at == dim else 0 for at in range(len(shared.shape))) for lane in range(lanes)
        ]
        yield _access(f"{lanes} elements along dim{dim}", shared, [[[element] for element in elements]], bits)


def access_by(shared: LinearLayout, threads: LinearLayout, bits: int, what: str) -> BankAccess:
    """Return the access of the first warp of a layout, by the widest vectors that both layouts allow."""
    # Triton chooses the widest vectors, too. Other warps differ from the first by an XOR with a constant,
    # which moves all lanes alike.
    order, width = _vectors(shared, threads, bits)
    registers = [
        sum((number >> at & 1) << bit for at, bit in enumerate(order)) for number in range(1 << len(order))
    ]
    instructions = []
    for first in range(0, len(registers), width):
        group = registers[first : first + width]
        lanes = range(threads.size("lane"))
        instructions.append([[_element_of(threads, lane, register) for register in group] for lane in lanes])
    return _access(what, shared, instructions, bits)


def _element_of(threads: LinearLayout, lane: int, register: int) -> Element:
    values = {"lane": lane, "register": register}
    return threads.element(tuple(values.get(name, 0) for name in threads.inputs))


def _vectors(shared: LinearLayout, threads: LinearLayout, bits: int) -> tuple[list[int], int]:
    """Return the bits of the register's number, those of the vector first; and the elements of a vector."""
    # A vector is made of registers whose elements are neighbours in shared memory, from the first element on.
    offsets = [shared.offset(tuple(basis)) for basis in threads.bases["register"]]
    chosen: list[int] = []
    widest = configs.load("layouts")["banks"]["widest"] * 8 // bits
    while 1 << len(chosen) < widest and 1 << len(chosen) in offsets:
        chosen.append(offsets.index(1 << len(chosen)))
    rest = [bit for bit, offset in enumerate(offsets) if offset and bit not in chosen]  # offset 0: a copy
    return [*chosen, *rest], 1 << len(chosen)


def _access(
    what: str, shared: LinearLayout, instructions: Sequence[Sequence[Sequence[Element]]], bits: int
) -> BankAccess:
    """Count the wavefronts of instructions: lists of lanes, each a list of its vector's elements."""
    banks = configs.load("layouts")["banks"]
    width = max(1, len(instructions[0][0]) * bits // 8)
    # A request serves so many bytes: lanes with wide vectors take turns, and those in one turn cannot
    # conflict with those in another.
    together = min(banks["lanes"], banks["request"] // max(width, banks["bytes"]))
    wavefronts = least = 0
    for lanes in instructions:
        for first in range(0, len(lanes), together):
            # A set: lanes that read the same word share it, which is no conflict.
            words = {
                shared.offset(element) * bits // 8 // banks["bytes"]
                for lane in lanes[first : first + together]
                for element in lane
            }
            hits = [0] * banks["count"]
            for word in words:
                hits[word % banks["count"]] += 1
            wavefronts += max(hits)
            least += -(-len(words) // banks["count"])
    return BankAccess(what, width, len(instructions), wavefronts, least)


@dataclass(frozen=True)
class ConvertedLayout:
    """A type, and its layout.

    Attributes:
        type: the type, of a tensor or of memory.
        linear: its layout; None if there is an error.
        error: the reason why Triton does not convert it.
    """

    type: LayoutType
    linear: LinearLayout | None
    error: str = ""


def convert(types: Sequence[LayoutType], python: Path, space: Workspace) -> tuple[ConvertedLayout, ...]:
    """Convert layouts, each on its own: an assertion of the compiler is an error of that layout only.

    Raises:
        FactError: the interpreter has no Triton, or an older one than 3.6.
    """
    # In a process per layout: a bad one ends in an assertion of LLVM, which aborts the process.
    timeout = configs.load("layouts")["timeout"]
    request = LayoutRequest(tuple(layout.text for layout in types), timeout)
    try:
        rows = call.ask(
            python, request, LayoutRow, space, timeout=timeout * (1 + len(types)), count=len(types)
        )
    except call.UnansweredError as error:
        raise FactError(
            "cannot convert layouts with this Triton",
            where=python,
            why=error.why,
            hints=[
                f"check that this works: {python} -c 'import triton'",
                "or use another Triton: --env NAME, --python PATH",
            ],
        ) from error
    return tuple(map(_converted, types, rows))


def _converted(layout: LayoutType, row: LayoutRow) -> ConvertedLayout:
    if row.error:
        return ConvertedLayout(layout, None, row.error)
    bases = {name: tuple(map(tuple, values)) for name, values in row.bases.items()}
    return ConvertedLayout(layout, LinearLayout(row.shape, bases, row.padding))


_GRID_MOST = 16  # elements that the grid shows in each direction
_CONFLICTS = "Bank conflicts of one warp, by plain loads and stores"


def require_linear(converted: ConvertedLayout, shape: str) -> LinearLayout:
    """Return the linear layout of a converted one, whose shape was given as a text.

    Raises:
        FactError: Triton does not convert it.
    """
    if converted.linear is None:
        hints = [f"--shape {shape} must have as many dimensions as the layout"]
        hints += ["another Triton may take it: --env, --python"]
        raise FactError(f"Triton does not convert {converted.type.layout}", why=converted.error, hints=hints)
    return converted.linear


def describe(linear: LinearLayout) -> str:
    """Describe in words how the elements are distributed, and how often each is held."""
    copies = linear.copies
    held = "each element is held once" if copies == 1 else f"each element is held {copies} times"
    if not linear.distributed:
        sizes = " x ".join(f"{linear.size(name)} {name}s" for name in linear.inputs if linear.size(name) > 1)
        return f"{sizes}; {held}"
    parts = [f"{linear.size(name)} {name}s" for name in ("block", "warp") if linear.size(name) > 1]
    parts += [f"{linear.size('lane')} lanes", f"{linear.size('register')} registers of each"]
    return f"{' x '.join(parts)}; {held}"


def basis_table(linear: LinearLayout) -> Grid:
    """Return a table of what each bit of a register's, lane's or warp's number adds to the element."""
    heads = ["input", "bit", *(f"dim{at}" for at in range(len(linear.shape)))]
    rows = [
        [name, str(1 << bit), *map(str, basis)]
        # From the fastest input to the slowest, as Triton prints a linear layout: registers, lanes, warps,
        # blocks.
        for name in reversed(linear.inputs)
        for bit, basis in enumerate(linear.bases[name])
    ]
    return tables.plain("Bases (combined by XOR)", heads, rows, right=heads[1:], keys=2)


def grid(linear: LinearLayout, width: int) -> Grid:
    """Return a grid of the first elements with their holders; of more than two dimensions, the last two.

    Args:
        linear: the layout.
        width: the width of the screen; as many columns are shown as fit, a power of two.
    """
    leading = (0,) * (len(linear.shape) - 2)
    *_, rows, columns = (1, *linear.shape)
    shown = [
        [
            linear.spelled(((*leading, row) if len(linear.shape) > 1 else ()) + (column,))
            for column in range(min(columns, _GRID_MOST))
        ]
        for row in range(min(rows, _GRID_MOST))
    ]
    cell = max(map(len, chain.from_iterable(shown))) + 2
    # A power of two, because layouts repeat at powers of two: a cut elsewhere hides the pattern.
    fitting = min(len(shown[0]), 1 << max(1, (width - 4) // cell).bit_length() - 1)
    what = "row:column" if "row" in linear.bases else "thread:register" if linear.distributed else "offset"
    title = f"Who holds which element ({what})"
    if rows > len(shown) or columns > fitting:
        title += f": rows 0 to {len(shown) - 1} of {rows}, columns 0 to {fitting - 1} of {columns}"
    heads = ["", *map(str, range(fitting))]
    cells = [[str(row), *places[:fitting]] for row, places in enumerate(shown)]
    return tables.plain(title, heads, cells, right=heads)


def bank_table(accesses: Iterable[BankAccess]) -> Grid:
    """Return a table of the wavefronts that accesses take, and need."""
    rows = [[access.what, *_figures(access)] for access in accesses]
    heads = ["access", "bytes per lane", "wavefronts", "at least", "conflict"]
    return tables.plain(_CONFLICTS, heads, rows, right=heads[1:4])


def accesses(memory: ConvertedLayout, threads: ConvertedLayout | None) -> list[BankAccess]:
    """Return the accesses to a layout of shared memory: by a layout of threads if there is one."""
    if memory.linear is None or memory.type.kind != "shared memory":
        return []
    if threads and threads.linear:
        if not _nvidia(threads.linear):
            return []
        return [access_by(memory.linear, threads.linear, memory.type.bits, "by these threads")]
    return list(accesses_along(memory.linear, memory.type.bits))


def layout_table(written: Iterable[WrittenType], converted: Mapping[LayoutType, ConvertedLayout]) -> Grid:
    """Return a table of the layouts of a module."""
    # One row per layout and shape: a module has dozens of tensors that differ only in their elements.
    elements: dict[tuple[str, LayoutType], dict[str, None]] = {}
    for entry in written:
        elements.setdefault((entry.name, entry.type), {})[entry.element] = None
    rows = []
    for (name, layout), element_types in elements.items():
        head = [name, "x".join(map(str, layout.shape)), ", ".join(element_types), layout.kind]
        if linear := converted[layout].linear:
            counts = [str(linear.size(of)) if linear.distributed else "" for of in ("warp", "register")]
            rows.append([*head, *counts, str(linear.copies), ""])
        else:
            # Only the first line: an assertion of LLVM comes with a stack trace.
            rows.append([*head, "", "", "", converted[layout].error.splitlines()[0]])
    heads = ["layout", "shape", "of", "where", "warps", "per thread", "copies"]
    if any(row[-1] for row in rows):
        heads.append("not converted")
    return tables.plain("Layouts", heads, [row[: len(heads)] for row in rows], right=heads[4:7], keys=2)


def access_table(
    accesses: Sequence[MemoryAccess], converted: Mapping[LayoutType, ConvertedLayout]
) -> tuple[Grid | None, tuple[str, ...]]:
    """Count the bank conflicts of a module's loads and stores.

    Returns:
        A table, None if nothing is counted; and the reasons why other accesses are not counted.
    """
    rows, others = [], Counter[str]()
    for access in accesses:
        if why := _uncounted(access, converted):
            others[why] += 1
        else:
            counts = _counted_access(access, converted)
            rows.append(
                [
                    str(access.line),
                    access.operation,
                    access.memory.name,
                    access.tensor.name,
                    *_figures(counts),
                ]
            )
    heads = ["line", "operation", "memory", "threads", "bytes per lane", "wavefronts", "at least", "conflict"]
    right = [heads[0], *heads[4:7]]
    table = tables.plain(_CONFLICTS, heads, rows, right=right, keys=2) if rows else None
    total = len(accesses)
    return table, tuple(
        f"{_CONFLICTS}: {few} of {total} accesses not counted: {why}" for why, few in others.items()
    )


def access_json(access: MemoryAccess, converted: Mapping[LayoutType, ConvertedLayout]) -> dict[str, Any]:
    """Return a load or store as JSON data; `uncounted` is the reason if there are no figures."""
    row: dict[str, Any] = {"line": access.line, "operation": access.operation}
    row |= {"memory": access.memory.type.text, "tensor": access.tensor.type.text}
    if why := _uncounted(access, converted):
        return {**row, "uncounted": why}
    return {**row, **_banks(_counted_access(access, converted))}


def _uncounted(access: MemoryAccess, converted: Mapping[LayoutType, ConvertedLayout]) -> str:
    """Return the reason why bank conflicts of an access are not counted; empty if they are."""
    memory, tensor = converted[access.memory.type].linear, converted[access.tensor.type].linear
    if memory is None or tensor is None:
        return "a layout is not converted"
    for row in configs.load("layouts")["banks"]["other"]:
        # ldmatrix and its like read rows for other lanes than the layout says, so the count would be
        # wrong.
        if re.match(row["threads"], access.tensor.type.layout) and access.memory.type.bits <= row["bits"]:
            return str(row["why"])
    if not _nvidia(tensor):
        return "conflicts are counted for NVIDIA's banks and warps only"
    if len(memory.shape) != len(tensor.shape):
        return "memory and threads have layouts of different shapes"
    return ""


def _counted_access(access: MemoryAccess, converted: Mapping[LayoutType, ConvertedLayout]) -> BankAccess:
    memory, tensor = converted[access.memory.type].linear, converted[access.tensor.type].linear
    assert memory is not None  # noqa: S101 - `_uncounted` was asked before
    assert tensor is not None  # noqa: S101
    return access_by(memory, tensor, access.memory.type.bits, f"{access.operation} of line {access.line}")


def as_json(converted: ConvertedLayout, accesses: Iterable[BankAccess] = ()) -> dict[str, Any]:
    """Return a layout as JSON data."""
    head: dict[str, Any] = {
        "layout": converted.type.layout,
        "type": converted.type.text,
        "where": converted.type.kind,
        "error": converted.error,
    }
    if converted.linear is None:
        return head
    linear = converted.linear
    rest = {"shape": linear.shape, "bases": linear.bases, "padding": linear.padding, "copies": linear.copies}
    return {**head, **rest, "banks": [_banks(access) for access in accesses]}


def _banks(access: BankAccess) -> dict[str, Any]:
    return {**vars(access), "ways": access.ways}


def _figures(access: BankAccess) -> Iterator[str]:
    yield from (str(access.width), str(access.wavefronts), str(access.least))
    yield "none" if access.wavefronts == access.least else f"{access.ways:.3g}-way"


def _nvidia(threads: LinearLayout) -> bool:
    # A layout does not name its target; 64 lanes are AMD's. Of AMD's GPUs those with 32 lanes cannot be told
    # from NVIDIA's here.
    return bool(threads.size("lane") == configs.load("layouts")["banks"]["lanes"])


_CELL = 0.34  # inches
_MOST_DRAWN = 128  # elements that a picture shows in each direction
_MOST_LABELLED = 64  # up to here a cell has room for its holder
_TITLE = 90  # characters of a line
_LIGHT = 12  # colours that the lightest map has
_DARKER = 0.82  # of the colour of every second thread


def write_picture(converted: ConvertedLayout, path: Path) -> None:
    """Draw the last two dimensions of a layout, and write the picture.

    Raises:
        UsageError: it has too many elements to see.
        SmithError: the file cannot be written.
    """
    linear = converted.linear
    assert linear is not None  # noqa: S101 - the caller has reported the error
    *_, rows, columns = (1, *linear.shape)
    if max(rows, columns) > _MOST_DRAWN:
        hints = [
            f"--shape {min(rows, _MOST_DRAWN)}x{min(columns, _MOST_DRAWN)} shows the pattern: it repeats"
        ]
        raise UsageError(f"--plot draws up to {_MOST_DRAWN} elements in each direction", hints=hints)
    from matplotlib import colormaps  # noqa: PLC0415 - takes a second, and only a plot needs it
    from matplotlib.figure import Figure  # noqa: PLC0415

    # Not pyplot: it keeps every figure until it is closed, and chooses a backend by the display.
    figure = Figure(figsize=(columns * _CELL + 1.2, rows * _CELL + 1.4), layout="constrained")
    axes = figure.subplots()
    elements = [[_element_at(linear, row, column) for column in range(columns)] for row in range(rows)]
    numbers = [[_colour_group(linear, converted.type.bits, element) for element in line] for line in elements]
    most = 1 + max(group for line in numbers for group, _ in line)
    colours = colormaps["Set3"] if most <= _LIGHT else colormaps["Spectral"].resampled(most)
    axes.imshow([[_shade(colours(group % most), odd=odd) for group, odd in line] for line in numbers])
    if max(rows, columns) <= _MOST_LABELLED:
        for row, line in enumerate(elements):
            for column, element in enumerate(line):
                text = linear.spelled(element).replace("|", "\n")
                size = 6.5 / max(1, text.count("\n") + 1, len(text.partition("\n")[0]) / 6)
                axes.text(column, row, text, ha="center", va="center", fontsize=size)
    what = "warp, shade: thread" if linear.distributed else "bank" if "offset" in linear.bases else "row"
    axes.set_title("\n".join([*wrap(converted.type.text, _TITLE), f"colour: {what}"]), fontsize=8)
    axes.tick_params(labelsize=6)
    resources.save_figure(figure, path)


def _element_at(linear: LinearLayout, row: int, column: int) -> tuple[int, ...]:
    if len(linear.shape) == 1:
        return (column,)
    return (*(0,) * (len(linear.shape) - 2), row, column)


def _colour_group(linear: LinearLayout, bits: int, element: tuple[int, ...]) -> tuple[int, bool]:
    """Return the number of the first warp that holds an element, or of its bank; and True for an odd lane."""
    place = dict(zip(linear.inputs, linear.holders(element)[0], strict=True))
    if linear.distributed:
        return place["warp"] + linear.size("warp") * place.get("block", 0), place["lane"] % 2 == 1
    if "offset" not in place:
        return place["row"], False
    facts = configs.load("layouts")["banks"]
    return linear.offset(element) * bits // 8 // facts["bytes"] % facts["count"], False


def _shade(colour: tuple[float, ...], *, odd: bool) -> tuple[float, ...]:
    return tuple(part * (_DARKER if odd else 1) for part in colour[:3])
