"""Writing the page of `farm --site` for many kernels, and opening it in Chromium.

`python benchmarks/farm_site.py [--kernels N] [--tritons N] [--targets N] [--runs N] [--keep DIR]`; the
kernels are invented, and a fixed seed makes the same ones each time. Times are medians, in seconds, of the
processor as it is and slowed down by Chromium (`--slower`, as a phone would be). Opening counts from the
start of the navigation until the first rows are painted. The script fails if that takes two seconds on
either, or if the page is wider than the screen of a phone.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.integration import chromium
from tests.integration.chromium import Page

from tritonsmith.compiler.tritons import Triton
from tritonsmith.lab.compare import site
from tritonsmith.lab.compare.site import BadgeText, SiteContent, SiteFinding, SiteRow, SiteState

LIMIT = 2.0  # seconds
CHANGES, FAILS, SPILLS = 0.3, 0.02, 0.1  # of steps, of those, and of those again: how many
NARROW, WIDE = (390, 844), (1400, 900)
TARGETS = ("cuda:90:32", "cuda:80:32", "hip:gfx942:64", "hip:gfx950:64", "cuda:100:32", "cuda:89:32")
PACKAGES = ("fla", "liger_kernel", "mamba_ssm", "deepspeed", "torchao", "sglang", "xformers", "unsloth")
VERBS = ("attention", "layer_norm", "softmax", "matmul", "rope", "swiglu", "cross_entropy", "chunk_scan")
MORE = ("fwd", "bwd", "bwd_dq", "bwd_dkv", "inner", "split", "fused", "persistent", "paged", "varlen")


@dataclass(frozen=True)
class Opened:
    """What one opening took, in seconds; memory in bytes.

    Attributes:
        painted: until the first rows were on the screen.
        typed: from a letter in the search to its rows.
        turned: from the choice of another target to its rows.
        heap: JavaScript's memory after that.
    """

    painted: float
    typed: float
    turned: float
    heap: float


def content(kernels: int, tritons: int, targets: int) -> SiteContent:
    """Return rows as a corpus gives them: most steps change nothing, and few make anything worse."""
    chance = random.Random(3)  # noqa: S311 - invented kernels
    names = tuple(Triton(f"3.{number}.0", version=f"3.{number}.0") for number in range(tritons))
    rows = []
    for number in range(kernels):
        kernel = f"_{chance.choice(VERBS)}_{chance.choice(MORE)}_kernel-{number}"
        package = chance.choice(PACKAGES)
        rows += [row(chance, kernel, package, target, tritons) for target in TARGETS[:targets]]
    words = "38 findings of 9 kinds in 21 of 1,500 kernels"
    return SiteContent("kernels.toml", names, tuple(rows), BadgeText("findings", words, "38 findings"))


def row(chance: random.Random, kernel: str, package: str, target: str, tritons: int) -> SiteRow:
    """Return the row of a kernel."""
    states = [compiled(chance, target, None)]
    at = [0]
    for _ in range(tritons - 1):
        if chance.random() < CHANGES:
            failed = SiteState("failed", "failed: operands of tt.dot have other types", {})
            state = compiled(chance, target, states[0])
            states.append(failed if chance.random() < FAILS else state)
        at.append(len(states) - 1)
    pairs = combinations(range(len(states)), 2)
    findings = {(a, b): found for a, b in pairs if (found := tuple(worse(states[a], states[b])))}
    cpu = tuple(round(chance.uniform(0.2, 9), 3) for _ in at)
    return SiteRow(kernel, "", package, target, tuple(states), tuple(at), cpu, findings)


def compiled(chance: random.Random, target: str, near: SiteState | None) -> SiteState:
    """Return a state like another one, or a new one."""
    unit = "matrix core" if target.startswith("hip") else "tensor core"
    spills = chance.choice((0,) * 9 + (8, 64, 1280))
    code = chance.randrange(1024, 90000, 128)
    values = {"registers": chance.randrange(16, 256), "spills": spills, "code": code}
    values |= {"shared": 49152, "stack": 0, unit: chance.choice((0, 64, 512))}
    if near:
        old = {name: int(value or 0) for name, value in near.values.items()}
        values |= {"registers": max(16, min(255, old["registers"] + chance.randrange(-8, 9)))}
        values |= {"spills": spills if chance.random() < SPILLS else old["spills"], unit: old[unit]}
        values |= {"code": int(old["code"] * chance.uniform(0.9, 1.1)) // 128 * 128}
    occupancy = round(100 * min(1, 65536 / (values["registers"] * 2048)), 2)
    return SiteState("ok", "", {**values, "instructions": values["code"] // 16, "occupancy": occupancy})


def worse(a: SiteState, b: SiteState) -> Iterator[SiteFinding]:
    """Yield what the usual terms would find."""
    if a.values and not b.values:
        yield SiteFinding("does not compile any more", b.message, 1)
    elif not a.values and not b.values:
        yield SiteFinding("compiles by neither", b.message, 20, sure=False)
    elif a.values and b.values:
        before, after = int(a.values["spills"] or 0), int(b.values["spills"] or 0)
        if after > before:
            yield SiteFinding("spills more", f"spills {before} -> {after}", 6)


def opened(page: Page, path: Path) -> Opened:
    """Open a page, type, and turn to another target."""
    page.open(path)
    # A frame that is asked for is drawn before a timeout that it sets.
    painted = "requestAnimationFrame(() => setTimeout(() => done(performance.now() / 1000)))"
    first = page.js(f"new Promise(done => {painted})")
    typed = page.js(timed("search", "field.value = 'attention'", "input"))
    turned = page.js(timed("target", "field.selectedIndex = field.length - 1", "change"))
    return Opened(first, typed, turned, page.call("Runtime.getHeapUsage")["usedSize"])


def timed(name: str, choice: str, event: str) -> str:
    """Return the script that chooses something, and the seconds until the page is laid out."""
    return (
        f"(() => {{ const began = performance.now(); const field = document.getElementById('{name}'); "
        f"{choice}; field.dispatchEvent(new Event('{event}', {{bubbles: true}})); "
        "document.body.offsetHeight; return (performance.now() - began) / 1000; })()"
    )


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=1500)
    parser.add_argument("--tritons", type=int, default=10)
    parser.add_argument("--targets", type=int, default=4)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--slower", type=int, default=4)
    parser.add_argument("--keep", type=Path, help="folder for the page")
    asked = parser.parse_args()
    fails = []
    with tempfile.TemporaryDirectory() as name, chromium.page(Path(name) / "profile") as page:
        rows = content(asked.kernels, asked.tritons, asked.targets)
        began = time.process_time()
        path = site.write(rows, asked.keep or Path(name) / "site")
        written = time.process_time() - began
        print(f"{asked.kernels} kernels, {asked.tritons} Tritons, {asked.targets} targets: ", end="")
        print(f"{path.stat().st_size / 1e6:.1f} MB, written in {written:.1f} s of CPU time")
        print("| screen | processor | painted, s | search, s | other target, s | heap, MB |")
        print("|" + "---|" * 6)
        for width, height in (WIDE, NARROW):
            page.size(width, height)
            for slower in (1, asked.slower):
                page.call("Emulation.setCPUThrottlingRate", rate=slower)
                runs = [opened(page, path) for _ in range(asked.runs)]
                middle = {
                    field: statistics.median(getattr(run, field) for run in runs)
                    for field in ("painted", "typed", "turned", "heap")
                }
                figures = [f"{middle[field]:.2f}" for field in ("painted", "typed", "turned")]
                print(
                    f"| {width} | 1/{slower} | {' | '.join(figures)} | {middle['heap'] / 1e6:.0f} |",
                    flush=True,
                )
                if middle["painted"] > LIMIT:
                    fails.append(f"{width} pixels: {middle['painted']:.2f} s until the first rows")
            if (wide := page.js("document.documentElement.scrollWidth")) > width:
                fails.append(f"the page is {wide} pixels wide on a screen of {width}")
    print("\n".join(fails) or "every page within the limits")
    return len(fails) > 0


if __name__ == "__main__":
    sys.exit(main())
