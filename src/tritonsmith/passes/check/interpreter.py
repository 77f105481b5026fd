"""`--against interpreter`: the first text beside TRITON_INTERPRET=1, program by program, on the same memory.

The one is what the front end made of the kernel's source; the other runs the source, operation by operation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tritonsmith import configs, worker
from tritonsmith.errors import FactError
from tritonsmith.kernels.compile.run import PreparedCompile, Toolchain, worker_request, worker_variables
from tritonsmith.kernels.compile.signature import CONSTEXPR
from tritonsmith.passes.check.answer import InterpretedRuns
from tritonsmith.passes.check.compare import compare
from tritonsmith.passes.check.llvm.memory import ByteMemory
from tritonsmith.passes.check.module import UnsupportedIrError
from tritonsmith.passes.check.runs import ReferenceRuns
from tritonsmith.passes.check.tensor_descriptor import TensorDescriptor
from tritonsmith.plan import MakeDir, Plan, Run, Write, digest
from tritonsmith.plan.steps.base import CommandFailedError

_TASK = "passes.check"


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
        images = {inputs: ByteMemory.of(memory, ()) for inputs, memory in reference.memories.items()}
        grid = configs.load("passes-check")["inputs"]["grid"]
        given = {seed: [one.value for one in every] for seed, every in reference.given.items()}
        runs = [
            {
                "memory": list(_runs_of(*image.unwritten())),
                "program": inputs.program,
                "grid": grid,
                "arguments": list(map(_plain, self._taken(given[inputs.seed]))),
            }
            for inputs, image in images.items()
        ]
        apart = 0.0
        rows = self._run(runs)
        for (inputs, memory), image, row in zip(
            reference.memories.items(), images.values(), rows, strict=True
        ):
            if row["status"] != "ok":
                return _failed(row["error"])
            for start, said in row["value"]["written"]:
                raw = np.frombuffer(bytes.fromhex(said), np.uint8)
                image.store(start + np.arange(raw.size), raw[:, None])
            most, difference = compare(memory, image.result(len(given[inputs.seed])))
            apart = max(apart, most)
            if difference or row["value"]["outside"]:
                name = _name(reference, inputs.seed, difference.argument if difference else None)
                return InterpretedRuns("differs", "", apart, inputs.seed, inputs.program, difference, name)
        return InterpretedRuns("close" if apart else "equal", "", apart)

    def _taken(self, values: list[Any]) -> list[Any]:
        """The arguments that the source has: no constants, and of a descriptor not its sizes and strides.

        Raises:
            UnsupportedIrError: they are not those of the signature.
        """
        bound = self.compiled.wanted[0].bound
        if bound is None:
            raise UnsupportedIrError("IR has no source that could be interpreted")
        fixed = {*bound.constexprs, *(name for name, hint in bound.hints.items() if hint == 1)}
        kinds = [kind for name, kind in bound.signature.items() if kind != CONSTEXPR and name not in fixed]
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
        work = where.space.root / "passes" / "check" / digest(str(made.asked.file), made.kernel)[:16]
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
        steps = (
            MakeDir(work, phase=phase),
            Write(file, json.dumps(content) + "\n", phase=phase),
            Run(argv, cwd=work, env=variables, phase=phase),
        )
        try:
            where.space.run(Plan("interpreter", steps), _TASK, quiet=self.silent)
        except CommandFailedError:
            refused = _rows(results)[-1:]
            if not refused or "refused" not in refused[0]:
                raise
            about = refused[0]["refused"]
            raise FactError(about["what"], why=about.get("why") or None) from None
        return _rows(results)


def _rows(results: Path) -> list[dict[str, Any]]:
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


def _name(reference: ReferenceRuns, seed: int, argument: int | None) -> str:
    return reference.given[seed][argument].name if argument is not None else ""


def _failed(said: str) -> InterpretedRuns:
    """The interpreter's own error, and what is known to mend it."""
    known = [one["try"] for one in configs.load("passes-check")["interpreter"] if one["says"] in said]
    return InterpretedRuns("unknown", said.strip().splitlines()[-1][:200], hints=tuple(known))
