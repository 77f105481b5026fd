"""The console entry: it imports as little as what was asked for needs."""

from __future__ import annotations

import sys

from tritonsmith.cli.interrupt import interruptible


def main() -> None:
    """Import the program, and run it; or print what a shell offers at Tab, which imports less."""
    if sys.argv[1:2] == ["--complete"]:
        with interruptible():
            from tritonsmith.cli import completion  # noqa: PLC0415
        completion.main(sys.argv[1:])
        return
    with interruptible():
        from tritonsmith.cli.program import main as run  # noqa: PLC0415 - this is what takes the time
    run()
