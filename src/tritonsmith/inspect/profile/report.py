"""A profile on the screen and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from tritonsmith.core import configs, untrusted
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.inspect.lint import report as lint_report
from tritonsmith.inspect.profile.measured import ProfiledKernel
from tritonsmith.inspect.profile.run import KernelProfile
from tritonsmith.inspect.show.source_lines import SourceLine

_NAME = 60  # characters of the name of a kernel that is none of Triton's
_SOURCE = 30  # characters of a line of Python, at least
_STALLS = 2  # reasons that a row shows


def blocks(found: KernelProfile) -> Iterator[Grid | Text]:
    """Kernels by time, the lines of those that have some, what the reasons mean, and findings."""
    shown = configs.load("profilers")["shown"]
    whole = sum(one.nanoseconds for one in found.kernels)
    yield tables.plain(
        "kernels, by time on the GPU",
        ["kernel", "calls", "ms", "%", "samples"],
        [
            [
                tables.clipped(one.name, _NAME),
                str(one.calls),
                f"{one.nanoseconds / 1e6:.3f}",
                _percent(one.nanoseconds, whole),
                str(one.samples or ""),
            ]
            for one in found.kernels[: shown["kernels"]]
        ],
        right=["calls", "ms", "%", "samples"],
    )
    if (left := len(found.kernels) - shown["kernels"]) > 0:
        yield Text(f"and {left} more")
    seen: Counter[str] = Counter()
    for one in found.kernels[: shown["kernels"]]:
        if one.lines:
            yield _lines(one, _codes(found), shown["lines"], seen)
    about = {row["name"]: row["about"] for row in configs.load("profilers")["stall"]}
    if seen:
        yield Text("\n".join(f"  {name}: {about[name]}" for name in about if name in seen))
    if found.findings.findings:
        yield from lint_report.blocks(found.findings)


def as_json(found: KernelProfile, profiler: str) -> dict[str, Any]:
    """Everything."""
    codes = _codes(found)
    return {
        "schema": 1,
        "profiler": profiler,
        "session": dict(found.session),
        "exit_code": found.code,
        "kernels": [
            {
                "kernel": one.name,
                "calls": one.calls,
                "nanoseconds": one.nanoseconds,
                "samples": one.samples,
                "lines": [
                    {
                        "file": line.file,
                        "line": line.number,
                        "samples": samples,
                        "stalls": dict(one.stalls[line].most_common()),
                        "findings": codes.get((one.name, line), []),
                    }
                    for line, samples in one.lines.most_common()
                ],
            }
            for one in found.kernels
        ],
        "findings": lint_report.as_json(found.findings),
        "notes": list(found.notes),
    }


def _lines(one: ProfiledKernel, codes: Mapping[Any, list[str]], most: int, seen: Counter[str]) -> Grid:
    """The lines on which a kernel was sampled most; `seen` gets the reasons that are shown."""
    total, rows = one.samples, []
    for line, samples in one.lines.most_common(most):
        stalls = one.stalls[line].most_common(_STALLS)
        known = sum(one.stalls[line].values())
        told = ", ".join(f"{name} {_percent(number, known)}" for name, number in stalls if number)
        seen.update(name for name, number in stalls if number)
        place = f"{Path(line.file).name}:{line.number}"
        rows.append(
            [place, _percent(samples, total), told, " ".join(codes.get((one.name, line), [])), _text(line)]
        )
    return tables.plain(
        f"lines of {one.name}: {total} samples",
        ["line", "%", "stalled, % of its stalls", "finding", "source"],
        rows,
        right=["%"],
        cut={"source": _SOURCE},
        spare=["source"],
    )


def _codes(found: KernelProfile) -> dict[tuple[str, SourceLine], list[str]]:
    """Codes of findings, by kernel and line."""
    codes: dict[tuple[str, SourceLine], list[str]] = {}
    for one in found.findings.findings:
        if one.origin and one.rule.code not in codes.setdefault((one.kernel, one.origin), []):
            codes[one.kernel, one.origin].append(one.rule.code)
    return codes


def _text(line: SourceLine) -> str:
    lines = untrusted.text_if_any(Path(line.file)).splitlines()
    return lines[line.number - 1].strip() if 0 < line.number <= len(lines) else ""


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}" if whole else ""
