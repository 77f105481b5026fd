"""`test`, `lint`, `docs` and `benchmark`: for developers of tritonsmith itself."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from invoke.context import Context
from invoke.exceptions import Exit

from tritonsmith.cli.tasks.option_fields import flag
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.core.plan import programs
from tritonsmith.core.ui import console
from tritonsmith.facts import machine

# Tests that share a fixture stay on one worker, see tests/support.py, and tests/conftest.py has an order; the
# slowest ones are named. A worker that dies ends the run: with another in its place, xdist waits for ever for
# the last test of each of the others.
_TESTS = (
    *("--dist=loadgroup", "--no-loadscope-reorder", "--max-worker-restart=0"),
    *("--durations=10", "--durations-min=1"),
)
_REPOSITORY = Path(__file__).parents[4]
_INTERNAL = 2  # mypy's exit code where it could not check; 1 where it found errors


@task()
def test(
    context: Context,
    only: str = flag("kind of tests: unit, integration or real", ""),
    slow: bool = flag("run the slow tests, too, as CI does", default=False),
    args: str = flag("extra arguments for pytest, as one string", ""),
) -> None:
    """Run linters, type checks and the tests, on all cores."""
    if not only and not args:
        lint(context)
    kinds = sorted(path.parent.name for path in (_REPOSITORY / "tests").glob("*/__init__.py"))
    if only and only not in kinds:
        raise UsageError(f"unknown kind of tests: {only!r}", hints=did_you_mean(only, kinds))
    # Unless `args` names others, the tests of other kinds are not even imported.
    kind = ("-m", only, "-o", f"testpaths=tests/{only}") if only else ()
    more = ("--slow",) if slow else ()
    workers = (
        f"--numprocesses={machine.read().cores + 1}"  # some always wait: for a lock, a disk, a fake server
    )
    _run((sys.executable, "-m", "pytest", workers, *_TESTS, *kind, *more, *shlex.split(args)))


@task()
def lint(context: Context) -> None:
    """Run ruff, mypy and import-linter."""
    folder = Path(sys.executable).parent
    _run((sys.executable, "-m", "ruff", "check", "."))
    _run((sys.executable, "-m", "ruff", "format", "--check", "."))
    try:
        _run((sys.executable, "-m", "mypy", "--num-workers=auto"))
    except Exit as failure:
        if failure.code != _INTERNAL:
            raise
        _run((sys.executable, "-m", "mypy"))  # its workers have three seconds to start: few on a busy machine
    _run((str(folder / "lint-imports"), "--no-cache"))


@task()
def docs(
    context: Context, serve: bool = flag("serve the site at http://127.0.0.1:8000 until ^C", default=False)
) -> None:
    """Build docs/ as a site with search, and check its links."""
    # Strict: a dead link or anchor, or a page that the navigation lacks, is an error. Not with --quiet,
    # which drops the warnings that it counts.
    _run((sys.executable, "-m", "mkdocs", "serve" if serve else "build", "--strict"), NO_MKDOCS_2_WARNING="1")
    if not serve:
        console.write(_REPOSITORY / "site" / "index.html")


@task()
def benchmark(
    context: Context,
    name: str = flag("file in benchmarks/, without its .py", "command_line"),
    options: str = flag("arguments for the script, as one string: '--source PATH'", ""),
) -> None:
    """Benchmark the command line, caches or builds."""
    known = [path.stem for path in (_REPOSITORY / "benchmarks").glob("*.py")]
    if known and name not in known:
        raise UsageError(f"unknown benchmark: {name!r}", hints=did_you_mean(name, known))
    _run((sys.executable, f"benchmarks/{name}.py", *shlex.split(options)))


def _run(argv: tuple[str, ...], **variables: str) -> None:
    if not (_REPOSITORY / "pyproject.toml").is_file():
        raise UsageError(
            "this needs a checkout of tritonsmith", hints=["clone the repository and use ./bootstrap test"]
        )
    # Tests start Python hundreds of times, and each start would compile what it imports.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    code = programs.stream(argv, cwd=_REPOSITORY, env={**environ, **variables}, on_line=print)
    if code:
        raise Exit(code=code)
