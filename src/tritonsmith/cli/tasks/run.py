"""`run --sanitizer`: a program that a sanitizer watches, and what the sanitizer finds."""

from __future__ import annotations

import sys

from invoke.context import Context
from invoke.exceptions import Exit

from tritonsmith.build import sanitized_run
from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import flag
from tritonsmith.cli.tasks.option_task import command_line
from tritonsmith.cli.tasks.options import DRY_RUN, ENV
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.core.ui import console
from tritonsmith.facts import compute_sanitizer


@task(name="run")
def run_(
    context: Context,
    sanitizer: str = flag("address, undefined or thread of a build; memcheck, ... on a GPU", ""),
    env: str = ENV,
    dry_run: bool = DRY_RUN,
) -> None:
    """Run a program under a sanitizer, for Triton's C++ or its kernels."""
    _, argv = command_line()
    space = workspace.default()
    place = space.env(settings.load(env).name)
    if sanitizer in compute_sanitizer.tools():
        prepared = sanitized_run.prepare_on_gpu(argv, sanitizer, place, space)
    else:
        prepared = sanitized_run.prepare(argv, sanitizer, place, space)
    if dry_run:
        output.plan(prepared.plan)
        return

    def show(data: bytes) -> None:
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()

    code = sanitized_run.execute(prepared, space, show)
    head, lines = sanitized_run.error_of(prepared)
    if head:
        raise SmithError(head, where=prepared.folder, why="\n".join(lines) or None)
    if code:
        raise Exit(code=code)
    console.note(f"the sanitizer {sanitizer} found nothing")
