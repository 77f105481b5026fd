"""Describe the GPU resources of a compiled kernel for the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tritonsmith.compiler.dump.binaries import Binary
from tritonsmith.compiler.resources.table import COLUMNS

_Values = Mapping[str, object]


def gist(binary: Binary) -> str:
    """Return the most important numbers, in one line."""
    if binary.error:
        return f"resources unknown: {binary.error}"
    values = binary.values
    words = _amd(values) if "vgprs_per_lane" in values else _nvidia(values)
    return " \u00b7 ".join(words)


def table(binary: Binary) -> list[tuple[str, str, str]]:
    """Return all numbers with their names and units."""
    return [
        (column.head.replace("-\n", "").replace("\n", " "), _spelled(binary.values[column.key]), column.unit)
        for column in COLUMNS
        if binary.values.get(column.key) is not None
    ]


def _nvidia(values: _Values) -> Iterator[str]:
    yield f"{_of(values, 'registers_per_thread')} registers"
    stores, loads = values.get("spill_store_bytes"), values.get("spill_load_bytes")
    if stores is None or loads is None:
        yield "spills unknown"
    else:
        yield f"spills {stores} B stored, {loads} B loaded" if stores or loads else "no spills"
    parts = (values.get("shared_static_bytes"), values.get("shared_dynamic_bytes"))
    yield f"{_size(sum(part for part in parts if isinstance(part, int)))} shared"
    yield from _occupancy(values)


def _amd(values: _Values) -> Iterator[str]:
    yield f"{_of(values, 'vgprs_per_lane')} VGPRs, {_of(values, 'sgprs_per_wave')} SGPRs"
    lanes, waves = values.get("vgpr_spills"), values.get("sgpr_spills")
    if lanes is None or waves is None:
        yield "spills unknown"
    else:
        yield f"{lanes} VGPRs, {waves} SGPRs spilled" if lanes or waves else "no spills"
    lds = values.get("lds_bytes")
    yield f"{_size(lds) if isinstance(lds, int) else '?'} LDS"
    yield from _occupancy(values)


def _occupancy(values: _Values) -> Iterator[str]:
    percent = values.get("occupancy_percent")
    if percent is not None:
        yield f"{_spelled(percent)} % occupancy"


def _of(values: _Values, key: str) -> str:
    value = values.get(key)
    return "?" if value is None else _spelled(value)


def _size(count: int) -> str:
    return f"{count / 1024:g} KiB" if count and not count % 256 else f"{count} B"


def _spelled(value: object) -> str:
    return f"{round(value, 2):g}" if isinstance(value, float) else str(value)
