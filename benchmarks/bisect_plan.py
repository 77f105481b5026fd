"""What `bisect` is expected to take against plain `git bisect`, simulated over a clone's whole history.

    python benchmarks/bisect_plan.py CLONE [--culprits N] [--seed N] [--broken SHARE]

CLONE has upstream's main; nothing is built. For each two neighbouring releases (their branch points on main),
N commits that can change NVIDIA's code are drawn as culprits, and each is searched in three ways:

clean      git bisect, a whole build of Triton at each step, as `git bisect run` with `pip install -e .`
halving    git bisect's order, and this tool's builds: incremental, none for a native tree that is there
bisect     this tool's order, too

Costs are those of configs/bisect.toml, with LLVMs that the store has, that are downloaded, and that must be
built; builds of `clean` are plain ones, by the ratios of docs/performance.md. Every way keeps the LLVMs that
it has. All verify the two ends, which is not counted.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tritonsmith.core import configs
from tritonsmith.core.text import version_key
from tritonsmith.facts import checkout, triton_history
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab.bisect.search import CommitCosts, LlvmState, Suspects, choose, likelihood, suspects
from tritonsmith.lab.journal import Verdict

VENDOR: Literal["nvidia"] = "nvidia"
TIP = "main"
_FIRST = (3, 0)  # the oldest release whose prebuilt LLVM can still be had
_PLAIN = {"whole-build": 1488 / 590, "llvm-source": 1 / 0.38}  # without what this tool does about builds
_HOUR = 3600.0
_RUN = 4  # commits that one breakage keeps from building, on average

Choose = Callable[[Suspects, "Machine"], int]


@dataclass
class Machine:
    """What was built, and how long that took.

    Attributes:
        commits: the range.
        llvm: where an LLVM comes from that is not there yet.
        clean: each build is a whole one.
        seconds: so far.
    """

    commits: Sequence[TritonCommit]
    llvm: LlvmState
    clean: bool = False
    seconds: float = 0.0
    pins: set[str] = field(default_factory=set)
    trees: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.costs = CommitCosts(self.commits, self._llvm, lambda one: (one.native, one.pin) in self.trees)
        self._table: dict[str, float] = configs.load("bisect")["seconds"]
        for end in (0, len(self.commits) - 1):  # verified before the search
            self.test(end)
        self.seconds = 0.0

    def test(self, index: int, *, broken: bool = False) -> None:
        """Build a commit and test it; one that is broken fails to build when half of it is done."""
        one = self.commits[index]
        expected = self.costs.of(index).seconds
        if self.clean:
            parts = ("whole-build", f"llvm-{self._llvm(one.pin)}", "test")
            expected = sum(self._table[part] * _PLAIN.get(part, 1.0) for part in parts)
        self.seconds += expected / 2 if broken else expected
        self.pins.add(one.pin)
        if not broken and (one.native, one.pin) not in self.trees:
            self.costs.record_build(index, self._table["whole-build"])
            self.trees.add((one.native, one.pin))

    def _llvm(self, pin: str) -> LlvmState:
        return "ready" if pin in self.pins else self.llvm


def halving(state: Suspects, _machine: Machine) -> int:
    """The middle, as git bisect; where that was skipped, the next one to it."""
    middle = (state.good + state.bad) / 2
    return min(state.left, key=lambda index: abs(index - middle))


def by_cost(state: Suspects, machine: Machine) -> int:
    """What this tool tests."""
    prior = [likelihood(one, VENDOR) for one in machine.commits]
    return choose(state, lambda index: machine.costs.of(index).seconds, prior=prior)[0]


WAYS: dict[str, tuple[Choose, bool]] = {
    "clean": (halving, True),
    "halving": (halving, False),
    "bisect": (by_cost, False),
}


@dataclass(frozen=True)
class Searched:
    """The end of one search: its tests, its seconds, and how many suspects were left."""

    steps: int
    seconds: float
    left: int


Decisions = dict[tuple[tuple[int, Verdict], ...], int]


def search(
    commits: Sequence[TritonCommit],
    culprit: int,
    broken: frozenset[int],
    way: str,
    llvm: LlvmState,
    known: Decisions,
) -> Searched:
    """Search to the end; what the same outcomes led to before is `known`."""
    order, clean = WAYS[way]
    machine, verdicts = Machine(commits, llvm, clean), dict[int, Verdict]()
    while (state := suspects(len(commits), verdicts)).left:
        outcomes = tuple(verdicts.items())
        if outcomes not in known:
            known[outcomes] = order(state, machine)
        index = known[outcomes]
        machine.test(index, broken=index in broken)
        verdicts[index] = (
            Verdict.SKIP if index in broken else Verdict.BAD if index >= culprit else Verdict.GOOD
        )
    if culprit not in state.culprits:
        sys.exit(f"lost the culprit {commits[culprit].commit} of {commits[0].commit}..{commits[-1].commit}")
    return Searched(len(verdicts), machine.seconds, len(state.culprits))


def main() -> int:
    """Simulate and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clone", type=Path, metavar="CLONE", help="a clone of Triton with upstream's main")
    parser.add_argument("--culprits", type=int, default=200, metavar="N", help="for each two releases (200)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the random culprits (1)")
    parser.add_argument("--broken", type=float, default=0.0, metavar="SHARE", help="that do not build (0)")
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)  # noqa: S311 - no secret
    scenarios: dict[LlvmState, str] = {
        "ready": "LLVMs in the store",
        "prebuilt": "LLVMs downloaded",
        "source": "LLVMs built from source",
    }
    for llvm, words in scenarios.items():
        print(f"{words}; means of {arguments.culprits} culprits\n")
        print("| releases | commits | pins | clean: steps | h | halving: steps | h | bisect: steps | h | |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for name, commits in gaps(arguments.clone):
            suspected = [index for index, one in enumerate(commits) if index and one.concerns(VENDOR)]
            culprits = draw.choices(suspected, k=arguments.culprits)
            out = broken_ones(len(commits), arguments.broken, draw)
            cells = []
            means = {}
            for way in WAYS:
                known: Decisions = {}
                found = [search(commits, one, out, way, llvm, known) for one in culprits]
                means[way] = statistics.fmean(one.seconds for one in found) / _HOUR
                cells += [f"{statistics.fmean(one.steps for one in found):.1f}", f"{means[way]:.2f}"]
            pins = len({one.pin for one in commits})
            ratio = f"**{means['bisect'] / means['clean']:.2f}**"
            print("|", " | ".join((name, str(len(commits) - 1), str(pins), *cells, ratio)), "|", flush=True)
        print()
    return 0


def gaps(clone: Path) -> list[tuple[str, tuple[TritonCommit, ...]]]:
    """The commits between the branch points of neighbouring releases, and from the last one to the tip."""
    points: dict[str, str] = {}
    for row in checkout.triton_releases():
        if version_key(row.version) >= _FIRST:
            point = triton_history.branch_point(clone, row.branched or row.commit, TIP)
            if point not in points.values():
                points[row.version] = point
    names = list(points)
    return [
        (f"{one} -> {other}", triton_history.read(clone, points[one], points[other]))
        for one, other in itertools.pairwise(names)
    ]


def broken_ones(count: int, share: float, draw: random.Random) -> frozenset[int]:
    """Commits that do not build, in runs: a breakage is mended some commits later."""
    found: set[int] = set()
    while len(found) < share * count:
        first = draw.randrange(1, count - 1)
        found |= set(range(first, min(first + draw.randint(1, 2 * _RUN - 1), count - 1)))
    return frozenset(found)


if __name__ == "__main__":
    began = time.process_time()
    code = main()
    print(f"{time.process_time() - began:.0f} CPU s")
    sys.exit(code)
