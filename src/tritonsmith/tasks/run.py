"""`run --sanitizer`: a program whose Triton was built with a sanitizer, and what the sanitizer finds."""

from __future__ import annotations

import sys
from typing import Any

from tritonsmith.tasks import output
from tritonsmith.tasks.option_fields import flag
from tritonsmith.tasks.option_task import command_line
from tritonsmith.tasks.options import DRY_RUN, ENV
from tritonsmith.tasks.task import task
from tritonsmith.ui import console


@task(name="run")
def run_(
    context: Any,
    sanitizer: str = flag("that Triton was built with: address, undefined or thread", ""),
    env: str = ENV,
    dry_run: bool = DRY_RUN,
) -> None:
    """Run a program with a Triton that a sanitizer watches."""
    from invoke.exceptions import Exit

    from tritonsmith.builder import sanitized_run
    from tritonsmith.envs import settings, workspace
    from tritonsmith.errors import SmithError

    _, argv = command_line()
    space = workspace.default()
    place = space.env(settings.load(env).name)
    prepared = sanitized_run.prepare(argv, sanitizer, place, space)
    if dry_run:
        output.plan(prepared.plan)
        return

    def show(data: bytes) -> None:
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()

    code = sanitized_run.execute(prepared, space, show)
    head, lines = sanitized_run.first_error(prepared.folder, sanitizer)
    if head:
        raise SmithError(head, where=prepared.folder, why="\n".join(lines) or None)
    if code:
        raise Exit(code=code)
    console.note(f"the sanitizer {sanitizer} found nothing")
