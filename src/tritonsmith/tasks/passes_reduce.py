"""`passes.reduce`: a file on which a pass fails, made small."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tritonsmith.tasks.task import command_line, given, task

if TYPE_CHECKING:
    from pathlib import Path

    from tritonsmith.envs.workspace import Workspace
    from tritonsmith.passes.reduce.pass_runner import PassRunner


@task(
    tables=True,
    name="reduce",
    positional=["file"],
    iterable=["option"],
    help={
        "file": "an .mlir file; a folder of passes.dump, or of passes.isolate",
        "pass_": "passes that fail: tritongpu-pipeline{num-stages=3} (default: those of the file's RUN line)",
        "kernel": "which one, where a dump has several",
        "out": "file for the result (default: NAME.reduced.mlir beside it)",
        "timeout": "seconds; the best so far is kept (default: 600)",
        "jobs": "candidates at once (default: 2)",
        "own": "without triton-reduce or mlir-reduce, even if there is one",
        "env": "environment that runs the passes: its triton-opt, or its Triton (default: wheel)",
        "python": "or an interpreter that has Triton",
        "triton_opt": "or a build's triton-opt; triton-reduce beside it is tried as well",
        "option": "of the compile: num_stages=4, where a dump does not tell options of passes (repeat it)",
        "json": "print the answer as JSON",
    },
)
def reduce_(
    context: Any,
    file: str,
    pass_: str = "",
    kernel: str = "",
    out: str = "",
    timeout: str = "",
    jobs: str = "",
    own: bool = False,
    env: str = "",
    python: str = "",
    triton_opt: str = "",
    option: Iterable[str] | None = None,
    json: bool = False,
) -> None:
    """Reduce an input while its passes, or a command, fail the same way."""
    from json import dumps
    from pathlib import Path

    from tritonsmith.envs import workspace
    from tritonsmith.errors import InterruptedRunError, UsageError
    from tritonsmith.kernels.compile.request import options_of
    from tritonsmith.passes.dump import index, select
    from tritonsmith.passes.isolate import failing_pass
    from tritonsmith.passes.isolate import issue_folder as files
    from tritonsmith.passes.reduce import command as reduce_command
    from tritonsmith.passes.reduce import mlir_reduce, report
    from tritonsmith.passes.reduce.pass_runner import PassRunner
    from tritonsmith.passes.replay import replayer
    from tritonsmith.tasks.task import count
    from tritonsmith.ui import console

    given_path = Path(file).expanduser()
    space = workspace.default()
    _, command = command_line()
    if given_path.is_dir() and (given_path / index.FILE).is_file() and not (pass_ or command):
        dump = index.read(given_path)
        chosen = replayer.choose(dump, space, env=env, python=python, triton_opt=triton_opt, source="")
        made = failing_pass.isolate(
            dump, select.kernel(dump, kernel), chosen, space, options_of(option or ())
        )
        text, way, to = made.text, made.way, given_path / "reduced.mlir"
    else:
        path = given_path / "input.mlir" if given_path.is_dir() else given_path
        text = _read(path)
        to = path.with_name("reduced.mlir" if given_path.is_dir() else f"{path.stem}.reduced{path.suffix}")
        if command:
            if pass_:
                raise UsageError("--pass and a command: one of them")
            way = PassRunner(command=tuple(command))
            _runnable(command[0])
        else:
            pipeline = given(pass_) or files.pipeline_of(text)
            if not pipeline:
                raise UsageError(
                    "which passes fail?",
                    where=path,
                    hints=["--pass tritongpu-coalesce", "-- command {}", "a RUN line in the file names them"],
                )
            way = _way(pipeline, space, path, env=env, python=python, triton_opt=triton_opt)
    to = Path(out).expanduser().absolute() if given(out) else to.absolute()
    options = reduce_command.ReduceOptions(
        seconds(timeout),
        count(jobs, "jobs") or reduce_command.JOBS,
        None if own else mlir_reduce.find(way.opt),
        given_path.name if command and not given_path.is_dir() else "in.mlir",
    )
    found = reduce_command.reduce(text, way, space, options, report.progress())
    reduce_command.save(files.headed(found.text, way.pipeline) if way.pipeline else found.text, to, space)
    if json:
        console.write(dumps({**report.as_json(found), "path": str(to)}))
    else:
        console.out().print(report.sizes(found))
        console.out().print(report.summary(found), markup=False)
        console.write(to)
    if found.why == report.INTERRUPTED:
        raise InterruptedRunError("interrupted; the best so far is kept", where=to)


def seconds(text: str) -> float:
    """`--timeout`.

    Raises:
        UsageError: it is no number of seconds.
    """
    from tritonsmith.errors import UsageError
    from tritonsmith.passes.reduce.command import ReduceOptions

    if not text:
        return ReduceOptions().timeout
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError(f"--timeout cannot be {text!r}", hints=["seconds: --timeout 120"])
    return value


def _read(path: Path) -> str:
    from tritonsmith.errors import UsageError

    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        hints = ["name a file of MLIR, or a folder that passes.dump or passes.isolate wrote"]
        raise UsageError("cannot read this file", where=path, why=why, hints=hints) from error


def _runnable(program: str) -> None:
    import shutil

    from tritonsmith.errors import FactError

    if shutil.which(program) is None:
        raise FactError(f"there is no program {program}", hints=["a path, or a name on PATH"])


def _way(
    pipeline: str, space: Workspace, path: Path, *, env: str, python: str, triton_opt: str
) -> PassRunner:
    """Who runs the passes of a file."""
    from tritonsmith.passes.dump.index import DumpIndex
    from tritonsmith.passes.reduce import pass_runner
    from tritonsmith.passes.replay import introspect, replayer

    nothing = DumpIndex(folder=path.parent, command="", triton="", python="", size=0, kernels=(), dumps=())
    named = env or python or triton_opt
    chosen = replayer.choose(
        nothing, space, env=env if named else "wheel", python=python, triton_opt=triton_opt, source=""
    )
    spelled = pass_runner.spelled(pipeline)
    if chosen.opt:
        return pass_runner.PassRunner(spelled, opt=chosen.opt)
    assert chosen.python is not None  # noqa: S101 - `tool.choose` found one of the two
    calls = pass_runner.calls(pipeline, introspect.known(chosen.python, space), chosen.python)
    return pass_runner.PassRunner(spelled, python=chosen.python, calls=calls)
