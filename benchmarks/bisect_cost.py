"""Tests and expected hours of a bisect between releases, simulated on real history, in three ways.

`python benchmarks/bisect_cost.py --clone CLONE [--culprits N] [--llvm prebuilt|source]`, with a clone that
has the commits of the releases in `configs/triton-eras.toml`. Culprits are N commits of each gap, evenly
spread over those that may change NVIDIA's code. Every test has the cost that `configs/bisect.toml` expects.
`halving` tests the middle commit and builds as we do; `git` also builds from nothing at each test, as a
script with `pip install -e .` does. Each way gets an LLVM once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from tritonsmith import configs
from tritonsmith.bisect.cost import CostModel, LlvmState, likelihood
from tritonsmith.bisect.outcome import Verdict
from tritonsmith.bisect.search import choose, suspects
from tritonsmith.errors import FactError
from tritonsmith.facts import eras, triton_history
from tritonsmith.facts.triton_history import Area, TritonCommit

VENDOR: Area = "nvidia"


def verdict(index: int, culprit: int) -> Verdict:
    """What a test would say."""
    return Verdict.BAD if index >= culprit else Verdict.GOOD


def simulated(
    commits: Sequence[TritonCommit], culprit: int, llvm: LlvmState, *, halving: bool = False
) -> tuple[int, float]:
    """Tests and expected seconds of a search, the two ends included."""
    built: set[str] = set()
    pins: set[str] = set()
    costs = CostModel(commits, lambda pin: "ready" if pin in pins else llvm, lambda one: one.native in built)
    prior = [likelihood(commit, VENDOR) for commit in commits]
    verdicts: dict[int, Verdict] = {}
    spent = 0.0

    def test(index: int) -> None:
        nonlocal spent
        spent += costs.of(index).seconds
        commit = commits[index]
        if commit.native not in built:
            costs.record_build(index, float(configs.load("bisect")["seconds"]["whole-build"]))
        built.add(commit.native)
        pins.add(commit.pin)
        verdicts[index] = verdict(index, culprit)

    test(0)
    test(len(commits) - 1)
    while (state := suspects(len(commits), verdicts)).left:
        if halving:
            test((state.good + state.bad) // 2)
        else:
            test(choose(state, lambda index: costs.of(index).seconds, prior=prior)[0])
    if list(suspects(len(commits), verdicts).culprits) != [culprit]:
        raise AssertionError(f"the search missed {commits[culprit].commit}")
    return len(verdicts), spent


def git_bisect(commits: Sequence[TritonCommit], culprit: int, llvm: LlvmState) -> tuple[int, float]:
    """The same of `git bisect run`: halves the count, and builds everything at each step."""
    table = configs.load("bisect")["seconds"]
    tested = [0, len(commits) - 1]
    low, high = tested
    while high - low > 1:
        middle = (low + high) // 2
        tested.append(middle)
        low, high = (low, middle) if middle >= culprit else (middle, high)
    pins = {commits[index].pin for index in tested}
    return len(tested), len(tested) * (table["whole-build"] + table["test"]) + len(pins) * table[
        f"llvm-{llvm}"
    ]


def main() -> None:
    """Print one line for each gap."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clone", type=Path, required=True)
    parser.add_argument("--culprits", type=int, default=40)
    parser.add_argument("--llvm", choices=("prebuilt", "source"), default="prebuilt")
    given = parser.parse_args()
    rows = [row for row in eras.releases() if row.llvm]
    cut = {row.version: row.branched or row.commit for row in rows}
    points = list(dict.fromkeys(cut.values()))
    names = {commit: [version for version, other in cut.items() if other == commit][-1] for commit in points}
    heads = ("commits", "pins", "tests", "halving", "git", "hours", "halving", "git", "ratio")
    print(f"{'gap':<14}" + "".join(f"{head:>9}" for head in heads))
    for first, last in pairwise(points):
        try:
            began = time.perf_counter()
            commits = triton_history.read(given.clone, first, last)
            read = time.perf_counter() - began
        except FactError as error:
            print(f"{names[first]} -> {names[last]}: {error.what}")
            continue
        likely = [index for index, one in enumerate(commits) if index and one.concerns(VENDOR)]
        culprits = likely[:: max(1, len(likely) // given.culprits)]
        ways = (
            [simulated(commits, culprit, given.llvm) for culprit in culprits],
            [simulated(commits, culprit, given.llvm, halving=True) for culprit in culprits],
            [git_bisect(commits, culprit, given.llvm) for culprit in culprits],
        )
        tests = [sum(count for count, _ in one) / len(one) for one in ways]
        hours = [sum(spent for _, spent in one) / len(one) / 3600 for one in ways]
        pins = len({commit.pin for commit in commits})
        figures = (
            *(f"{one:9.1f}" for one in tests),
            *(f"{one:9.2f}" for one in (*hours, hours[0] / hours[2])),
        )
        gap = f"{names[first]} -> {names[last]}"
        print(f"{gap:<14}{len(commits):>9}{pins:>9}{''.join(figures)}   read in {read:.2f} s")


if __name__ == "__main__":
    main()
