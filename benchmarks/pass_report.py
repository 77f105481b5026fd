"""Making a report and opening it in Chromium, for a dump and for copies of it in one report.

`python benchmarks/pass_report.py DUMP [--copies 1 12] [--runs N]`; DUMP is a folder of `passes.dump`. Each
copy is another kernel in which every value has another name, so that no line with a value is shared. Times
are medians; opening counts from the start of the navigation until the first pass is on the screen.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.integration import chromium
from tests.integration.chromium import Page

from tritonsmith.compiler.dump import index
from tritonsmith.compiler.dump.index import Dump, DumpIndex
from tritonsmith.inspect.report import write
from tritonsmith.inspect.report.write import WrittenReport

KEYS = 20  # passes that are walked
MB = 1e6


@dataclass(frozen=True)
class Opened:
    """What one opening took, in seconds; memory in bytes.

    Attributes:
        shown: until the first pass was on the screen.
        counted: until the changes of all passes of the first kernel were.
        walked: from a key to the next pass.
        searched: for a text in all passes of all kernels.
        heap: JavaScript's memory after that.
    """

    shown: float
    counted: float
    walked: float
    searched: float
    heap: float


def copies(original: DumpIndex, folder: Path, count: int) -> DumpIndex:
    """A dump of several kernels in a new folder.

    Args:
        original: a dump.
        folder: for the new one.
        count: of copies.
    """
    dumps: list[Dump] = []
    for number in range(count):
        (folder / str(number)).mkdir(parents=True)
        for dump in original.dumps:
            text = original.path(dump).read_bytes()
            if number:
                text = text.replace(b"%", b"%%k%d_" % number)
            path = f"{number}/{Path(dump.path).name}"
            (folder / path).write_bytes(text)
            against = None if dump.against is None else dump.against + number * len(original.dumps)
            digest = hashlib.sha256(text).hexdigest()
            dumps.append(
                replace(dump, kernel=str(number), path=path, size=len(text), sha256=digest, against=against)
            )
    kernel = original.kernels[0]
    kernels = tuple(replace(kernel, name=str(number)) for number in range(count))
    made = replace(original, folder=folder, kernels=kernels, dumps=tuple(dumps))
    (folder / index.FILE).write_text(made.render(), encoding="utf-8")
    return made


def report(dumped: DumpIndex) -> WrittenReport:
    """A report of a dump of which nothing was counted yet."""
    (dumped.folder / index.KEPT).unlink(missing_ok=True)
    return write.write_report(dumped, dumped.folder / "report.html")


def opened(page: Page, report: Path) -> Opened:
    """Open a report, walk and search."""
    mark = "performance.getEntriesByName('shown').at(0)?.startTime / 1000"
    page.open(report)
    page.wait(f"{mark} > 0")
    shown = page.js(mark)
    page.wait("document.body.dataset.counted !== undefined")
    counted = page.js("performance.getEntriesByName('counted').at(0).startTime / 1000")
    began = time.perf_counter()
    for _ in range(KEYS):
        before = page.js("document.body.dataset.shown")
        page.key("j")
        page.wait(f"document.body.dataset.shown !== '{before}'")
    walked = (time.perf_counter() - began) / KEYS
    page.key("/")
    page.type("convert_layout")
    began = time.perf_counter()
    page.wait("document.body.dataset.searched === 'convert_layout'")
    searched = time.perf_counter() - began
    heap = page.call("Runtime.getHeapUsage")["usedSize"]
    page.key("Escape")
    return Opened(shown, counted, walked, searched, heap)


def median(runs: Sequence[Opened], name: str) -> float:
    """The middle one of what several runs took."""
    return float(statistics.median(getattr(run, name) for run in runs))


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dump", type=Path)
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 12])
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    original = index.read(asked.dump)
    print(
        "| IR, MB | passes | file, MB | made, s | shown, s | counted, s | next, s | searched, s | heap, MB |"
    )
    print("|" + "---|" * 9)
    with tempfile.TemporaryDirectory() as name, chromium.page(Path(name) / "profile") as page:
        page.size(1400, 900)
        for count in asked.copies:
            folder = Path(name) / str(count)
            dumped = copies(original, folder, count)
            made = [report(dumped) for _ in range(asked.runs)]
            runs = [opened(page, made[0].path) for _ in range(asked.runs)]
            figures = [
                f"{made[0].dumped / MB:.0f}",
                f"{made[0].passes}",
                f"{made[0].size / MB:.1f}",
                f"{statistics.median(one.seconds for one in made):.1f}",
                *(f"{median(runs, field):.2f}" for field in ("shown", "counted", "walked", "searched")),
                f"{median(runs, 'heap') / MB:.0f}",
            ]
            print(f"| {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
