"""Show a profile on the screen and as JSON."""

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
from tritonsmith.inspect.profile.profilers import ProfiledKernel
from tritonsmith.inspect.profile.run import KernelProfile
from tritonsmith.inspect.show.source_lines import SourceLine

_NAME = 60  # characters of the name of a kernel that is none of Triton's
_SOURCE = 30  # characters of a line of Python, at least
_STALLS = 2  # reasons that a row shows


def blocks(profile: KernelProfile) -> Iterator[Grid | Text]:
    """Yield the kernels by time, their sampled lines, an explanation of the stall reasons, and findings."""
    shown = configs.load("profilers")["shown"]
    whole = sum(kernel.nanoseconds for kernel in profile.kernels)
    yield tables.plain(
        "kernels, by time on the GPU",
        ["kernel", "calls", "ms", "%", "samples"],
        [
            [
                tables.clipped(kernel.name, _NAME),
                str(kernel.calls),
                f"{kernel.nanoseconds / 1e6:.3f}",
                _percent(kernel.nanoseconds, whole),
                str(kernel.samples or ""),
            ]
            for kernel in profile.kernels[: shown["kernels"]]
        ],
        right=["calls", "ms", "%", "samples"],
    )
    if (left := len(profile.kernels) - shown["kernels"]) > 0:
        yield Text(f"and {left} more")
    shown_reasons: Counter[str] = Counter()
    for kernel in profile.kernels[: shown["kernels"]]:
        if kernel.lines:
            yield _lines(kernel, _codes(profile), shown["lines"], shown_reasons)
    about = {row["name"]: row["about"] for row in configs.load("profilers")["stall"]}
    if shown_reasons:
        yield Text("\n".join(f"  {name}: {about[name]}" for name in about if name in shown_reasons))
    if profile.findings.findings:
        yield from lint_report.blocks(profile.findings)


def as_json(profile: KernelProfile, profiler: str) -> dict[str, Any]:
    """Return the profile as JSON data."""
    codes = _codes(profile)
    return {
        "schema": 1,
        "profiler": profiler,
        "session": dict(profile.session),
        "exit_code": profile.code,
        "kernels": [
            {
                "kernel": kernel.name,
                "calls": kernel.calls,
                "nanoseconds": kernel.nanoseconds,
                "samples": kernel.samples,
                "lines": [
                    {
                        "file": line.file,
                        "line": line.number,
                        "samples": samples,
                        "stalls": dict(kernel.stalls[line].most_common()),
                        "findings": codes.get((kernel.name, line), []),
                    }
                    for line, samples in kernel.lines.most_common()
                ],
            }
            for kernel in profile.kernels
        ],
        "findings": lint_report.as_json(profile.findings),
        "notes": list(profile.notes),
    }


def _lines(kernel: ProfiledKernel, codes: Mapping[Any, list[str]], most: int, seen: Counter[str]) -> Grid:
    """Return a table of a kernel's lines with the most samples; add the shown reasons to `seen`."""
    total, rows = kernel.samples, []
    for line, samples in kernel.lines.most_common(most):
        stalls = kernel.stalls[line].most_common(_STALLS)
        known = sum(kernel.stalls[line].values())
        stalled = ", ".join(f"{name} {_percent(number, known)}" for name, number in stalls if number)
        seen.update(name for name, number in stalls if number)
        place = f"{Path(line.file).name}:{line.number}"
        rows.append(
            [
                place,
                _percent(samples, total),
                stalled,
                " ".join(codes.get((kernel.name, line), [])),
                _text(line),
            ]
        )
    return tables.plain(
        f"lines of {kernel.name}: {total} samples",
        ["line", "%", "stalled, % of its stalls", "finding", "source"],
        rows,
        right=["%"],
        cut={"source": _SOURCE},
        spare=["source"],
    )


def _codes(profile: KernelProfile) -> dict[tuple[str, SourceLine], list[str]]:
    """Return the codes of findings, by kernel and line."""
    codes: dict[tuple[str, SourceLine], list[str]] = {}
    for finding in profile.findings.findings:
        if finding.origin and finding.rule.code not in codes.setdefault((finding.kernel, finding.origin), []):
            codes[finding.kernel, finding.origin].append(finding.rule.code)
    return codes


def _text(line: SourceLine) -> str:
    lines = untrusted.text_if_any(Path(line.file)).splitlines()
    return lines[line.number - 1].strip() if 0 < line.number <= len(lines) else ""


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}" if whole else ""
