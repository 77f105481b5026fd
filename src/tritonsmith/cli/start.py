"""The console entry point, which imports no more than the command line needs."""

from __future__ import annotations

import signal
import sys

from tritonsmith.cli import interruptible


def main() -> None:
    """Print a page about the command line, which needs few imports; or import and run the program."""
    with interruptible():
        from tritonsmith.cli import pages  # noqa: PLC0415 - before the import of Invoke and of rich
    # As in `task.end_at_closed_pipe`, whose import takes longer than a page.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if pages.answered(sys.argv[1:]):
        return
    with interruptible():
        from tritonsmith.cli.program import main as run  # noqa: PLC0415 - this is what takes the time
    run()
