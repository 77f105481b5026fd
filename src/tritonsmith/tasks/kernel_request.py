"""Convert the flags of the kernel tasks to requests of `kernels/`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tritonsmith.errors import UsageError, did_you_mean
from tritonsmith.tasks.options import (
    BackendOptions,
    CompileOptions,
    KernelOptions,
    PoolOptions,
    ToolchainOptions,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tritonsmith.kernels.compile.request import CompileRequest
    from tritonsmith.kernels.compile.run import Toolchain


def parse_request(
    kernel: str,
    what: KernelOptions,
    *,
    target: str = "",
    stages: Iterable[str] = (),
    from_cache: str = "",
    by: ToolchainOptions | None = None,
) -> CompileRequest:
    """The compile requests.

    Args:
        kernel: FILE[:KERNEL], or MODULE:KERNEL; empty with `from_cache`.
        what: the flags.
        target: the default if the flags name none; the two targets of `up` if empty.
        stages: to keep; all if empty.
        from_cache: an entry of Triton's cache, instead of a kernel.
        by: flags that select the interpreter, which locates modules.

    Raises:
        SmithError: one of them makes no sense.
    """
    from tritonsmith.kernels.compile import request as grammar
    from tritonsmith.kernels.compile import targets

    if from_cache and (kernel or what.signature):
        raise UsageError(
            "--from-cache compiles a cache entry, and takes neither a file nor a signature",
            hints=["omit one of them"],
        )
    swept, autotune = grammar.sweeps_of(what.sweep if isinstance(what, CompileOptions) else ())
    chosen = backend_options(what)
    if from_cache:
        from tritonsmith.kernels.compile import from_cache as cache

        return cache.asked(from_cache, targets.parse_all(what.target), chosen, swept, tuple(stages))
    module, name = grammar.module_of(kernel)
    if module and by:
        from tritonsmith.kernels.compile import module_file, run

        file = module_file.file_of(module, run.toolchain(by.env, str(by.python or "")).python)
    else:
        file, name = grammar.kernel_of(kernel)
    return grammar.CompileRequest(
        file=file,
        kernel=name,
        signature=what.signature,
        targets=targets.parse_all(what.target or ((target,) if target else ())) or targets.default(),
        options=chosen,
        sweeps=swept,
        autotune=autotune,
        stages=tuple(stages),
    )


def backend_options(what: BackendOptions | KernelOptions) -> dict[str, Any]:
    """Options of the backend, name to value; those of `--option` win over the others.

    Raises:
        UsageError: one of them makes no sense.
    """
    from tritonsmith.kernels.compile import request as grammar

    plain = {"num_warps": what.num_warps, "num_stages": what.num_stages}
    return {name: value for name, value in plain.items() if value is not None} | grammar.options_of(
        what.option
    )


def compiled_already(what: KernelOptions) -> None:
    """Refuse flags of a compile for a folder that is already compiled.

    Raises:
        UsageError: one was given.
    """
    from tritonsmith.command_line import flag_of

    if wrong := [flag_of(name) for name, value in vars(what).items() if value not in (None, "", ())]:
        hints = ["these flags require FILE[:KERNEL]", "--point selects among compiled points"]
        raise UsageError(f"{', '.join(wrong)}: this kernel is already compiled", hints=hints)


def target_of(stage: str) -> str:
    """The default target for a stage."""
    from tritonsmith.kernels.compile import targets

    nvidia, amd = targets.default()
    return str(amd if stage in ("amdgcn", "hsaco", "gcnasm") else nvidia)


def stages(names: Iterable[str]) -> tuple[str, ...]:
    """Names of stages, in lower case.

    Raises:
        UsageError: no version has such a stage.
    """
    from tritonsmith import configs

    table = configs.load("kernels")["stages"]
    known = (*table["compiler"], *table["disassembled"])
    found = tuple(dict.fromkeys(name.lower() for name in names))
    for name in found:
        if name not in known:
            raise UsageError(f"unknown stage: {name!r}", hints=did_you_mean(name, known))
    return found


def toolchain(by: ToolchainOptions, *wanted: CompileRequest) -> Toolchain:
    """The toolchain of a compile.

    Args:
        by: the flags; one compile at a time by default.
        wanted: the requests: their errors are reported before a missing Triton.

    Raises:
        SmithError: a request is wrong, or Triton is missing.
    """
    from tritonsmith.kernels.compile import run

    for one in wanted:
        run.check(one)
    jobs = by.jobs if isinstance(by, PoolOptions) else 1
    return run.toolchain(by.env, str(by.python or ""), jobs=jobs, timeout=by.timeout)


def folder_of(kernel: str) -> Path | None:
    """The folder that is given instead of a kernel."""
    from pathlib import Path

    folder = Path(kernel).expanduser().absolute() if kernel else None
    return folder if folder and folder.is_dir() else None
