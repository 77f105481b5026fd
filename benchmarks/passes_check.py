"""`passes.check` on dumps: CPU seconds and memory of each, and how many mutants it finds.

    python benchmarks/passes_check.py DUMP... [--mutants 500] [--seed 0] [--out FILE]
    python benchmarks/passes_check.py DUMP... --gpu FOLDER [--mutants 300] [--seed 0]

A mutant is the IR after a pass that changed it, in which one operation of the same types does something else.
It is found if the check of the texts before and after that pass says "differs". What survives is printed: it
is equivalent, or a gap. Each mutant is a line of FILE as well, and one that is there is not tested again.

With `--gpu`, mutants of the last ttgir of the kernels of `mutants/kernels.py`, dumped by a Triton with the
signatures of `mutants/launches.toml` for sm_90, are checked against the first text, and written to a folder
with their verdicts. `python FOLDER/run.py` runs them on a GPU and prints who agrees: it needs Triton and
NumPy, and nothing of this tool.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from tritonsmith.check import check
from tritonsmith.check.answer import CheckResult
from tritonsmith.check.check import PassCheck, inputs_of, more_inputs
from tritonsmith.check.module import UnsupportedIrError, without_locations
from tritonsmith.check.runs import ReferenceRuns, parsed
from tritonsmith.compiler.dump import index
from tritonsmith.compiler.dump.index import Dump, DumpedKernel, DumpIndex
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, UndecidedError

SEEDS = 3
_HERE = Path(__file__).parent / "mutants"
_SECONDS = 40.0  # of one verdict
_OTHER = {  # an operation to one that computes something else from the same operands
    "arith.addf": "arith.subf",
    "arith.subf": "arith.addf",
    "arith.mulf": "arith.addf",
    "arith.divf": "arith.mulf",
    "arith.maxnumf": "arith.minnumf",
    "arith.addi": "arith.subi",
    "arith.subi": "arith.addi",
    "arith.muli": "arith.addi",
    "arith.andi": "arith.ori",
    "arith.divsi": "arith.remsi",
    "arith.remsi": "arith.divsi",
    "arith.minsi": "arith.maxsi",
    "math.exp2": "math.sqrt",
    "math.exp": "math.sqrt",
}
_SWAPPED = (
    "arith.subf",
    "arith.divf",
    "arith.subi",
    "arith.divsi",
    "arith.remsi",
    "arith.cmpi",
    "arith.cmpf",
)
_MASKED = {  # operands before the mask
    "tt.load": 1,
    "tt.store": 2,
    "tt.atomic_rmw": 2,
    "ttg.async_copy_global_to_local": 2,
}
_BARRIER = re.compile(r'^\s*"(?:gpu|ttg|ttng)\.(?:barrier|local_barrier|fence_async_shared)"\(')
_NAME = re.compile(r'"(?P<name>[a-z_]+\.\w+)"\((?P<operands>[^()]*)\)')
_INTEGER = re.compile(r"value = (?P<dense>dense<)?(?P<value>-?\d+)>? : (?:tensor<[^:]*xi(?:32|64)|i32|i64)")
_RANGE = re.compile(r"<\{end = (\d+) : i32, start = (\d+) : i32\}>")
_PREDICATE = re.compile(r"predicate = (\d+) : i64")
_SYMMETRIC = (0, 1)  # eq and ne of integers
_AXIS = re.compile(r"(?<=get_program_id\"\(\) <\{axis = )0(?= : i32)")
_YIELD = re.compile(r'"scf\.yield"\((?P<operands>[^()]+)\) : \((?P<types>.*)\) -> \(\)')
_PENDING = re.compile(r"<\{(num|pendings) = (\d+) : i32")
_TYPED = re.compile(r"[^,<(]+(?:<[^<>]*(?:<[^<>]*>[^<>]*)*>)?")

Mutator = Callable[[str, random.Random], str]


@dataclass(frozen=True)
class IrMutant:
    """A text that was changed.

    Attributes:
        kind: of the change.
        line: number of the line, from 1.
        before: that line.
        after: the line as it is now.
        text: all of it.
    """

    kind: str
    line: int
    before: str
    after: str
    text: str


def mutants(text: str, chance: random.Random, kinds: Sequence[str] = ()) -> Iterator[IrMutant]:
    """All mutations of a text, or those of some kinds, in a random order; each changes one line."""
    lines = text.splitlines()
    places = [(number, kind) for number in range(len(lines)) for kind in kinds or _KINDS]
    chance.shuffle(places)
    for number, kind in places:
        changed = _KINDS[kind](lines[number], chance)
        if changed and changed != lines[number]:
            whole = "\n".join((*lines[:number], changed, *lines[number + 1 :])) + "\n"
            yield IrMutant(kind, number + 1, lines[number].strip(), changed.strip(), whole)


def _other_operation(line: str, _: random.Random) -> str:
    match = _NAME.search(line)
    other = _OTHER.get(match["name"], "") if match else ""
    if not match or not other:
        return ""
    changed = line.replace(f'"{match["name"]}"', f'"{other}"', 1)
    if other.startswith("math.") or other in ("arith.ori", "arith.remsi", "arith.divsi"):
        changed = re.sub(r" <\{overflowFlags[^}]*\}>", "", changed)
    return changed


def _operands_swapped(line: str, _: random.Random) -> str:
    match = _NAME.search(line)
    equality = _PREDICATE.search(line) if match and "cmp" in match["name"] else None
    if not match or match["name"] not in _SWAPPED or (equality and int(equality[1]) in _SYMMETRIC):
        return ""
    one, other = match["operands"].split(", ")
    return line.replace(f"({match['operands']})", f"({other}, {one})", 1)


def _constant_off_by_one(line: str, chance: random.Random) -> str:
    match = _INTEGER.search(line)
    if not match:
        return ""
    start, end = match.span("value")
    return f"{line[:start]}{int(match['value']) + chance.choice((-1, 1))}{line[end:]}"


def _range_off_by_one(line: str, _: random.Random) -> str:
    return _RANGE.sub(
        lambda match: f"<{{end = {int(match[1]) + 1} : i32, start = {int(match[2]) + 1} : i32}}>", line
    )


def _other_predicate(line: str, chance: random.Random) -> str:
    """Of `cmpi`: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge; of `cmpf` the ordered ones."""
    many = 10 if "arith.cmpi" in line else 7 if "arith.cmpf" in line else 0
    match = _PREDICATE.search(line)
    if not match or not many:
        return ""
    others = [one for one in range(many) if one != int(match[1]) and not (many == 7 and one == 0)]  # noqa: PLR2004
    return line.replace(match[0], f"predicate = {chance.choice(others)} : i64")


def _other_axis(line: str, _: random.Random) -> str:
    return _AXIS.sub("1", line)


def _mask_dropped(line: str, _: random.Random) -> str:
    """A store or atomic without its mask, or a load or copy without it and without what stands for the rest.

    A load without such a value may give anything there: nothing that is computed depends on it.
    """
    match = _NAME.search(line)
    types = re.search(r" : \((.*?)\) -> ", line)
    if not match or not types or match["name"] not in _MASKED:
        return ""
    names, spelled = match["operands"].split(", "), _split(types[1])
    kept = _MASKED[match["name"]]
    segments = re.search(r"operandSegmentSizes = array<i32: ([\d, ]+)>", line)
    sizes = [int(size) for size in segments[1].split(",")] if segments else []
    if len(names) <= kept or (sizes and not sizes[kept]):
        return ""
    changed = line.replace(f"({match['operands']})", f"({', '.join(names[:kept])})", 1)
    changed = changed.replace(f"({types[1]})", f"({', '.join(spelled[:kept])})", 1)
    left = ", ".join(str(size if place < kept else 0) for place, size in enumerate(sizes))
    return changed.replace(segments[1], left, 1) if segments else changed


def _carried_swapped(line: str, chance: random.Random) -> str:
    """Two values of one type that a loop carries: one takes the place of the other, which is lost."""
    match = _YIELD.search(line)
    if not match:
        return ""
    names, types = match["operands"].split(", "), _split(match["types"])
    pairs = [
        (one, other)
        for one in range(len(names))
        for other in range(len(names))
        if names[one] != names[other] and types[one] == types[other]
    ]
    if len(names) != len(types) or not pairs:
        return ""
    one, other = chance.choice(pairs)
    names[one] = names[other]
    return line.replace(f"({match['operands']})", f"({', '.join(names)})", 1)


def _wait_for_fewer(line: str, _: random.Random) -> str:
    """One more copy, dot or store may be under way after a wait."""
    return _PENDING.sub(lambda match: f"<{{{match[1]} = {int(match[2]) + 1} : i32", line)


def _wait_dropped(line: str, _: random.Random) -> str:
    match = _NAME.search(line)
    if not match or match["name"] not in ("ttng.wait_barrier", "ttng.async_tma_store_wait"):
        return ""
    return f'{line[: match.start()]}"ttg.barrier"() : () -> ()'


def _barrier_dropped(line: str, _: random.Random) -> str:
    """An operation without effect stands in its place: a line has to be there."""
    return '    %none = "arith.constant"() <{value = 0 : i32}> : () -> i32' if _BARRIER.match(line) else ""


def _split(text: str) -> list[str]:
    """Types between commas that are in no brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "<({[") - (letter in ">)}]")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return [one.strip() for one in found if one.strip()]


_KINDS: dict[str, Mutator] = {
    "another operation": _other_operation,
    "operands swapped": _operands_swapped,
    "constant off by one": _constant_off_by_one,
    "range off by one": _range_off_by_one,
    "another predicate": _other_predicate,
    "another axis": _other_axis,
    "mask dropped": _mask_dropped,
    "carried value lost": _carried_swapped,
    "wait for fewer": _wait_for_fewer,
    "wait dropped": _wait_dropped,
    "barrier dropped": _barrier_dropped,
}


class CheckedDump:
    """A dump, with the generic form of its texts up to LLVM's dialect."""

    def __init__(self, folder: Path) -> None:
        self.index: DumpIndex = index.read(folder)
        self.kernel: DumpedKernel = index.choose_kernel(self.index, "")
        self.name = "/".join(folder.parts[-3:])
        self._dumps = check._of_modules(self.index, self.kernel)  # noqa: SLF001 - as the command has them
        python, space = Path(self.index.python), workspace.default()
        made = check._generic(self.index, self._dumps, python, space, silent=True)  # noqa: SLF001
        self._texts = made
        self.first = self._dumps[0]

    def run(self, dumps: list[Dump] | None = None, more: dict[str, str] | None = None) -> CheckResult:
        """Check all texts, or some."""
        chosen, texts = dumps or self._dumps, {**self._texts, **(more or {})}
        return PassCheck(self.index, self.kernel, chosen, texts, inputs_of(SEEDS)).run()

    def steps(self) -> list[tuple[Dump, Dump]]:
        """Neighbours whose texts differ, both of Triton's dialects."""
        pairs = zip(self._dumps, self._dumps[1:], strict=False)
        return [
            (one, other)
            for one, other in pairs
            if one.sha256 != other.sha256 and "tt.func" in self._texts.get(other.sha256, "")
        ]

    def text(self, dump: Dump) -> str:
        """The generic form."""
        return self._texts[dump.sha256]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dumps", metavar="DUMP", nargs="+", type=Path, help="folder of passes.dump")
    parser.add_argument(
        "--mutants", type=int, default=0, help="how many, over all dumps; none: time the checks"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a line of JSON for each mutant")
    parser.add_argument("--kind", choices=_KINDS, action="append", default=[], help="only mutants of this")
    parser.add_argument("--gpu", type=Path, metavar="FOLDER", help="mutants of the last ttgir, for a GPU")
    given = parser.parse_args()
    if given.gpu:
        return _for_gpu(given.dumps, given.mutants or 300, given.seed, given.gpu)
    if given.mutants:
        return _kill(given.dumps, given.mutants, given.seed, given.out, given.kind)
    for folder in given.dumps:
        made = CheckedDump(folder)
        began = time.process_time()
        answer = made.run()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        seen = Counter(one.status for one in answer.passes)
        print(f"{made.name}: {time.process_time() - began:.1f} CPU s, {memory:.0f} MiB so far, {dict(seen)}")
    return 0


def _kill(folders: list[Path], many: int, seed: int, out: Path | None, kinds: list[str]) -> int:
    rows: list[dict[str, Any]] = []
    if out and out.is_file():
        rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    share = -(-many // len(folders))
    for number, folder in enumerate(folders):
        known = [row for row in rows if row["dump"] == "/".join(folder.parts[-3:])]
        left = min(share, many - number * share) - len(known)
        if left > 0:
            chance = random.Random(f"{seed} {folder} {len(known)}")  # noqa: S311
            rows += _of_dump(CheckedDump(folder), left, chance, out, kinds)
    for kind in sorted({row["kind"] for row in rows}):
        seen = Counter(row["result"] for row in rows if row["kind"] == kind)
        print(f"{kind}: {dict(seen)}")
    print("all:", dict(Counter(row["result"] for row in rows)))
    for row in rows:
        if row["result"] != "found":
            print(f"{row['result']}: {row['dump']} after {row['pass']}: {row['kind']}, line {row['line']}")
            print(f"  {row['before']}\n  {row['after']}")
    return 0


def _of_dump(
    made: CheckedDump, many: int, chance: random.Random, out: Path | None, kinds: list[str]
) -> Iterator[dict[str, Any]]:
    steps = [one for one in made.steps() if next(mutants(made.text(one[1]), chance, kinds), None)]
    for _ in range(many):
        before, after = chance.choice(steps)
        mutant = next(mutants(made.text(after), chance, kinds))
        began = time.process_time()
        row = {
            "dump": made.name,
            "pass": before.label,
            "kind": mutant.kind,
            "line": mutant.line,
            "before": mutant.before,
            "after": mutant.after,
            "result": _result(made, before, after, mutant),
        }
        row["seconds"] = round(time.process_time() - began, 2)
        if out:
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        yield row


def _result(made: CheckedDump, before: Dump, after: Dump, mutant: IrMutant) -> str:
    name = sha256(mutant.text.encode()).hexdigest()
    try:
        first = (
            [] if before is made.first else [made.first]
        )  # sizes are chosen by what the first pass is given
        answer = made.run([*first, before, replace(after, sha256=name)], {name: mutant.text})
    except FactError as error:
        return f"refused: {error.why or error.what}"[:100]
    if answer.culprit:
        return "found" if before.label in answer.culprit.suspects else "found at another pass"
    return "not checked: " + answer.reasons[0][:60] if answer.open else "survived"


class _Limit:
    """The CPU time of one verdict; there is none until the first begins."""

    def __init__(self) -> None:
        self._end = float("inf")

    def begin(self) -> None:
        """A verdict begins."""
        self._end = time.process_time() + _SECONDS

    def over(self) -> bool:
        """Whether it takes too long."""
        return time.process_time() > self._end


def _for_gpu(folders: list[Path], many: int, seed: int, out: Path) -> int:
    """Write a folder with mutants of the last ttgir of each kernel, and what the check says of them."""
    out.mkdir(parents=True, exist_ok=True)
    for name in ("launches.toml", "run.py"):
        shutil.copy(_HERE / name, out / name)
    rows: list[dict[str, Any]] = []
    for number, folder in enumerate(folders):
        began, name = time.process_time(), folder.name
        first, last, stages = _ends(folder)
        (out / f"{name}.ttgir").write_text(last, encoding="utf-8")
        limit = _Limit()
        runs = ReferenceRuns(inputs_of(SEEDS), (), stages, limit.over, more_inputs(SEEDS))
        kernel, unchanged = parsed(first), parsed(last)
        assert kernel  # noqa: S101 - the dump has Triton's dialects
        assert unchanged  # noqa: S101
        runs.refer(kernel)
        if runs.compare(unchanged).changed:
            raise FactError("the unchanged text differs", where=folder)
        share = many * (number + 1) // len(folders) - many * number // len(folders)
        for mutant in _chosen(last, share, random.Random(f"{seed} {name}")):  # noqa: S311
            limit.begin()
            verdict, about = _said(runs, mutant.text)
            changed = mutant.text.splitlines()[mutant.line - 1]
            rows.append({"kernel": name, "line": mutant.line, "kind": mutant.kind, "before": mutant.before,
                         "changed": changed, "verdict": verdict, "about": about})  # fmt: skip
            (out / "mutants.json").write_text(json.dumps(rows, indent=0), encoding="utf-8")
        seen = Counter(row["verdict"] for row in rows if row["kernel"] == name)
        print(f"{name}: {dict(seen)}, {time.process_time() - began:.0f} CPU s", flush=True)
    print(f"now, beside a GPU: python {out / 'run.py'}")
    return 0


def _ends(folder: Path) -> tuple[str, str, int]:
    """The first text of a dump, what the stage ttgir left, and the stages of its pipelines."""
    dump = index.read(folder)
    kernel = index.choose_kernel(dump, "")
    every = check._of_modules(dump, kernel)  # noqa: SLF001 - as the command has them
    last = next(one for one in every if one.stage == "llir")  # before the first pass of the next stage
    texts = check._generic(dump, [every[0], last], Path(dump.python), workspace.default(), silent=True)  # noqa: SLF001
    first, other = (without_locations(texts[one.sha256]) for one in (every[0], last))
    # The generic form is that of an invalid module: this attribute makes it one.
    return first, other.replace("}) {generic, ", "}) {") + "\n", check._stages(every)  # noqa: SLF001


def _chosen(text: str, many: int, chance: random.Random) -> list[IrMutant]:
    """Mutants without repetition: first the few about masks, waits and barriers, then any."""
    few = ("mask dropped", "wait for fewer", "wait dropped", "barrier dropped")
    kept: dict[str, IrMutant] = {}
    for mutant in (*mutants(text, chance, few), *mutants(text, chance)):
        kept.setdefault(mutant.text, mutant)
        if len(kept) == many:
            break
    return list(kept.values())


def _said(runs: ReferenceRuns, text: str) -> tuple[str, str]:
    """The verdict about a mutant, and what it rests on."""
    try:
        kernel = parsed(text)
        assert kernel  # noqa: S101 - of Triton's dialects
        comparison = runs.compare(kernel)
    except (UnsupportedIrError, FactError, UndecidedError, RecursionError) as error:
        return "not decided", str(error)[:200]
    if changed := comparison.changed:
        run = changed.inputs
        return "found", f"{changed.change}; inputs {run.seed}, program {run.program}, {run.contents}"
    if comparison.waits:
        return "not decided", comparison.waits[:200]
    return "survived", "by the whole grid" if comparison.moved else ""


if __name__ == "__main__":
    sys.exit(main())
