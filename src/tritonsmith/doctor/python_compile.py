"""The deepest check: compile a kernel in the interpreter under test; needs no GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tritonsmith.core.plan import files
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.core.versions import version_key
from tritonsmith.doctor.check import check
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import Finding, NotApplicableError, error, ok

if TYPE_CHECKING:
    from tritonsmith.compiler.targets import Target

_OLDEST = (3, 0)  # `triton.compile(..., target=GPUTarget)`, which does not query the driver


@check("python.compile", "vector-add compiles, for this machine's GPU or for cuda:80", deep=True)
def compiles(subject: DoctorContext) -> Iterator[Finding]:
    """Check everything that a compile needs: libtriton, the backend, ptxas, a writable cache."""
    from tritonsmith.compiler import disassemblers, smoke_test  # noqa: PLC0415 - only `--deep` compiles

    python = subject.interpreter
    version = subject.installed_triton
    if python is None or not version or version_key(version)[:2] < _OLDEST:
        raise NotApplicableError("no Triton 3.0 or later installed")
    requested = _targets(subject)
    with files.scratch() as place:
        try:
            plan = smoke_test.plan(place, python, requested, disassemblers.locate(subject.space))
            subject.space.run(plan, "doctor", quiet=True, log=place / "log", environ=subject.environ)
        except CommandFailedError as failure:
            last = [line for line in failure.output if line.strip()][-1:]
            yield error(
                f"Triton {version} does not compile vector-add for {requested[0]}: {' '.join(last)}",
                str(python),
                affects="no kernel can be compiled with this Triton",
                remedy="see python.import and python.ptxas; for the full output run this",
                commands=(f"{python} -c 'import triton'",),
            )
            return
        answer = smoke_test.read_response(place)
    for result in answer["results"]:
        stages = ", ".join(result["stages"])
        yield ok(f"{result['target']} in {result['seconds']:.1f} s: {stages}", python)


def _targets(subject: DoctorContext) -> tuple[Target, ...]:
    from tritonsmith.compiler import targets  # noqa: PLC0415 - only `--deep` compiles

    arches = [gpu.arch.replace(".", "") for gpu in subject.gpus.of("nvidia") if gpu.arch]
    here = tuple(targets.parse(f"cuda:{arch}") for arch in dict.fromkeys(arches))
    return here or targets.proof(("nvidia",))
