"""Options of tasks that compile kernels, and the compile requests and interpreters that they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from invoke.exceptions import Exit

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import CommaLists
from tritonsmith.cli.tasks.options import (
    BACKEND_OPTION,
    JOBS,
    NUM_STAGES,
    NUM_WARPS,
    PTXAS_OPTION,
    PYTHON,
    REPEAT_PASS,
    SET_LLVM,
    SIGNATURE,
    SKIP_PASS,
    STOP_AFTER,
    SWEEP,
    TARGET,
    TIMEOUT,
    TRITON,
    WHEEL_ENV,
)
from tritonsmith.compiler import from_cache as cache
from tritonsmith.compiler import interpreter, run, source_tree, targets, tritons
from tritonsmith.compiler import request as compiler_request
from tritonsmith.compiler.interpreter import choose_interpreter
from tritonsmith.compiler.kernels import kernels_file
from tritonsmith.compiler.request import Surgery
from tritonsmith.core import configs
from tritonsmith.core.command_line import flag_of
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.core.plan import Plan
from tritonsmith.core.ui import console

if TYPE_CHECKING:
    from tritonsmith.compiler.interpreter import Interpreter
    from tritonsmith.compiler.kernels.kernel_list import ListedKernel
    from tritonsmith.compiler.request import CompileRequest
    from tritonsmith.lab.compare.two_sides import ComparedKernel


@dataclass(frozen=True, kw_only=True)
class ToolchainOptions:
    """The Triton that compiles."""

    triton: str = TRITON
    env: str = WHEEL_ENV
    python: Path | None = PYTHON
    timeout: int | None = TIMEOUT

    def toolchain(self, *requests: CompileRequest, dry_run: bool = False) -> Interpreter:
        """Return the interpreter of a compile, with one job by default; `--triton` installs a release.

        Args:
            requests: the compile requests.
            dry_run: install nothing: print the plan of a missing release, and end there.

        Raises:
            SmithError: a request is wrong, or Triton is missing.
            Exit: only that plan was printed.
        """
        # A wrong request is reported before a missing Triton, whose installation takes minutes.
        for request in requests:
            run.check(request)
        jobs = self.jobs if isinstance(self, PoolOptions) else 1
        # The default does not count as `--env`, which contradicts `--triton`.
        env = "" if self.env == WHEEL_ENV.default else self.env
        return toolchain(self.triton, env, self.python, jobs=jobs, timeout=self.timeout, dry_run=dry_run)


@dataclass(frozen=True, kw_only=True)
class PoolOptions(ToolchainOptions):
    """The Triton that compiles, and the number of jobs."""

    jobs: int | None = JOBS


@dataclass(frozen=True, kw_only=True)
class BackendOptions:
    """Options of the backend."""

    num_warps: int | None = NUM_WARPS
    num_stages: int | None = NUM_STAGES
    option: tuple[str, ...] = BACKEND_OPTION

    def of_backend(self) -> dict[str, Any]:
        """Return the options by name; those of `--option` override the others.

        Raises:
            UsageError: one of them makes no sense.
        """
        flags = {"num_warps": self.num_warps, "num_stages": self.num_stages}
        options = {name: value for name, value in flags.items() if value is not None}
        return options | compiler_request.options_of(self.option)


@dataclass(frozen=True, kw_only=True)
class KernelOptions(BackendOptions):
    """Options of one compile."""

    signature: str = SIGNATURE
    target: CommaLists = TARGET

    def request(
        self,
        kernel: str,
        *,
        target: str = "",
        stages: Iterable[str] = (),
        from_cache: str = "",
        by: ToolchainOptions | None = None,
    ) -> CompileRequest:
        """Return the compile request, where a command takes a single kernel; see `requests`.

        Raises:
            SmithError: a flag makes no sense, or a kernels file lists several kernels and none is named.
        """
        requests = self.requests(kernel, target=target, stages=stages, from_cache=from_cache, by=by)
        if len(requests) > 1:
            raise kernels_file.several(Path(kernel), [request.name for request in requests])
        return requests[0]

    def requests(
        self,
        kernel: str,
        *,
        target: str = "",
        stages: Iterable[str] = (),
        from_cache: str = "",
        by: ToolchainOptions | None = None,
    ) -> tuple[CompileRequest, ...]:
        """Return the compile requests: one, or those of a kernels file.

        Args:
            kernel: FILE[:KERNEL], MODULE:KERNEL, or a kernels file; empty with `from_cache`.
            target: the default target if the flags name none; the two targets of `up` if empty.
            stages: the stages to keep; all if empty.
            from_cache: an entry of Triton's cache, instead of a kernel.
            by: flags that select the interpreter, which finds the file of a MODULE.

        Raises:
            SmithError: one of them makes no sense.
        """
        if from_cache and (kernel or self.signature):
            raise UsageError(
                "--from-cache compiles a cache entry, and takes neither a file nor a signature",
                hints=["omit one of them"],
            )
        flags = self.flags(stages)
        if from_cache:
            entry = cache.request_of_entry(
                from_cache, flags.targets, flags.options, flags.sweeps, flags.stages
            )
            return (replace(entry, surgery=flags.surgery),)
        default = targets.parse_all((target,)) if target else targets.default()
        if listed := kernels_file.named(kernel):
            path, name = listed
            requests = kernels_file.requests(listed_kernels(path, name, by), path, flags, default)
            kernels_file.check_folders(requests)
            return requests
        module, name = compiler_request.module_of(kernel)
        # Only the interpreter of the compile knows where MODULE is, as it may be installed there alone.
        if module and by:
            file = interpreter.module_file(module, by.toolchain().python)
        else:
            file, name = compiler_request.kernel_of(kernel)
            file = source_tree.as_python(file)
        return (replace(flags, file=file, kernel=name, targets=flags.targets or default),)

    def flags(self, stages: Iterable[str] = ()) -> CompileRequest:
        """Return a request for no kernel in particular; without targets if no flag gives one.

        Raises:
            UsageError: one of them makes no sense.
        """
        # A command that makes one compile has no --sweep, and so no field of it.
        swept, autotune = compiler_request.sweeps_of(self.sweep if isinstance(self, SweptOptions) else ())
        return compiler_request.CompileRequest(
            file=Path(),
            kernel="",
            signature=self.signature,
            targets=targets.parse_all(self.target),
            options=self.of_backend(),
            sweeps=swept,
            autotune=autotune,
            stages=tuple(stages),
            surgery=self.surgery() if isinstance(self, CompileOptions) else None,
        )

    def refuse(self) -> None:
        """Refuse flags of a compile for a folder that is already compiled, where they would have no effect.

        Raises:
            UsageError: there are such flags.
        """
        # Silently ignored, --num-warps 8 beside a folder would look like a measurement with 8 warps.
        if wrong := [flag_of(name) for name, value in vars(self).items() if value not in (None, "", ())]:
            hints = ["these flags require FILE[:KERNEL]", "--point selects among compiled points"]
            raise UsageError(f"{', '.join(wrong)}: this kernel is already compiled", hints=hints)


@dataclass(frozen=True, kw_only=True)
class SurgeryOptions:
    """Changes of the compiler's pipelines."""

    skip_pass: tuple[str, ...] = SKIP_PASS
    stop_after: str = STOP_AFTER
    repeat_pass: tuple[str, ...] = REPEAT_PASS
    set_llvm: tuple[str, ...] = SET_LLVM
    ptxas_option: tuple[str, ...] = PTXAS_OPTION

    def surgery(self) -> Surgery | None:
        """Return the changes to the pipelines; None if there are none.

        Raises:
            UsageError: one is neither a pass nor an option.
        """
        # The passes have stopped by the time of a second run, so a name alone is its first run.
        stop = self.stop_after if "#" in self.stop_after or not self.stop_after else f"{self.stop_after}#1"
        return Surgery(self.skip_pass, stop, self.repeat_pass, self.set_llvm, self.ptxas_option) or None


@dataclass(frozen=True, kw_only=True)
class SweptOptions(KernelOptions):
    """Options of one or many compiles of a kernel, whose pipelines stay as they are."""

    sweep: tuple[str, ...] = SWEEP


@dataclass(frozen=True, kw_only=True)
class CompileOptions(SurgeryOptions, SweptOptions):
    """Options of one or many compiles of a kernel."""


def toolchain(
    triton: str,
    env: str,
    python: Path | None,
    *,
    jobs: int | None,
    timeout: int | None = None,
    dry_run: bool = False,
) -> Interpreter:
    """Return the interpreter that `--triton`, `--env` or `--python` names; that of `wheel` if they are empty.

    The first command on a new machine need not be `up`: the newest release is installed into `wheel`, where
    `up` finds it.

    Raises:
        SmithError: two of them are given, or there is no such Triton.
        Exit: the release is not installed, and in a dry run its plan was printed instead.
    """
    if not triton:
        if env in ("", WHEEL_ENV.default) and not python:
            _install_wheel(dry_run=dry_run)
        return choose_interpreter(env or WHEEL_ENV.default, str(python or ""), jobs=jobs, timeout=timeout)
    if python or env:
        hints = ["an environment and an interpreter may be given as --triton ENV, --triton ./python"]
        raise UsageError("--triton contradicts --env and --python", hints=hints)
    chosen = tritons.parse(triton)
    # `compare` takes a target, an option or a folder for a side. They are no compiler.
    if chosen.targets or chosen.options or chosen.folder or chosen == tritons.Triton(chosen.label):
        hints = ["a release, an environment or an interpreter, and a ptxas: --triton 3.9.0,ptxas=13.0"]
        raise UsageError(f"--triton cannot be {triton!r}", hints=hints)
    if dry_run and (missing := tritons.plan_of(chosen)).steps:
        _end_with(missing)
    tritons.check([chosen.version])
    return tritons.place_of(chosen, jobs, timeout)


def _install_wheel(*, dry_run: bool) -> None:
    """Install the newest release if the default environment has none; in a dry run, print that plan."""
    missing = tritons.missing_wheel(WHEEL_ENV.default)
    if missing.steps and dry_run:
        _end_with(missing)
    if missing.steps:
        env = workspace.default().env(WHEEL_ENV.default)
        console.note(f"no Triton yet: the newest release is installed into {env.path}, as by invoke up")
        tritons.make_wheel(WHEEL_ENV.default)


def _end_with(missing: Plan) -> NoReturn:
    output.plan(missing)
    console.note("the rest depends on this Triton, which is not installed yet")
    raise Exit


def listed_kernels(path: Path, name: str, by: ToolchainOptions | None = None) -> Sequence[ListedKernel]:
    """Return the entries of a kernels file for the Triton that compiles, and note files that have changed."""
    every, notes = kernels_file.read(path)
    entries = kernels_file.choose(every, path, name)
    # Only then: to know the version may install a Triton.
    if by and any(str(entry.versions) for entry in entries):
        version = tritons.installed(by.toolchain().python)
        fitting = [entry for entry in entries if entry.fits(version)]
        if not fitting:
            what = f"this file has no kernel for Triton {version}"
            raise UsageError(what, where=path, hints=["check versions = ... in the file"])
        entries = tuple(fitting)
    output.notes((*notes, *kernels_file.changes(entries, path)))
    return entries


def compared_kernels(kernel: str, what: CompileOptions) -> tuple[ComparedKernel, ...]:
    """Return the kernels that several Tritons compile: one, those of a kernels file, or none if not given.

    Raises:
        SmithError: one of them makes no sense, or flags of a compile without a kernel.
    """
    from tritonsmith.lab.compare import two_sides  # which no other task needs

    if not kernel:
        if what != CompileOptions():
            raise UsageError("no kernel is given, so nothing is compiled", hints=["invoke compare A B FILE"])
        return ()
    if listed := kernels_file.named(kernel):
        path, name = listed
        entries = listed_kernels(path, name)
        output.notes(kernels_file.own_targets(entries, what.target))
        return two_sides.listed_kernels(entries, path, what.flags())
    return two_sides.single_kernel(what.request(kernel))


def entries_of(kernel: str, what: KernelOptions) -> tuple[list[ListedKernel], Path]:
    """Return the kernels that many Tritons compile, one or those of a kernels file, and the file."""
    from tritonsmith.compiler.kernels.kernel_list import ListedKernel
    from tritonsmith.lab.compare import two_sides

    if listed := kernels_file.named(kernel):
        path, name = listed
        entries = list(listed_kernels(path, name))
        output.notes(kernels_file.own_targets(entries, what.target))
        # The kernels of a list have different parameters, and their signatures are in the file.
        if what.signature and len(entries) > 1:
            hints = ["omit it", f"choose one: {path}:{entries[0].name}"]
            raise UsageError(
                "--signature applies to one kernel, but a TOML file lists many", where=path, hints=hints
            )
    else:
        (compared,) = two_sides.single_kernel(what.request(kernel))
        path, name = compared.asked.file, compared.asked.kernel
        entries = [ListedKernel(str(path), str(path), name, name)]
    # Flags override what the file says of a kernel, as in every other command.
    options, signature = what.of_backend(), what.signature
    return [
        replace(entry, options={**entry.options, **options}, signature=signature or entry.signature)
        for entry in entries
    ], path


def target_of(stage: str) -> str:
    """Return the default target for a stage."""
    # `--stage amdgcn` without a target can only mean AMD's.
    nvidia, amd = targets.default()
    return str(amd if stage in ("amdgcn", "hsaco", "gcnasm") else nvidia)


def parse_stages(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of stages in lower case.

    Raises:
        UsageError: no version has such a stage.
    """
    table = configs.load("kernels")["stages"]
    known = (*table["compiler"], *table["disassembled"])
    stages = tuple(dict.fromkeys(name.lower() for name in names))
    for name in stages:
        if name not in known:
            raise UsageError(f"unknown stage: {name!r}", hints=did_you_mean(name, known))
    return stages


def folder_of(kernel: str) -> Path | None:
    """Return the folder of compiled kernels that is given instead of a kernel; None for a kernel."""
    # Only a folder that exists: every other word is a file or a module, and gets an error that says so.
    folder = Path(kernel).expanduser().absolute() if kernel else None
    return folder if folder and folder.is_dir() else None
