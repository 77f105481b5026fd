"""A study: kernels, targets and many Tritons, the question whether each compiles, and its rows.

The rows are shown as tables, as JSON, CSV and a picture; `farm --site` makes pages.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tritonsmith.compiler import manifest, tritons
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.manifest import Manifest, folder_name
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.measure import CAN_LAUNCH, COLUMNS, LAUNCH, Measured, ResourceRow
from tritonsmith.compiler.targets import Target
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import ConfigError, FactError, SmithError, UsageError
from tritonsmith.core.plan import Plan, Write
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.facts import checkout, git_history
from tritonsmith.inspect.resources import save_figure
from tritonsmith.lab import product
from tritonsmith.lab.batch import kept, run
from tritonsmith.lab.batch.kept import CompileJob
from tritonsmith.lab.batch.run import BatchOptions
from tritonsmith.lab.experiment import BY_HAND, Rules
from tritonsmith.lab.journal import Journal, Observation, Verdict
from tritonsmith.lab.product import Cell, CompiledKernels

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

TASK = "kernel.study"
WORDS = {
    Verdict.GOOD: "compiles",
    Verdict.BAD: "does not compile",
    Verdict.OTHER: "does not compile",
    Verdict.SKIP: "not compiled",
}
SKIPPED = f"not compiled: {BY_HAND.why}"


class History:
    """A clone, and the commit of each version in it.

    Args:
        text: `CLONE` for the commit of each version (`configs/triton-eras.toml`), `CLONE@REF` for one commit.

    Raises:
        UsageError: there is no repository.
    """

    def __init__(self, text: str) -> None:
        path, _, self._ref = text.partition("@")
        self._path = Path(path).expanduser().absolute()
        try:
            # It is opened at once, so that a wrong path is reported before the first kernel is read.
            with git_history.opened(self._path):
                pass
        except FactError as error:
            hints = ["give a clone of Triton with its history"]
            raise UsageError("--source is not a git repository", where=self._path, hints=hints) from error

    def content(self, version: str, name: str) -> str:
        """Return a file as it was when a version was released.

        Raises:
            UsageError: the commit of that version is unknown.
            FactError: the clone lacks that commit, or the commit that file.
        """
        if not version and not self._ref:
            hints = ["--source CLONE@REF uses one commit for all versions"]
            raise UsageError("--source needs the Triton version, which is unknown", hints=hints)
        ref = self._ref or checkout.triton_release(version).commit
        with git_history.opened(self._path) as repository:
            commit = git_history.resolve(repository, ref)
            content = git_history.text_at(repository, commit, name) if commit else None
        if not commit:
            hints = [
                "fetch more of its history: git fetch --unshallow",
                "or use one commit for all versions: --source CLONE@REF",
            ]
            raise FactError(f"this clone has no commit {ref}", where=self._path, hints=hints)
        if content is None:
            raise FactError(f"no file {name} at {ref}, for Triton {version}", where=self._path)
        return content


@dataclass(frozen=True)
class StudyCell:
    """The result of one kernel by one Triton for one target.

    Attributes:
        triton: the version, or what the Triton is called.
        row: the resources; its `error` says why there are none.
        source: sha256 of the kernel's file.
        seconds: that the compile took.
        compiled: whether a compile was tried; False where the kernel's file could not be had, as in a clone
            that lacks the commit: then `row.error` says nothing about the compiler.
    """

    triton: str
    row: ResourceRow
    source: str = ""
    seconds: float = 0.0
    compiled: bool = True


@dataclass(frozen=True)
class StudyPlan:
    """The compiles of a study.

    Attributes:
        cells: in the order of the kernels; those of kernels that cannot even be asked for, as the file of
            that version lacks them, have no job.
        files: steps that write files of a repository, as they were for a version.
        out: folder of the study.
    """

    cells: tuple[Cell, ...]
    files: tuple[Write, ...]
    out: Path

    @property
    def jobs(self) -> tuple[tuple[str, CompileJob], ...]:
        """The compiles, each with the kernel's name in tables."""
        # The targets of a kernel are cells of one job.
        jobs = {cell.job.out: (cell.kernel, cell.job) for cell in self.cells if cell.job}
        return tuple(jobs.values())

    @property
    def question(self) -> object:
        """All that the answers depend on besides the compiles: the files of a repository."""
        return [(str(step.path), step.text) for step in self.files]

    @property
    def key(self) -> str:
        """The key of its journal."""
        return product.key(TASK, self.cells, self.question)

    def plan(self) -> Plan:
        """Return the steps of all compiles, those whose results are kept included."""
        return Plan("study", self.files) + run.plan([job for _, job in self.jobs])


def parse_tritons(words: Iterable[str]) -> list[Triton]:
    """Return the Tritons of a study, which compares nothing else: its targets have a flag of their own.

    Raises:
        UsageError: there is none, or a word is not a Triton.
    """
    sides = [tritons.parse(word) for word in tritons.joined(words)]
    if not sides:
        raise UsageError("no Triton is given", hints=["--triton 3.2.0,3.6.0"])
    for side in sides:
        if not (side.env or side.version or side.python):
            hints = ["a version, an environment or an interpreter: --triton 3.2.0,debug"]
            raise UsageError(f"--triton cannot be {side.label!r}", hints=hints)
    return sides


def prepare(
    entries: Sequence[ListedKernel],
    tritons: Sequence[Triton],
    targets: tuple[Target, ...],
    out: Path,
    folder: Path,
    history: History | None = None,
    *,
    autotune: bool = False,
) -> StudyPlan:
    """Return all compiles, versions outermost.

    Args:
        entries: the kernels.
        tritons: the Tritons; each has its own name.
        targets: of kernels that name none.
        out: folder of the study.
        folder: that the kernels' files are relative to, if they are not in a repository.
        history: that repository.
        autotune: compile the configs of autotuners.

    Raises:
        SmithError: two Tritons are the same, one has no version where the repository needs one, no kernel
            can be read, or two would share a folder.
    """
    names = [name_of(triton) for triton in tritons]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"--triton is given twice for {twice[0]}", hints=["omit one of them"])
    cells: list[Cell] = []
    jobs: list[CompileJob] = []
    files: dict[Path, Write] = {}
    for triton, name in zip(tritons, names, strict=True):
        for entry in (entry for entry in entries if entry.fits(triton.triton)):
            try:
                text = history.content(triton.triton, entry.file) if history else None
                # A folder for each Triton, as the file has another content in each.
                base = out / "sources" / name if history else folder
                request = entry.request(base, targets, text, autotune=autotune)
            except SmithError as error:
                # A list that was captured in a clone names files by their paths there: without --source none
                # of them exists.
                if not history and not (folder / entry.file).exists():
                    hints = [*error.hints, "kernels of a repository: --source CLONE"]
                    raise FactError(error.what, where=error.where, why=error.why, hints=hints) from None
                # A wrong list is wrong for every version; a file of one version may just lack the kernel.
                if not history or isinstance(error, ConfigError):
                    raise
                why = f"not compiled: {error.what}"
                cells += [
                    Cell(entry.name, name, str(target), None, why=why) for target in entry.targets or targets
                ]
                continue
            if text is not None:
                # Several kernels may be in one file, which is written once.
                files[request.file] = Write(request.file, text, phase="sources")
            job = CompileJob(request, triton, out / name / folder_name(entry.name))
            jobs.append(job)
            cells += product.cells(entry.name, name, job)
    if not jobs:
        raise SmithError("no kernel supports these versions", why=cells[0].why if cells else None)
    kept.check(jobs)
    return StudyPlan(tuple(cells), tuple(files.values()), out)


class _Rows:
    """The question of a study, whether a kernel compiles; the rows of resources are its evidence."""

    def __init__(self) -> None:
        self._by_folder: dict[Path, tuple[ResourceRow, ...]] = {}

    def __call__(self, cell: Cell, manifests: Mapping[Path, Manifest]) -> Observation:
        """Report a cell as BAD where a compile fails, or its binary cannot be read."""
        if cell.job is None:  # the subject asks about compiles only
            return Observation(Verdict.SKIP, why=cell.why)
        manifest = manifests[cell.job.out]
        points = [point for point in manifest.points if point.target == cell.target]
        rows = [row for row in self.of(manifest) if row.target == cell.target]
        error = next((row.error for row in rows if row.error), "")
        observation = product.observation(points, Verdict.BAD if error else Verdict.GOOD, error)
        # A sweep has no single value; its rows are in the folder.
        return replace(observation, metrics=dict(rows[0].values)) if len(rows) == 1 else observation

    def of(self, manifest: Manifest) -> tuple[ResourceRow, ...]:
        """Return the resources of all points of a folder, which is read once."""
        if manifest.folder not in self._by_folder:
            self._by_folder[manifest.folder] = measure.of_manifest(manifest).rows
        return self._by_folder[manifest.folder]


def execute(
    plan: StudyPlan, options: BatchOptions, rules: Rules
) -> tuple[tuple[StudyCell, ...], Journal, tuple[str, ...]]:
    """Compile what is missing, and read the results.

    Args:
        plan: the study.
        options: of the pool, with `resume`.
        rules: how often each cell is tested, and which are not.

    Returns:
        The results, sorted by kernel, target and version; the journal; and what is doubtful about them.

    Raises:
        LockedError: another study writes to the folder.
        SmithError: as `batch.run.compiled`.
    """
    space = workspace.default()
    space.claim()
    rows = _Rows()
    subject = CompiledKernels(rows, options)
    with manifest.hold_output(plan.out, space, TASK):
        # Before the journal, whose key has the content of these files.
        space.run(Plan("sources", plan.files), TASK, quiet=True)
        with product.recorded(plan.out, TASK, plan.cells, plan.question, rules) as (journal, earlier):
            observations = product.execute(plan.cells, subject, journal, earlier)
            results = [result for cell in plan.cells for result in _results(cell, subject, rows)]
            journal.end(outcome(results))
    kernels = list(dict.fromkeys(result.row.kernel for result in results))
    targets = list(dict.fromkeys(result.row.target for result in results))
    # Lines of the tables keep the order of the list of kernels; versions go from left to right.
    results.sort(
        key=lambda result: (
            kernels.index(result.row.kernel),
            targets.index(result.row.target),
            order(result.triton),
        )
    )
    return tuple(results), journal, tuple(product.doubts(observations))


def outcome(results: Sequence[StudyCell]) -> str:
    """Return the answer in a line; a cell that was skipped by hand is no failure."""
    errors = [result.row.error for result in results if result.row.error != SKIPPED]
    return f"{sum(map(bool, errors))} of {len(errors)} points did not compile"


def order(version: str) -> tuple[int, tuple[int, ...], str]:
    """Return a key that sorts releases by their numbers, then everything else by its name."""
    parts = version.split(".")
    if all(part.isdecimal() for part in parts):
        return (0, tuple(map(int, parts)), "")
    return (1, (), version)


def name_of(triton: Triton) -> str:
    """Return the name of a Triton in tables and folders.

    Its version or environment, or all words where it has options.
    """
    # Two Tritons of one version differ in their options, and share no column and no folder.
    known = triton.label if triton.ptxas or triton.options else triton.env or triton.triton or triton.label
    return re.sub(r"[^\w.,=+-]", "_", known)


def _results(cell: Cell, subject: CompiledKernels, rows: _Rows) -> Iterator[StudyCell]:
    """Yield a result for each point of a cell, or one with the reason why nothing was compiled."""
    manifest = subject.manifests.get(cell.job.out) if cell.job else None
    points = zip(manifest.points, rows.of(manifest), strict=True) if manifest else ()
    own = [(point, row) for point, row in points if point.target == cell.target]
    for point, row in own:
        renamed = replace(row, kernel=cell.kernel, options="")
        source = manifest.file_sha256 if manifest else ""
        yield StudyCell(cell.triton, renamed, source, point.seconds)
    if not own:
        row = ResourceRow(cell.kernel, "", cell.target, error=cell.why or SKIPPED)
        yield StudyCell(cell.triton, row, compiled=False)


_NONE = "-"  # that kernel is not for that version
_FAILED = "x"
_NOT_COMPILED = "?"  # its file could not be had
_STUCK = "!"  # compiled, and cannot be launched
# Okabe and Ito's colours, which all kinds of colour vision tell apart (jfly.uni-koeln.de/color), without
# their yellow, which white swallows.
_COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7")
_STYLES = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"), ("-", "v"))
_PANEL = (4.3, 3.1)  # inches
_LEGEND = 2.6  # inches, beside the panels
_GREY = "#888888"


@dataclass(frozen=True)
class StudyMetric:
    """One number of a compiled kernel.

    Attributes:
        title: with its unit.
        keys: columns of compiler/resources/measure.py that are added up.
        scale: of the plot's axis; `symlog` has a zero.
    """

    title: str
    keys: tuple[str, ...]
    scale: Literal["linear", "log", "symlog"] = "linear"

    def of(self, cell: StudyCell) -> int | None:
        """Return the number; None where there is none."""
        numbers = [cell.row.values.get(key) for key in self.keys]
        known = [number for number in numbers if isinstance(number, int)]
        return sum(known) if known else None


METRICS = {
    "cuda": (
        StudyMetric("registers per thread", ("registers_per_thread",)),
        StudyMetric("spills, bytes per thread", ("spill_store_bytes", "spill_load_bytes"), "symlog"),
        StudyMetric("code, bytes", ("code_bytes",), "log"),
    ),
    "hip": (
        StudyMetric("VGPRs per lane", ("vgprs_per_lane",)),
        StudyMetric("registers spilled", ("vgpr_spills", "sgpr_spills"), "symlog"),
        StudyMetric("code, bytes", ("code_bytes",), "log"),
    ),
}


def versions(cells: Sequence[StudyCell]) -> list[str]:
    """Return the names of the Tritons, releases first and by their numbers."""
    return sorted({cell.triton for cell in cells}, key=order)


def targets(cells: Sequence[StudyCell]) -> list[str]:
    """Return the targets, in order."""
    return list(dict.fromkeys(cell.row.target for cell in cells))


def tables_of(cells: Sequence[StudyCell]) -> Iterator[Grid]:
    """Yield a table for each target and metric, with a line for each kernel and a column for each Triton."""
    names = versions(cells)
    for target in targets(cells):
        here = [cell for cell in cells if cell.row.target == target]
        kernels = list(dict.fromkeys(cell.row.kernel for cell in here))
        by_place = {(cell.row.kernel, cell.triton): cell for cell in here}
        for metric in METRICS[here[0].row.backend]:
            lines = [
                [kernel, *(_cell(by_place.get((kernel, name)), metric) for name in names)]
                for kernel in kernels
            ]
            yield tables.plain(f"{target}: {metric.title}", ["kernel", *names], lines, right=names)


def warnings(cells: Sequence[StudyCell]) -> tuple[str, ...]:
    """Return the kernels that cannot be launched, and the remarks of ptxas."""
    rows = (replace(cell.row, point=f"{cell.row.kernel} {cell.triton} {cell.row.target}") for cell in cells)
    return Measured(tuple(rows)).warnings


def failures(cells: Sequence[StudyCell]) -> Iterator[str]:
    """Yield each reason once, with the cells that it concerns."""
    about: dict[str, list[str]] = {}
    for cell in cells:
        # A person who skips a cell knows the reason.
        if cell.row.error and cell.row.error != SKIPPED:
            about.setdefault(cell.row.error, []).append(f"{cell.row.kernel} {cell.triton} {cell.row.target}")
    for reason, where in about.items():
        yield f"{reason}\n  {', '.join(where)}"


def as_json(cells: Sequence[StudyCell]) -> dict[str, Any]:
    """Return every row, with units in the names of its values."""
    rows = [
        {
            "triton": cell.triton,
            "compiled": cell.compiled,
            "file_sha256": cell.source,
            "compile_seconds": cell.seconds,
            **asdict(cell.row),
        }
        for cell in cells
    ]
    return {"schema": 1, "rows": rows, "warnings": list(warnings(cells))}


def as_csv(cells: Sequence[StudyCell]) -> str:
    """Return one line for each row; the columns are always the same."""
    # Of both vendors in each file: whoever joins the files of several studies needs the same columns.
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    keys = [column.key for column in COLUMNS]
    heads = ["kernel", "target", "triton", "error", "compile_seconds", "file_sha256"]
    writer.writerow([*heads, *keys, "remarks"])
    for cell in cells:
        row = cell.row
        head = [row.kernel, row.target, cell.triton, row.error, cell.seconds, cell.source]
        writer.writerow([*head, *(row.values.get(key) for key in keys), "; ".join(row.remarks or ())])
    return stream.getvalue()


def _cell(cell: StudyCell | None, metric: StudyMetric) -> str:
    if cell is None:
        return _NONE
    number = metric.of(cell)
    mark = _STUCK if cell.row.values.get(LAUNCH, CAN_LAUNCH) not in (CAN_LAUNCH, None) else ""
    if not cell.compiled:
        return _NOT_COMPILED
    return _FAILED if cell.row.error else "" if number is None else f"{number}{mark}"


def write_plot(cells: Sequence[StudyCell], path: Path) -> None:
    """Draw a study, and write the picture.

    Raises:
        SmithError: there is nothing to draw, or the file cannot be written.
    """
    if not any(cell.row.values for cell in cells):
        raise SmithError("there is nothing to plot", hints=["omit --plot"])
    import matplotlib as mpl  # noqa: PLC0415 - takes a second, and only a plot needs it
    from matplotlib.figure import Figure  # noqa: PLC0415

    rows = targets(cells)
    kernels = list(dict.fromkeys(cell.row.kernel for cell in cells))
    columns = max(len(METRICS[target.partition(":")[0]]) for target in rows)
    size = (columns * _PANEL[0] + _LEGEND, len(rows) * _PANEL[1])
    # A fixed salt: the ids in an SVG are random otherwise, and each run would change the file.
    with mpl.rc_context({"svg.hashsalt": "tritonsmith", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(len(rows), columns, squeeze=False, sharex=True)
        for line, target in zip(grid, rows, strict=True):
            here = [cell for cell in cells if cell.row.target == target]
            # Each vendor has as many metrics; if not, a panel would stay empty, and `strict` says so.
            for axes, metric in zip(line, METRICS[here[0].row.backend], strict=True):
                draw(axes, here, metric, kernels, versions(cells))
            line[0].set_title(target, loc="left", fontweight="bold")
        handles, labels = _all_of(list(grid.flat))
        figure.legend(handles, labels, loc="outside right upper", frameon=False, handlelength=3.2)
        save_figure(figure, path, dpi=110)


def draw(
    axes: Axes, cells: Sequence[StudyCell], metric: StudyMetric, kernels: Sequence[str], names: Sequence[str]
) -> None:
    """Draw one metric of one target into a panel.

    Args:
        axes: the panel.
        cells: of that target.
        metric: the metric.
        kernels: a line each.
        names: of the Tritons, from left to right.
    """
    by_place = {(cell.row.kernel, cell.triton): metric.of(cell) for cell in cells}
    at_zero = 0
    for number, kernel in enumerate(kernels):
        known = [by_place.get((kernel, name)) for name in names]
        if metric.scale == "symlog" and not any(known):
            at_zero += any(value is not None for value in known)  # a dozen lines at zero hide the others
            continue
        values = [float("nan") if value is None else float(value) for value in known]
        # The colour changes first, then the style: so neighbouring lines never share a colour.
        style, marker = _STYLES[number // len(_COLOURS) % len(_STYLES)]
        axes.plot(
            range(len(names)),
            values,
            style,
            marker=marker,
            color=_COLOURS[number % len(_COLOURS)],
            label=kernel,
            linewidth=1.3,
            markersize=3.5,
            clip_on=False,  # a point on the axis is drawn whole
        )
    axes.set_title(metric.title, fontsize="medium", color=_GREY, loc="right")
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if metric.scale == "symlog":  # zero is the best of values here
        axes.set_yscale("symlog", linthresh=10)
        axes.set_ylim(0, 2 * max(10, *(value or 0 for value in by_place.values())))
        if at_zero:
            about = f"0 throughout: {at_zero} of {len(kernels)} kernels"
            axes.text(0.5, 0.06, about, transform=axes.transAxes, ha="center", fontsize="small", color=_GREY)
    elif metric.scale == "log":
        _widen(axes, [value for value in by_place.values() if value])
    else:
        axes.set_ylim(bottom=0)
    axes.margins(x=0.03)


def _widen(axes: Axes, values: Sequence[float]) -> None:
    """Give a logarithmic axis a decade at least: on a narrower one a step of 2 % looks like a cliff."""
    from matplotlib.ticker import LogLocator, ScalarFormatter  # noqa: PLC0415 - as above

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_minor_formatter("")
    if values:
        low, high = min(values) / 1.2, max(values) * 1.2
        more = max(1.0, (10 * low / high) ** 0.5)
        axes.set_ylim(low / more, high * more)


def _all_of(panels: Sequence[Axes]) -> tuple[list[Artist], list[str]]:
    """Return each kernel once, in order, from whichever panel has it."""
    artists: dict[str, Artist] = {}
    # A kernel whose spills are zero throughout has no line in that panel, so no single one has all labels.
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            artists.setdefault(label, handle)
    return list(artists.values()), list(artists)
