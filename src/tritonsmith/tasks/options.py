"""The flags that say which kernel is compiled, for what and with what: shared by all kernel tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tritonsmith.errors import UsageError, did_you_mean
from tritonsmith.tasks.task import split

if TYPE_CHECKING:
    from tritonsmith.kernels.compile.request import CompileRequest
    from tritonsmith.kernels.compile.run import Toolchain

ASKING = {
    "signature": "types, hints, values: '*fp32:16,*fp32:16,i32,BLOCK=1024'",
    "target": "cuda:90, hip:gfx942:64, h100, mi300x, native or all (repeat it)",
    "num_warps": "warps of a program",
    "num_stages": "stages of software pipelines",
    "option": "another option of the backend: maxnreg=128 (repeat it)",
    "sweep": "values to take in turn: BLOCK_M=64,128 or num_warps=4,8; or autotune (repeat it)",
    "env": "environment whose Triton compiles",
    "python": "or an interpreter that has Triton",
    "jobs": "compiles at once (default: as many as cores and memory allow)",
    "timeout": "seconds until a compile is given up (default: 600)",
}
REPEATED = ("target", "option", "sweep")  # `iterable` of the task


def parse_request(
    kernel: str,
    signature: str,
    target: Iterable[str] | None,
    option: Iterable[str] | None,
    sweep: Iterable[str] | None,
    *,
    num_warps: str = "",
    num_stages: str = "",
    stages: Iterable[str] = (),
    from_cache: str = "",
    env: str = "",
    python: str = "",
) -> CompileRequest:
    """What the flags ask for.

    Args:
        kernel: FILE[:KERNEL], or MODULE:KERNEL; empty with `from_cache`.
        signature: of the kernel.
        target: names of targets; the two of `up` if empty.
        option: `name=value`, each.
        sweep: `name=a,b`, each, or `autotune`.
        num_warps: empty if not given.
        num_stages: empty if not given.
        stages: to keep; all if empty.
        from_cache: an entry of Triton's cache, instead of a kernel.
        env: whose interpreter knows where a module is.
        python: or that interpreter.

    Raises:
        SmithError: one of them makes no sense.
    """
    from tritonsmith.kernels.compile import request as grammar
    from tritonsmith.kernels.compile import targets

    if from_cache and (kernel or signature):
        raise UsageError(
            "--from-cache compiles what is in the cache: it takes neither a file nor a signature",
            hints=["leave one of them out"],
        )
    swept, autotune = grammar.sweeps_of(sweep or ())
    words = [word for text in target or () for word in split(text) or ()]
    chosen = options(option, num_warps, num_stages)
    if from_cache:
        from tritonsmith.kernels.compile import from_cache as cache

        return cache.asked(from_cache, targets.parse_all(words), chosen, swept, tuple(stages))
    module, name = grammar.module_of(kernel)
    if module and (env or python):
        from tritonsmith.kernels.compile import module_file, run

        file = module_file.file_of(module, run.toolchain(env, python).python)
    else:
        file, name = grammar.kernel_of(kernel)
    return grammar.CompileRequest(
        file=file,
        kernel=name,
        signature=signature,
        targets=targets.parse_all(words) or targets.default(),
        options=chosen,
        sweeps=swept,
        autotune=autotune,
        stages=tuple(stages),
    )


def options(option: Iterable[str] | None, num_warps: str = "", num_stages: str = "") -> dict[str, Any]:
    """Options of the backend, name to value.

    Args:
        option: `name=value`, each; they win over the others.
        num_warps: empty if not given.
        num_stages: empty if not given.

    Raises:
        UsageError: one of them makes no sense.
    """
    from tritonsmith.kernels.compile import request as grammar
    from tritonsmith.tasks.task import count

    warps, stages = count(num_warps, "num-warps", least=1), count(num_stages, "num-stages")
    plain = {"num_warps": warps, "num_stages": stages}
    given = {name: value for name, value in plain.items() if value is not None}
    return given | grammar.options_of(option or ())


def compiled_already(flags: Mapping[str, object]) -> None:
    """Flags of a compile make no sense for a folder that has one.

    Args:
        flags: `--signature` and the like, to what was given.

    Raises:
        UsageError: one was given.
    """
    if wrong := [name for name, value in flags.items() if value]:
        hints = ["they go with FILE[:KERNEL]", "--point chooses among what is compiled"]
        raise UsageError(f"{', '.join(wrong)}: this kernel is compiled already", hints=hints)


def target_of(stage: str) -> str:
    """A target that has this stage, for who names none."""
    from tritonsmith.kernels.compile import targets

    nvidia, amd = targets.default()
    return str(amd if stage in ("amdgcn", "hsaco", "gcnasm") else nvidia)


def stages(names: Iterable[str]) -> tuple[str, ...]:
    """Names of stages, in small letters.

    Raises:
        UsageError: no version has such a stage.
    """
    from tritonsmith import configs

    table = configs.load("kernels")["stages"]
    known = (*table["compiler"], *table["disassembled"])
    found = tuple(dict.fromkeys(name.lower() for name in names))
    for name in found:
        if name not in known:
            raise UsageError(f"there is no stage {name!r}", hints=did_you_mean(name, known))
    return found


def toolchain(env: str, python: str, jobs: str, timeout: str, *wanted: CompileRequest) -> Toolchain:
    """Where it is compiled, and how much at once.

    Args:
        env: name of an environment, or its file.
        python: an interpreter instead.
        jobs: empty if not given.
        timeout: empty if not given.
        wanted: what is going to be compiled: mistakes in it are told before a Triton is missed.

    Raises:
        SmithError: what is wanted is wrong, or no Triton is there.
    """
    from tritonsmith.kernels.compile import run
    from tritonsmith.tasks.task import count

    for one in wanted:
        run.check(one)
    return run.toolchain(env, python, jobs=count(jobs, "jobs"), timeout=count(timeout, "timeout"))
