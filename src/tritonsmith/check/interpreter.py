"""`--against interpreter`: the first text beside TRITON_INTERPRET=1, program by program, on the same memory.

The one is what the front end made of the kernel's source; the other runs the source, operation by operation.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tritonsmith import worker
from tritonsmith.check import interpreter_limits
from tritonsmith.check.answer import InterpretedRuns
from tritonsmith.check.compare import Difference, compare
from tritonsmith.check.llvm.memory import ByteMemory
from tritonsmith.check.memory import WHOLE, GlobalMemory
from tritonsmith.check.module import UnsupportedIrError
from tritonsmith.check.runs import CheckInputs, ReferenceRuns
from tritonsmith.check.tensor_descriptor import TensorDescriptor
from tritonsmith.compiler.run import PreparedCompile, Toolchain, worker_request, worker_variables
from tritonsmith.compiler.signature import CONSTEXPR
from tritonsmith.core import configs
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import MakeDir, Plan, Remove, Run, Write, digest
from tritonsmith.core.plan.steps.base import CommandFailedError

_TASK = "passes.check"
_INPUT = 2.0  # what lies in memory is smaller: a sum of such numbers that is near 0 is not exact in any order


@dataclass(frozen=True)
class TritonInterpreter:
    """Triton's interpreter, for one kernel.

    Attributes:
        compiled: the compile whose first text is compared.
        where: its Triton.
        silent: show no progress.
    """

    compiled: PreparedCompile
    where: Toolchain
    silent: bool = False

    def compare(self, reference: ReferenceRuns) -> InterpretedRuns:
        """Run every program of a reference, and compare what both wrote."""
        try:
            return self._compare(reference)
        except UnsupportedIrError as error:
            return InterpretedRuns("unknown", str(error))
        except FactError as error:
            return InterpretedRuns("unknown", ": ".join(filter(None, (error.what, error.why))))

    def _compare(self, reference: ReferenceRuns) -> InterpretedRuns:
        images = {
            inputs: ByteMemory.of(memory, ())
            for inputs, memory in reference.memories.items()
            if inputs.contents not in WHOLE and not inputs.sizes  # NumPy's arithmetic of those is its own
        }
        grid = configs.load("passes-check")["inputs"]["grid"]
        given = {key: [one.value for one in every] for key, every in reference.given.items()}
        runs = [
            {
                "memory": list(_runs_of(*image.unwritten())),
                "program": inputs.program,
                "grid": grid,
                "arguments": list(map(_plain, self._taken(given[inputs.arguments]))),
            }
            for inputs, image in images.items()
        ]
        apart, rows = 0.0, self._run(runs)
        for inputs, row in zip(images, rows, strict=False):  # they end with one that fails
            if row["status"] != "ok":
                return _failed(row["error"], interpreter_limits.missing(_function(reference)))
            image, memory = images[inputs], reference.memories[inputs]
            for start, said in row["value"]["written"]:
                raw = np.frombuffer(bytes.fromhex(said), np.uint8)
                image.store(start + np.arange(raw.size), raw[:, None])
            theirs = image.result(len(given[inputs.arguments]))
            most, difference = compare(memory, theirs, memory.least, memory.slack)
            apart = max(apart, most)
            if difference or row["value"]["outside"]:
                return self._differs(reference, inputs, apart, difference, theirs)
        if len(rows) < len(images):
            return InterpretedRuns(
                "unknown", f"the interpreter ended after {len(rows)} of {len(images)} runs"
            )
        if reference.left_out:
            many = reference.left_out
            why = f"under {many} inputs the first text does not end, or assumes what does not hold"
            return InterpretedRuns("unknown", why)
        return InterpretedRuns("close" if apart else "equal", "", apart)

    def _differs(
        self,
        reference: ReferenceRuns,
        inputs: CheckInputs,
        apart: float,
        difference: Difference | None,
        theirs: GlobalMemory,
    ) -> InterpretedRuns:
        """A difference; not decided where the interpreter is known to compute something else."""
        if difference:
            memory = reference.memories[inputs]
            least, whole = max(_INPUT, memory.least), not memory.least and memory.slack == 1
            if compare(memory, theirs, least, memory.slack, whole=whole)[1] is None:
                return InterpretedRuns(
                    "unknown", "only small numbers differ, as where a sum has another order"
                )
            if why := interpreter_limits.excuse(_function(reference), difference, memory.contents):
                return InterpretedRuns("unknown", why)
        names = [one.name for one in reference.given[inputs.arguments]]
        behind = difference.argument if difference else None
        name = names[behind] if behind is not None and behind < len(names) else ""
        return InterpretedRuns(
            "differs", "", apart, inputs.seed, inputs.program, inputs.contents, difference, name
        )

    def _taken(self, values: list[Any]) -> list[Any]:
        """The arguments that the source has: no constants, and of a descriptor not its sizes and strides.

        Raises:
            UnsupportedIrError: they are not those of the signature.
        """
        if not (kinds := [kind for _, kind in parameters(self.compiled)]):
            raise UnsupportedIrError("IR has no source that could be interpreted")
        found, rest = [], list(values)
        for kind in kinds[: len(values)]:
            if kind.startswith("("):
                raise UnsupportedIrError("a tuple as a parameter")
            found += rest[:1]
            own = [*found[-1].shape, *found[-1].strides] if kind.startswith("tensordesc<") else []
            del rest[: 1 + len(own) if list(map(_plain, rest[1 : 1 + len(own)])) == own else 1]
        if rest or len(found) != len(kinds):
            raise UnsupportedIrError("the first text has other parameters than the signature")
        return found

    def _run(self, runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        made, where = self.compiled, self.where
        own = digest(str(made.asked.file), made.kernel)[:16]
        work = where.space.root / "passes" / "check" / f"{own}-{os.getpid()}"  # others may check it, too
        file, results = work / "interpret.json", work / "interpreted.jsonl"
        content = {
            **worker_request(made.asked.file, made.kernel, made.wanted[:1], work, work, where),
            "results": str(results),
            "numpy": str(Path(np.__file__).parent.parent),
            "limit": configs.load("passes-check")["inputs"]["timeout"],
            "runs": runs,
        }
        argv = (str(where.python), str(worker.FOLDER), "interpret", str(file))
        phase = "interpreter"
        variables = (*worker_variables(where), ("TRITON_INTERPRET", "1"))
        gone = Remove((work,), where.space.root, phase=phase)
        steps = (
            gone,
            MakeDir(work, phase=phase),
            Write(file, json.dumps(content) + "\n", phase=phase),
            Run(argv, cwd=work, env=variables, phase=phase),
        )
        try:
            where.space.run(Plan("interpreter", steps), _TASK, quiet=self.silent)
            return _rows(results)
        except CommandFailedError as failure:
            about = next((one["refused"] for one in _rows(results) if "refused" in one), None)
            if about:
                raise FactError(about["what"], why=about.get("why") or None) from failure
            raise FactError("the interpreter's process ended", why=f"exit code {failure.code}") from failure
        finally:
            where.space.run(Plan("interpreter", (gone,)), _TASK, quiet=True)


def parameters(compiled: PreparedCompile) -> Iterator[tuple[str, str]]:
    """Names and types of a kernel's parameters that are no constants; none of IR, which has no source."""
    if (bound := compiled.wanted[0].bound) is None:
        return
    fixed = {*bound.constexprs, *(name for name, hint in bound.hints.items() if hint == 1)}
    for name, kind in bound.signature.items():
        if kind != CONSTEXPR and name not in fixed:
            yield name, kind


def _function(reference: ReferenceRuns) -> Operation:
    """The kernel in the first text."""
    assert reference.kernel  # noqa: S101 - there are runs of it
    return reference.kernel.function


def _rows(results: Path) -> list[dict[str, Any]]:
    """Those that were written; none if the process died before that."""
    if not results.is_file():
        return []
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]


def _runs_of(at: np.ndarray[Any, Any], data: np.ndarray[Any, Any]) -> Iterator[tuple[int, str]]:
    """Runs of bytes: the first address, and the bytes in hexadecimal."""
    ends = np.flatnonzero(np.diff(at) != 1) + 1
    for part, content in zip(np.split(at, ends), np.split(data, ends), strict=True):
        if part.size:
            yield int(part[0]), content.tobytes().hex()


def _plain(value: Any) -> Any:
    """An argument as JSON: the bits of a number, or a descriptor."""
    if isinstance(value, TensorDescriptor):
        return {"base": value.base, "shape": value.shape, "strides": value.strides, "block": value.block}
    raw = np.ascontiguousarray(value).reshape(1)
    return int(raw.view(np.uint8 if raw.dtype == np.bool_ else f"u{raw.dtype.itemsize}")[0])


def _failed(said: str, missing: str) -> InterpretedRuns:
    """Describe what the interpreter lacks, or its own error, with the known remedy."""
    known = [one["try"] for one in configs.load("passes-check")["interpreter"] if one["says"] in said]
    why = (said.strip() or "it fails without a message").splitlines()[-1][:200]
    if missing and not known:
        why = f"the interpreter has no {missing}: {why}"
    return InterpretedRuns("unknown", why, hints=tuple(known))
