"""Without `--when`: a compile that fails as it does at the bad end. Another failure is a skip, not a bad."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tritonsmith.compiler.manifest import Point
from tritonsmith.compiler.tritons import Triton
from tritonsmith.lab import failure
from tritonsmith.lab.bisect.predicate.kernel_compiles import CompilesOf, Manifests, UntestableError
from tritonsmith.lab.bisect.predicate.protocol import Outcomes, one_by_one
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.model import Observation, Verdict

_DIED = re.compile(r"the compiler died: (\w+)")

_Key = tuple[str, str]  # folder and point


@dataclass(frozen=True)
class FailurePredicate:
    """Bad where a kernel that does not compile at the bad end fails in the same way.

    Attributes:
        compiles: of the kernels.
        bad: the Triton whose failures are searched for; it may have to be built.
    """

    compiles: CompilesOf
    bad: Callable[[], Triton]

    def outcomes(self, tritons: Sequence[Triton]) -> Outcomes:
        """Compile by all of them in one pool, then look at each."""
        if len(tritons) > 1:
            self.compiles.prepare(tritons)
        return one_by_one(self.test)(tritons)

    def test(self, triton: Triton) -> Observation:
        """Compile, and compare the failures with those of the bad end."""
        try:
            searched = dict(failures(self.compiles.of(self.bad())))
            mine = self.compiles.of(triton)
        except UntestableError as error:
            return Observation(Verdict.SKIP, why=error.what)
        seconds = sum(point.seconds for manifest in mine for point in manifest.points)
        found = dict(failures(mine))
        same = [str(found[key]) for key, one in searched.items() if found.get(key) == one]
        if same:
            return Observation(Verdict.BAD, same[0], seconds=seconds)
        other = [str(one) for key, one in found.items() if key in searched]
        if other:
            return Observation(Verdict.SKIP, other[0], "it fails in another way", seconds)
        known = {(manifest.folder.name, point.id) for manifest in mine for point in manifest.points}
        if absent := [key for key in searched if key not in known]:
            why = f"{absent[0][0]} has no compile {absent[0][1]} here"
            return Observation(Verdict.SKIP, why=why, seconds=seconds)
        return Observation(Verdict.GOOD, "compiles", seconds=seconds)


def failures(compiled: Manifests) -> Iterator[tuple[_Key, Failure]]:
    """The points that failed, by folder and id, and how."""
    for manifest in compiled:
        for point in manifest.points:
            if point.status != "ok":
                yield (manifest.folder.name, point.id), _failure(point)


def _failure(point: Point) -> Failure:
    died = _DIED.search(point.error)
    log = f"{point.log}\n{point.error}"
    found = failure.of(log, crashed=died[1] if died else "", timeout=point.status == "timeout")
    return found if found.text or found.kind != "failure" else Failure("failure", point.gist)
