"""Write dumps: give each a file, compare it with an earlier one, and write the index."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from tritonsmith.compiler.dump import pass_runs
from tritonsmith.compiler.dump.index import FILE, UNFINISHED, Dump, DumpedKernel, DumpIndex
from tritonsmith.compiler.dump.pass_runs import (
    ASSEMBLY,
    LLIR,
    UNUSUAL,
    DumpText,
    PipelineRun,
    PipelineRuns,
    look,
    stages,
)
from tritonsmith.core.plan import files
from tritonsmith.ir import banners, ir_text
from tritonsmith.ir.banners import Banner

_AFTER = 1 << 16  # bytes after a dump that are searched for the compiler's error message
_ERROR = 20_000  # characters
MODULE, FUNCTION = "builtin.module", "func.func"  # for banners that do not tell the operation
_Unit = tuple[str, str]  # see `_unit`
_TOGETHER = 8  # runs that go on at the same time
_FAILED = re.compile(rb"Pipeline failed while executing \[`([^`]+)`")
# A failed pipeline prints a timing report as well: python/src/ir.cc at 63068fcc27.
_PIPELINE_FAILED = b"PassManager::run failed"
_TRACE = b"Traceback (most recent call last)"
_RUNNING = re.compile(rb"(?m:^)Running pass: (\S+) on |Running pass '([^'\n]+)' on function")


@dataclass(slots=True)
class PendingDump:
    """A dump before its successor is known: the fields of `Dump`, and the level of `pass_runs.look`."""

    run: PipelineRun
    banner: Banner
    number: int
    path: str
    size: int
    lines: int
    sha256: str
    whole: bool
    offset: int
    raw: str
    level: int
    module: bool
    changed: bool | None = None
    seconds: float | None = None
    against: int | None = None


class IndexWriter:
    """A writer of dumps and their index into a folder."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._unfinished = files.appending(out / UNFINISHED)
        self._runs = PipelineRuns()
        self._rows: list[PendingDump] = []
        self._latest: tuple[int, bytes] = (-1, b"")
        self._looked: tuple[str, str, DumpText] | None = (
            None  # at that text: kind and operation of its banner
        )
        self._reproducers: list[str] = []

    def add(self, banner: Banner, raw: bytes, offset: int, body: bytes, *, whole: bool) -> None:
        """Add a dump.

        Args:
            banner: its parsed banner.
            raw: the banner as it was printed.
            offset: place of the banner in the stream.
            body: the IR.
            whole: False if the stream ended inside it.
        """
        place, latest = self._latest
        # Most passes change nothing: comparing with the text before is cheaper than a checksum.
        twin = self._rows[place] if body == latest and place >= 0 else None
        digest = twin.sha256 if twin else hashlib.sha256(body).hexdigest()
        known = self._looked
        if twin is None or known is None or known[:2] != (banner.kind, banner.operation):
            known = self._looked = (banner.kind, banner.operation, look(banner, body))
        text = known[2]
        row = self._row(banner, raw, offset, body, text, digest)
        row.size, row.lines, row.whole = len(body), twin.lines if twin else body.count(b"\n"), whole
        unit = _unit(row)
        before = _before(row, unit)
        twin = twin or (
            self._rows[before] if before is not None and self._rows[before].sha256 == digest else None
        )
        files.link_or_create(f"{self._out}/{row.path}", body, f"{self._out}/{twin.path}" if twin else "")
        self._compare(row, body, before, unit)
        self._latest = (len(self._rows) - 1, body)

    def add_in_pieces(
        self, banner: Banner, raw: bytes, offset: int, start: bytes
    ) -> tuple[Path, Callable[[int, int, str, bool], None]]:
        """Add a dump that arrives in pieces.

        Returns:
            The file to write it to, and a function to call at the end with size, lines, sha256 and wholeness.
        """
        row = self._row(banner, raw, offset, start, look(banner, start), "")

        def close(size: int, lines: int, digest: str, whole: bool) -> None:
            row.size, row.lines, row.sha256, row.whole = size, lines, digest, whole
            unit = _unit(row)
            self._compare(row, None, _before(row, unit), unit)

        self._latest, self._looked = (-1, b""), None
        return self._out / row.path, close

    def add_output(self, data: bytes) -> None:
        """Take printed text that is not IR."""
        run = self._runs.current
        if run is None:
            return
        if b"{-#" in data:
            data = self._reproducer(run, data)
        # A terminal or a CI system has put carriage returns in, and the patterns of reports have none.
        data = data.replace(b"\r\n", b"\n")
        # Errors come at once after the dump of the pass that failed; a program may print gigabytes later.
        if len(run.output) < _AFTER:
            run.output += data[: _AFTER - len(run.output)]
        if b"ime report ..." in data or b"timing report" in data:
            for report in pass_runs.reports(data.decode("utf-8", "replace")):
                self._time(self._timed(run, report), report)

    def close(self, died: str, *, reproducers: Sequence[str] = (), **about: Any) -> DumpIndex:
        """Write the index.

        Args:
            died: description of the program's crash; empty if it did not crash.
            reproducers: files that were written beside the stream, relative to the folder.
            about: the other fields of `DumpIndex`.
        """
        self.stop()
        current = self._runs.current
        kernels = tuple(self._kernel(run, died if run is current else "") for run in self._runs.all)
        all_reproducers = (*reproducers, *self._reproducers)
        index = DumpIndex(
            self._out, kernels=kernels, dumps=tuple(self._dumps()), reproducers=all_reproducers, **about
        )
        files.write_atomically(self._out / FILE, index.rendered())
        return index

    def _row(
        self, banner: Banner, raw: bytes, offset: int, body: bytes, text: DumpText, digest: str
    ) -> PendingDump:
        run = self._runs.find(banner, body, text, digest)
        if banner.kind == "mlir" and not banner.operation:
            banner = _operation(banner, MODULE if text.module else FUNCTION, text.symbol)
        if not run.places:
            files.make_folder(self._out / run.name)
        if banner.when == "failed":
            run.failed = run.failed or banner.name
        else:
            run.output = b""
        level = text.level if text.module or text.level > LLIR else run.level
        slug = _slug(banner.argument or banner.name)
        path = f"{run.name}/{len(run.places):03d}-{slug}.{banner.kind}"
        # Noted before the file exists, so that a killed run leaves no file that the next one does not know.
        self._note(path)
        spelled = _spelled(raw)
        place, module = len(run.places), text.module
        row = PendingDump(run, banner, place, path, 0, 0, digest, True, offset, spelled, level, module)
        run.places.append(len(self._rows))
        run.digest = digest
        self._rows.append(row)
        return row

    def _note(self, path: str) -> None:
        """Note the name of a file that is made next."""
        if self._unfinished:
            files.append_line(self._unfinished, path)

    def stop(self) -> None:
        """Close the files, if `close` was not called."""
        if self._unfinished:
            self._unfinished.close()

    def _compare(self, row: PendingDump, body: bytes | None, before: int | None, unit: _Unit) -> None:
        """Record what the dump shows about the pass before it and about its own pass."""
        # If dumps of another unit lie in between (a loop of the function, a function of the module), a
        # difference could come from either pass: then it is left open.
        run, here = row.run, len(self._rows) - 1
        if before is not None:
            old = self._rows[before]
            alone = row.banner.inside or run.latest[unit][1] == run.shaken
            verdict = self._differ(old, before, row, body, settled=alone)
            if old.banner.when == "before" and not row.banner.inside:
                old.changed, old.against = verdict, here
            if row.banner.when != "before":
                row.changed, row.against = verdict, before
        if row.banner.inside:
            run.inner[unit] = here
            return
        run.shaken += row.banner.when == "before" or row.changed is not False
        run.latest[unit] = (here, run.shaken)
        run.inner[unit] = here

    def _differ(
        self, old: PendingDump, place: int, row: PendingDump, body: bytes | None, *, settled: bool
    ) -> bool | None:
        if old.sha256 == row.sha256:
            return False
        if not settled:
            return None
        if body is None or not (old.whole and row.whole):
            return True if old.whole and row.whole else None
        # The text before is at hand, unless dumps of another unit came in between.
        last, text = self._latest
        if last != place:
            text = (self._out / old.path).read_bytes()
        return not ir_text.same_without_locations(row.banner.kind, text, body)

    def _reproducer(self, run: PipelineRun, data: bytes) -> bytes:
        """Move a crash reproducer into its own file, and return the rest of the text."""
        end = data.rfind(b"#-}")
        end = end + 3 if end >= 0 else len(data)
        begin = data.rfind(b"\nmodule", 0, data.find(b"{-#")) + 1
        # Aliases of attributes stand above the module, and belong to it.
        while begin > 0 and data[: begin - 1].rpartition(b"\n")[2].startswith(b"#"):
            begin = data.rfind(b"\n", 0, begin - 1) + 1
        number = len(self._reproducers)
        path = f"{run.name}/reproducer{f'-{number + 1}' if number else ''}.mlir"
        self._note(path)
        files.link_or_create(f"{self._out}/{path}", data[begin:end] + b"\n")
        self._reproducers.append(path)
        return data[:begin] + data[end:].lstrip(b"\n")

    def _timed(self, run: PipelineRun, report: pass_runs.TimingReport) -> PipelineRun:
        """Return the run that a report belongs to."""
        # With several threads this is not always the run of the last dump.
        if report.llvm:
            return run
        known = {row.name for row in report.rows}

        def waiting(candidate: PipelineRun) -> int:
            return sum(
                self._rows[place].banner.name in known for place in candidate.places[candidate.timed :]
            )

        return max(
            [*reversed(self._runs.all[-_TOGETHER:]), run], key=lambda each: (waiting(each), each is run)
        )

    def _time(self, run: PipelineRun, report: pass_runs.TimingReport) -> None:
        rows = [self._rows[place] for place in run.places]
        if report.llvm:
            chosen = [row for row in rows if row.banner.kind in ("ll", "mir")]
            seconds_by_place = pass_runs.nth(report, [row.banner.name for row in chosen])
        else:
            chosen = [row for row in rows if row.banner.kind == "mlir" and not row.banner.inside]
            passes = [(row.banner.name, row.banner.operation == MODULE) for row in chosen]
            seconds_by_place, end = pass_runs.matched(report.rows, passes, run.timed)
            if seconds_by_place:
                run.pipelines.append((chosen[run.timed].number, chosen[end - 1].number + 1))
                run.timed = end
        for place, seconds in seconds_by_place.items():
            if chosen[place].seconds is None:
                chosen[place].seconds = seconds

    def _kernel(self, run: PipelineRun, died: str) -> DumpedKernel:
        last = self._rows[run.places[-1]]
        text = pass_runs.without(run.output)
        mark = banners.marks().search(text)
        failed = run.failed
        if match := _FAILED.search(text):
            failed = failed or _text(match[1])
        if not failed and last.level != ASSEMBLY and (mark or died or not last.whole):
            running = [first or second for first, second in _RUNNING.findall(text)]
            if last.banner.kind == "mlir" or not last.whole:
                failed = f"after {last.banner.name}" if self._over(run) else last.banner.name
            # Nothing is printed before LLVM's passes run, but for this log.
            else:
                failed = _text(running[-1]) if running else f"after {last.banner.name}"
        error = ""
        if failed:
            begin = text.rfind(b"\n", 0, mark.start()) + 1 if mark else 0
            # Python's traceback begins above the line that MLIR marks as the error.
            trace = text.rfind(_TRACE, 0, begin)
            begin = trace if trace >= 0 else begin
            error = _text(text[begin:]).strip()[:_ERROR] or died
        return DumpedKernel(run.name, run.function, run.target, failed, error)

    def _over(self, run: PipelineRun) -> bool:
        """Report whether a timing report shows that the last pass ended before the failure."""
        rows = [self._rows[place] for place in run.places]
        passes = [row for row in rows if row.banner.kind == "mlir" and not row.banner.inside]
        if run.timed < len(passes) or _PIPELINE_FAILED in run.output:
            return False
        mark = banners.marks().search(run.output)
        return mark is None or run.output.find(b"ime report ...") < mark.start()

    def _dumps(self) -> Iterator[Dump]:
        """Yield the dumps, and forget the rows, so that a long dump is not in memory twice."""
        names = [""] * len(self._rows)
        for run in self._runs.all:
            levels = [self._rows[place].level for place in run.places]
            for place, stage in zip(run.places, stages(run, levels), strict=True):
                names[place] = stage
        self._rows.reverse()
        for stage in names:
            row = self._rows.pop()
            banner = row.banner
            yield Dump(
                number=row.number,
                kernel=row.run.name,
                stage=banner.kind if row.level == ASSEMBLY else stage,
                name=banner.name,
                argument=banner.argument,
                pipeline=banner.pipeline,
                operation=banner.operation,
                symbol=banner.symbol,
                when=banner.when,
                path=row.path,
                size=row.size,
                lines=row.lines,
                sha256=row.sha256,
                changed=row.changed,
                seconds=row.seconds,
                whole=row.whole,
                offset=row.offset,
                banner=row.raw,
                inside=banner.inside,
                against=row.against,
            )


def _unit(row: PendingDump) -> _Unit:
    """Return the part of the program that a dump shows: only dumps of equal parts can be compared."""
    banner = row.banner
    if not row.module:
        return f"{banner.kind} {banner.operation}", banner.symbol
    return "mlir module" if banner.kind == "mlir" else banner.kind, ""


def _before(row: PendingDump, unit: _Unit) -> int | None:
    if row.banner.inside and unit in row.run.inner:
        return row.run.inner[unit]
    latest = row.run.latest.get(unit)
    return latest[0] if latest else None


@lru_cache(4096)
def _operation(banner: Banner, operation: str, symbol: str) -> Banner:
    """Return a banner with the operation that it does not name."""
    return replace(banner, operation=operation, symbol=symbol)


@lru_cache(4096)
def _spelled(raw: bytes) -> str:
    """Return a banner as a text; banners repeat, and their texts are kept for all dumps."""
    return raw.decode("utf-8", "surrogateescape")


@lru_cache(4096)
def _slug(name: str) -> str:
    """Return the part of a file's name that tells the pass."""
    return re.sub(UNUSUAL, "-", name).strip("-.")[:80] or "pass"


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
