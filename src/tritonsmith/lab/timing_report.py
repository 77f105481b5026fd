"""What measured times mean: medians, intervals, verdicts; as tables, JSON and a picture.

Samples of one round belong together: what drifts, drifts for all binaries of the round alike. So a binary is
compared with the first within each round. The interval of the median of these ratios is the exact one, by
order statistics, which assumes nothing about how times are distributed. The first binary is in each round
twice: what its two entries differ by is noise.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tritonsmith.core.errors import FactError, SmithError, UndecidedError, UsageError
from tritonsmith.core.text import counted
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.inspect.resources import save_figure
from tritonsmith.lab import terms
from tritonsmith.lab.terms import Limit
from tritonsmith.worker.time_binaries import CONTROL

Standing = Literal["first", "same", "faster", "slower", "wrong", "failed", "undecided"]
_TAIL = 0.025  # of each side: an interval of 95 %
_PERCENT = 100.0
_CLOCK = 0.05  # of the clock: more than it may change between rounds
# Reasons of NVML for lower clocks that a run cannot be trusted with. A power cap is the usual state of a GPU
# under a large matrix product.
_SLOWED = frozenset({"hardware slowdown", "thermal slowdown", "hardware thermal slowdown", "power brake"})
METRIC = "time"
_WORDS: Mapping[Standing, str] = {
    "first": "",
    "same": "cannot be told apart",
    "faster": "faster",
    "slower": "slower",
    "wrong": "wrong result",
    "failed": "failed",
    "undecided": "not decided",
}


@dataclass(frozen=True)
class Interval:
    """A number, and where it lies with 95 %."""

    middle: float
    low: float
    high: float

    @property
    def has_one(self) -> bool:
        """Report whether 1 is within."""
        return self.low <= 1 <= self.high


@dataclass(frozen=True)
class BinaryTime:
    """The times of one binary.

    Attributes:
        label: its name in tables.
        standing: compared with the first.
        median: milliseconds; 0 where nothing was measured.
        quartiles: of the rounds' medians, in milliseconds.
        ratio: to the first; 0 without times.
        output: how its outputs differ from the first's, in words; empty if they are the same bits.
        why: the reason of a failure.
        figures: what is known about the code.
        rounds: the median of each round, in milliseconds.
    """

    label: str
    standing: Standing
    median: float = 0.0
    quartiles: tuple[float, float] = (0.0, 0.0)
    ratio: Interval = Interval(0.0, 0.0, 0.0)
    output: str = ""
    why: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)
    rounds: tuple[float, ...] = ()

    @property
    def words(self) -> str:
        """The verdict in words."""
        return _WORDS[self.standing]


@dataclass(frozen=True)
class KernelTimes:
    """The times of all binaries of a kernel.

    Attributes:
        kernel: its name.
        binaries: in the order of the plan; the first is what others are compared with.
        noise: what the first differs from itself by, as a part of its time.
        notes: what limits the measurement.
        unsure: the reason why nothing can be said about times; empty if something can.
    """

    kernel: str
    binaries: tuple[BinaryTime, ...]
    noise: float = 0.0
    notes: tuple[str, ...] = ()
    unsure: str = ""


def read(
    times: Mapping[str, Any], figures: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> list[KernelTimes]:
    """Return the times of each kernel.

    Args:
        times: what the worker wrote.
        figures: of the code, by kernel and label.

    Raises:
        FactError: it is something else: the file may come from another machine.
    """
    try:
        return [of_kernel(row, figures.get(row["name"], {})) for row in times["kernels"]]
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, StopIteration) as error:
        why = f"{type(error).__name__}: {error}"
        hints = ["measure again: invoke kernel.time DIR"]
        raise FactError("these times are incomplete or malformed", why=why, hints=hints) from error


def of_kernel(row: Mapping[str, Any], figures: Mapping[str, Mapping[str, Any]]) -> KernelTimes:
    """Return the times of a kernel from a row of the worker's."""
    result = row.get("result") or {}
    rounds: Sequence[Mapping[str, Sequence[float]]] = result.get("rounds") or ()
    failed: dict[str, str] = dict(row.get("failed") or {})
    name = str(row["name"])
    if not rounds:
        why = row.get("error") or "no binary could be run"
        labels = list(dict.fromkeys([*figures, *failed]))
        binaries = [
            BinaryTime(label, "failed", why=failed.get(label, why), figures=figures.get(label, {}))
            for label in labels
        ]
        return KernelTimes(name, tuple(binaries), unsure=str(why))
    medians = {label: [statistics.median(each[label]) for each in rounds] for label in rounds[0]}
    first = str(result["first"])
    # Two loads of one file may lie differently in memory: noise of a kind that rounds alone do not show.
    control = ratio_of(medians[CONTROL], medians[first])
    noise = max(abs(control.low - 1), abs(control.high - 1))
    unsure = _unsteady(result.get("states") or ())
    outputs = row.get("outputs") or {}
    compared = row.get("compared") or {}
    order = [first, *(label for label in medians if label not in (first, CONTROL))]
    # In the order of the plan; that of a round is random.
    if figures:
        order = [first, *(label for label in figures if label in medians and label != first)]
    measured = []
    for label in order:
        output, wrong = _difference(compared.get(label) or ())
        ratio = ratio_of(medians[label], medians[first])
        standing = _standing(ratio, noise)
        if label == first:
            standing = "first"
        elif wrong:
            standing = "wrong"
        elif unsure:
            standing = "undecided"
        low, _, high = statistics.quantiles(medians[label], n=4)
        measured.append(
            BinaryTime(
                label,
                standing,
                statistics.median(medians[label]),
                (low, high),
                ratio,
                output,
                figures=figures.get(label, {}),
                rounds=tuple(medians[label]),
            )
        )
    measured += [
        BinaryTime(label, "failed", why=why, figures=figures.get(label, {})) for label, why in failed.items()
    ]
    return KernelTimes(name, tuple(measured), noise, tuple(_notes(result, outputs)), unsure)


def _standing(ratio: Interval, noise: float) -> Standing:
    """Return what a ratio says: nothing if its interval has 1, or the first differs as much from itself."""
    if ratio.has_one or abs(ratio.middle - 1) <= noise:
        return "same"
    return "faster" if ratio.middle < 1 else "slower"


def ratio_of(times: Sequence[float], first: Sequence[float]) -> Interval:
    """Return the ratio of two binaries' times, from their medians of the same rounds."""
    return median_of([time / base for time, base in zip(times, first, strict=True)])


def median_of(values: Sequence[float]) -> Interval:
    """Return the median of some values, and its interval of at least 95 %; of all values if there are few."""
    # Each value is below the true median with a probability of 1/2: binomials say between which two it lies.
    # Of 1,500 drawn comparisons of 30 rounds, 94.8 % had the truth in it.
    count = len(values)
    tail, cut = 0.5**count, 0
    while (tail := tail + math.comb(count, cut + 1) * 0.5**count) <= _TAIL:
        cut += 1
    rows = sorted(values)
    return Interval(statistics.median(rows), rows[cut], rows[-1 - cut])


def _difference(rows: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
    """Return how outputs differ from the first's, and whether by more than the tolerance."""
    if not rows:
        return "", False
    # Outputs of several types are compared by their own largest numbers.
    worst = max(rows, key=lambda row: (not row["within"], row["largest"] / (row["scale"] or 1)))
    about = f"{worst['buffer']} by {worst['largest']:.2g} of {worst['scale']:.2g}"
    return about, not worst["within"]


def _unsteady(states: Sequence[Mapping[str, Any]]) -> str:
    """Return why the GPU was not steady; empty if it was, or if nothing is known."""
    reasons = sorted({word for state in states for word in state.get("reasons", ())} & _SLOWED)
    if reasons:
        return f"the GPU slowed down: {', '.join(reasons)}"
    # At its power cap, a GPU changes its clock all the time, and within each round.
    # The first state is before the first round, and may be of an idle GPU.
    steady = [state for state in states[1:] if "power cap" not in state.get("reasons", ())]
    clocks = [state["sm_mhz"] for state in steady if state.get("sm_mhz")]
    if clocks and (max(clocks) - min(clocks)) / max(clocks) > _CLOCK:
        return f"the clock changed between {min(clocks)} and {max(clocks)} MHz"
    return ""


def _notes(result: Mapping[str, Any], outputs: Mapping[str, Any]) -> Iterator[str]:
    states = result.get("states") or ()
    if not any(states):
        yield "clocks and throttling are not known: there is no NVML"
    elif any("power cap" in state.get("reasons", ()) for state in states):
        clocks = [state["sm_mhz"] for state in states if "power cap" in state.get("reasons", ())]
        yield f"the GPU was at its power cap, at {min(clocks)} to {max(clocks)} MHz, for all binaries alike"
    if not outputs.get("written"):
        yield "the kernel wrote nothing, so that no output was compared"
    elif empty := outputs.get("empty"):
        yield f"{', '.join(empty)} had only 0 and NaN in its first elements: comparing them says little"
    if outputs and not outputs.get("steady"):
        yield "the first binary writes other bits each time"
    if result.get("restored"):
        yield "the kernel adds to its outputs, which are restored before each launch"


@dataclass(frozen=True)
class TimeViolation:
    """A term of `--fail-on` that a binary breaks, or may break."""

    kernel: str
    label: str
    term: str
    words: str
    sure: bool


def parse_limits(text: str | None) -> tuple[Limit, ...]:
    """Parse `--fail-on`: terms about `time`, `time>+5%`.

    Raises:
        UsageError: a term makes no sense, or is about something else.
    """
    limits = []
    for term in terms.parse([text] if text else [], "--fail-on"):
        if not isinstance(term, Limit) or term.metric != METRIC:
            hints = ["--fail-on 'time>+5%'", "other metrics need no GPU: invoke compare A B --fail-on ..."]
            raise UsageError(f"--fail-on cannot be {term.text!r} here", hints=hints)
        limits.append(term)
    return tuple(limits)


def violations(results: Sequence[KernelTimes], limits: Sequence[Limit]) -> Iterator[TimeViolation]:
    """Yield the terms that are broken, and those that an interval does not decide."""
    for result in results:
        if not result.binaries or not result.binaries[0].rounds:
            continue
        first = result.binaries[0].median
        for binary in result.binaries[1:]:
            if not binary.rounds:
                continue
            # The ends of the interval, as a term is about a time and the interval about a ratio.
            ends = _ends(binary, first)
            for limit in limits:
                broken = {limit.broken(first, end) for end in ends}
                # Where a side cannot be told apart from the first, no growth was shown.
                if broken == {False}:
                    continue
                sure = broken == {True} and not result.unsure
                if limit.change and sure and binary.standing == "same":
                    sure = False
                low, high = ((end / first - 1) * _PERCENT for end in ends)
                words = f"{binary.median:.4g} ms, {low:+.1f} to {high:+.1f} %"
                yield TimeViolation(result.kernel, binary.label, limit.text, words, sure)


def _ends(binary: BinaryTime, first: float) -> tuple[float, float]:
    """Return the least and the largest time of a binary, beside the first's median."""
    return first * binary.ratio.low, first * binary.ratio.high


@dataclass(frozen=True)
class TunedConfig:
    """Configs of a kernel by one Triton.

    Attributes:
        triton: the side.
        best: the config with the least time.
        tuned: the best config of the first side.
        gain: how many times longer the tuned one takes than the best.
        standing: `same` if the two cannot be told apart, `failed` if the tuned one does not run there.
    """

    triton: str
    best: BinaryTime
    tuned: BinaryTime
    gain: Interval
    standing: Standing


def tuned(result: KernelTimes) -> list[TunedConfig]:
    """Return the best config of each side, and what that of the first side costs there.

    The best is chosen by one half of the rounds, and the gain is measured by the other: the best of many is
    partly the luckiest. Empty if there was no sweep, or times are not known.
    """
    sides: dict[str, dict[str, BinaryTime]] = {}
    for binary in result.binaries:
        side, _, config = binary.label.partition(" ")
        if binary.rounds and binary.standing != "wrong":
            sides.setdefault(side, {})[config] = binary
    if result.unsure or all(len(configs) == 1 for configs in sides.values()):
        return []
    # The first side is the one that somebody tuned for.
    chosen = ""
    rows = []
    for side, configs in sides.items():
        best = min(configs, key=lambda config: statistics.median(configs[config].rounds[::2]))
        chosen = chosen or best
        if chosen not in configs:
            lost = BinaryTime(f"{side} {chosen}", "failed")
            rows.append(TunedConfig(side, configs[best], lost, Interval(0.0, 0.0, 0.0), "failed"))
            continue
        gain = ratio_of(configs[chosen].rounds[1::2], configs[best].rounds[1::2])
        standing = "same" if chosen == best else _standing(gain, result.noise)
        rows.append(TunedConfig(side, configs[best], configs[chosen], gain, standing))
    return rows


_REGISTERS = ("registers_per_thread", "vgprs_per_lane")
_SPILLS = ("spill_store_bytes", "spill_load_bytes", "sgpr_spills", "vgpr_spills")


def spilled(figures: Mapping[str, Any]) -> int | None:
    """Return bytes, or registers, that a code spills; None if it is not known."""
    numbers = [figures[key] for key in _SPILLS if isinstance(figures.get(key), int)]
    return sum(numbers) if numbers else None


def head(times: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line about the GPU and the method."""
    results = [row["result"] for row in times["kernels"] if row.get("result", {}).get("device")]
    if results:
        device = results[0]["device"]
        cold = (
            f"{results[0]['flushed'] >> 20} MiB written before each launch"
            if results[0]["flushed"]
            else "warm L2 cache"
        )
        yield f"{device.get('name')}, driver {device.get('driver')}; {cold}; intervals of 95 %"


def passed(limits: Sequence[Limit]) -> str:
    """Return the line for times that keep all limits."""
    return f"within the limits: {', '.join(limit.text for limit in limits)}"


def tables_of(results: Sequence[KernelTimes]) -> Iterator[Grid]:
    """Yield a table for each kernel, and one of tuned configs where there was a sweep."""
    for result in results:
        head = f"{result.kernel}: noise {result.noise * _PERCENT:.1f} %"
        if result.unsure:
            head = f"{result.kernel}: not decided, as {result.unsure}"
        columns = ["binary", "ms", "quartiles", "to the first, %", "verdict", "output", "registers", "spills"]
        rows = [_line(binary) for binary in result.binaries]
        yield tables.plain(
            head, columns, rows, right=("ms", "registers", "spills"), spare=("quartiles", "output")
        )
        if configs := tuned(result):
            yield _tuned_table(result.kernel, configs)


def _line(binary: BinaryTime) -> list[str]:
    figures = binary.figures
    registers = next((figures[key] for key in _REGISTERS if key in figures), "")
    spills = spilled(figures)
    code = [str(registers), "" if spills is None else str(spills)]
    if not binary.rounds:
        return [binary.label, "", "", "", f"failed: {binary.why}", "", *code]
    low, high = binary.quartiles
    ratio = "" if binary.standing == "first" else growth(binary.ratio)
    words = binary.output or ("" if binary.standing == "first" else "the same bits")
    return [
        binary.label,
        f"{binary.median:.4g}",
        f"{low:.4g} to {high:.4g}",
        ratio,
        binary.words,
        words,
        *code,
    ]


def growth(ratio: Interval) -> str:
    """Return a ratio as a change in percent, with its interval."""
    middle, low, high = ((value - 1) * _PERCENT for value in (ratio.middle, ratio.low, ratio.high))
    return f"{middle:+.1f} ({low:+.1f} to {high:+.1f})"


def _tuned_table(kernel: str, configs: Sequence[TunedConfig]) -> Grid:
    rows = []
    for each in configs:
        words = "is still the best" if each.standing == "same" else f"costs {growth(each.gain)} %"
        if each.best.label == each.tuned.label:
            words = "is the best"
        elif each.standing == "failed":
            words = "does not run"
        tuned_ms = f"{each.tuned.median:.4g}" if each.tuned.rounds else ""
        configs_ = [each.tuned.label.partition(" ")[2], tuned_ms, each.best.label.partition(" ")[2]]
        rows.append([each.triton, *configs_, f"{each.best.median:.4g}", words])
    columns = ["Triton", "tuned config", "ms", "best config", "ms, best", "the tuned one"]
    return tables.plain(f"{kernel}: configs", columns, rows, right=("ms", "ms, best"))


def as_json(
    results: Sequence[KernelTimes], broken_terms: Sequence[TimeViolation], times: Mapping[str, Any]
) -> dict[str, Any]:
    """Return everything: times in milliseconds, ratios to the first."""
    devices = [row.get("result", {}).get("device") for row in times["kernels"]]
    return {
        "schema": 1,
        "device": next(filter(None, devices), None),
        "method": times.get("method"),
        "kernels": [
            {
                "kernel": result.kernel,
                "noise": result.noise,
                "unsure": result.unsure,
                "notes": list(result.notes),
                "binaries": [_binary_json(binary) for binary in result.binaries],
                "tuned": [
                    {
                        "triton": each.triton,
                        "tuned": each.tuned.label,
                        "best": each.best.label,
                        "gain": vars(each.gain),
                        "standing": each.standing,
                    }
                    for each in tuned(result)
                ],
            }
            for result in results
        ],
        "violations": [vars(each) for each in broken_terms],
    }


def _binary_json(binary: BinaryTime) -> dict[str, Any]:
    return {
        "label": binary.label,
        "standing": binary.standing,
        "median_ms": binary.median,
        "quartiles_ms": list(binary.quartiles),
        "ratio": vars(binary.ratio) if binary.rounds else None,
        "output": binary.output,
        "why": binary.why,
        "figures": dict(binary.figures),
        "rounds_ms": list(binary.rounds),
    }


def failure(results: Sequence[KernelTimes], broken_terms: Sequence[TimeViolation]) -> SmithError | None:
    """Return the error that the results end with: wrong outputs or broken terms, then what is not decided."""
    swept = {result.kernel for result in results if tuned(result)}
    bad = [
        f"{result.kernel} {binary.label}: {binary.output or binary.why}"
        for result in results
        for binary in result.binaries
        # A config that needs too much shared memory is no finding: the autotuner drops it, too.
        if binary.standing == "wrong" or (binary.standing == "failed" and result.kernel not in swept)
    ]
    broken = [f"{each.kernel} {each.label}: {each.words} ({each.term})" for each in broken_terms if each.sure]
    if bad or broken:
        parts = [f"{counted(len(bad), 'kernel')} failed or computed something else"] if bad else []
        parts += [f"{counted(len(broken), 'time')} over the limit"] if broken else []
        hints = ["--tolerance 0.05 allows larger differences, as a part of the largest number"] if bad else []
        return SmithError(" and ".join(parts), why="\n".join((*bad, *broken)), hints=hints)
    open_ = [
        f"{each.kernel} {each.label}: {each.words} ({each.term})" for each in broken_terms if not each.sure
    ]
    open_ += [f"{result.kernel}: {result.unsure}" for result in results if result.unsure]
    if open_:
        hints = ["--seconds 60 measures longer", "lock the clocks: nvidia-smi --lock-gpu-clocks"]
        return UndecidedError("not all times are decided", why="\n".join(dict.fromkeys(open_)), hints=hints)
    return None


def require_any(results: Sequence[KernelTimes]) -> None:
    """Refuse results without any time.

    Raises:
        FactError: nothing was measured.
    """
    if not any(binary.rounds for result in results for binary in result.binaries):
        why = "\n".join(dict.fromkeys(f"{result.kernel}: {result.unsure}" for result in results))
        raise FactError("nothing was measured", why=why)


_INCH = 0.28  # of a binary's line
_AROUND = 1.1
_COLOURS: Mapping[Standing, str] = {"faster": "#009E73", "slower": "#D55E00", "wrong": "#CC79A7"}
_GREY = "#777777"


def write_plot(results: Sequence[KernelTimes], path: Path) -> None:
    """Draw each binary's ratio to the first with its interval, and write the picture.

    Raises:
        SmithError: there is nothing to draw, or the file cannot be written.
    """
    shown = [result for result in results if any(binary.rounds for binary in result.binaries)]
    if not shown:
        raise SmithError("there is nothing to plot", hints=["omit --plot"])
    import matplotlib as mpl  # noqa: PLC0415 - takes a second, and only a plot needs it
    from matplotlib.figure import Figure  # noqa: PLC0415

    heights = [sum(bool(binary.rounds) for binary in result.binaries) * _INCH + _AROUND for result in shown]
    with mpl.rc_context({"svg.hashsalt": "tritonsmith", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(6.4, sum(heights)), layout="constrained")
        panels = figure.subplots(len(shown), 1, squeeze=False, height_ratios=heights)
        for axes, result in zip(panels.flat, shown, strict=True):
            binaries = [binary for binary in result.binaries if binary.rounds]
            noise = result.noise * _PERCENT
            axes.axvspan(-noise, noise, color="#eeeeee", zorder=0)
            axes.axvline(0, color=_GREY, linewidth=0.8)
            for place, binary in enumerate(binaries):
                middle, low, high = (
                    (value - 1) * _PERCENT
                    for value in (binary.ratio.middle, binary.ratio.low, binary.ratio.high)
                )
                colour = _COLOURS.get(binary.standing, _GREY)
                axes.plot([low, high], [place, place], color=colour, linewidth=1.6)
                axes.plot([middle], [place], "o", color=colour, markersize=4)
            axes.set_yticks(range(len(binaries)), [f"{b.label}: {b.median:.4g} ms" for b in binaries])
            axes.invert_yaxis()
            axes.set_title(result.kernel, loc="left", fontweight="bold", fontsize="medium")
            axes.spines[["top", "right"]].set_visible(False)
        panels.flat[-1].set_xlabel("time, % more than the first (grey: noise of the first with itself)")
        save_figure(figure, path, dpi=110)
