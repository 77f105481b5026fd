"""The console entry point, which imports no more than the command line needs."""

from __future__ import annotations

import sys

from tritonsmith.cli.interrupt import interruptible


def main() -> None:
    """Import and run the program; for a Tab of the shell, print completions, which needs fewer imports."""
    # Before the import of Invoke and of rich: a user waits for each Tab.
    if sys.argv[1:2] == ["--complete"]:
        with interruptible():
            from tritonsmith.cli import completion  # noqa: PLC0415
        completion.main(sys.argv[1:])
        return
    with interruptible():
        from tritonsmith.cli.program import main as run  # noqa: PLC0415 - this is what takes the time
    run()
