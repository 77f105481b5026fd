"""The console entry point, which imports no more than the command line needs.

Besides the pages, it knows the answers of `explain`: one that was printed before is printed again, as long as
everything that it comes from is the same. That takes a look at some thousand files, but no Invoke.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from tritonsmith.cli import interruptible

_VALUED = ("--kind", "--source", "--llvm-dir")  # flags of `explain` of which an answer is kept
_SWITCHES = ("--all", "--json", "--wide")
_UNREAD = ("_", "OLDPWD", "SHLVL")  # variables that shells set, and nobody reads
# Seconds from the last change of a file to a run whose answer is kept: another change in the same tick of the
# file system's clock would not be seen. FAT has the longest one.
_SETTLED = 2.0


def main() -> None:
    """Print a page, or an answer that is known; or import and run the program."""
    began = time.time()
    with interruptible():
        from tritonsmith.cli import pages  # noqa: PLC0415 - before the import of Invoke and of rich
    # As in `task.end_at_closed_pipe`, whose import takes longer than a page.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if pages.answered(sys.argv[1:]):
        return
    question = None
    if is_kept(sys.argv[1:]) and sys.stdout and sys.stderr:
        with interruptible(), suppress(OSError, RuntimeError):
            question = Question.read(pages.workspace_folder(), pages.state_of_tool())
            if question.answered():
                return
    with interruptible():
        from tritonsmith.cli.program import main as run  # noqa: PLC0415 - this is what takes the time
    if question is None:
        run()
        return
    with _recorded() as printed:
        run()
    # Only now: an error has ended the program.
    question.keep(printed, began)


def is_kept(words: Sequence[str]) -> bool:
    """Return whether a command line is one `explain` that prints an answer, and does nothing else.

    Args:
        words: the arguments of the program.
    """
    if words[:1] != ["explain"]:
        return False
    things, rest = 0, [*words[1:]]
    while rest:
        word = rest.pop(0)
        flag, equals, _ = word.partition("=")
        if flag in _VALUED and not equals:
            # Invoke has its own rules for a value that looks like a flag.
            if not rest or rest.pop(0).startswith("-"):
                return False
        elif not (flag in _VALUED or word in _SWITCHES):
            # A second word would be another task.
            things += 1
            if word.startswith("-") or things > 1:
                return False
    return things == 1


class Question(NamedTuple):
    """A command line, and the file with its last answer.

    Attributes:
        file: in the workspace, one for each command line and folder.
        key: a digest of all that an answer depends on, except for files and git.
    """

    file: Path
    key: str

    @classmethod
    def read(cls, folder: Path, tool: str) -> Question:
        """Return the question that this process was asked.

        Args:
            folder: the workspace.
            tool: a text that changes with the tool.

        Raises:
            OSError: the current folder does not exist any more.
        """
        line = [*sys.argv, os.getcwd()]  # noqa: PTH109 - as a text
        environ = sorted(pair for pair in os.environ.items() if pair[0] not in _UNREAD)
        # Rich draws for the terminal that it finds.
        screen = [[_size(number) for number in range(3)], sys.stdout.encoding, sys.stderr.encoding]
        # A package that is installed or updated changes its folder.
        packages = [(path, _changed(path)) for path in sys.path]
        key = _digest([line, environ, screen, packages, tool, os.geteuid()])
        return cls(folder / "atlas" / f"answer-{_digest(line)[:16]}.json", key)

    def answered(self) -> bool:
        """Print the answer that is kept, if it is what the program would print now."""
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            printed = self._valid()
            streams = {1: sys.stdout, 2: sys.stderr}
            # All of the text is looked at first: half an answer would be worse than none.
            texts = [(streams[number], str(text)) for number, text in printed]
            # The program itself says what is wrong with a full disk or a closed pipe, by its exit code, too.
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
            for stream in streams.values():
                if isinstance(stream, io.TextIOWrapper):
                    stream.reconfigure(errors="replace")  # as each task does
            for stream, text in texts:
                stream.write(text)
                stream.flush()
            return True
        return False

    def _valid(self) -> list[Any]:
        """Return what was printed, as pairs of a stream's number and a text.

        Raises:
            OSError, ValueError, KeyError, TypeError, AttributeError: nothing is kept, or it is not valid.
        """
        from tritonsmith.core import untrusted  # noqa: PLC0415 - not free

        content = untrusted.read_json(self.file)
        if content["key"] != self.key:
            raise ValueError(self.file)
        from tritonsmith.atlas.source_files import state_of  # noqa: PLC0415
        from tritonsmith.facts import git  # noqa: PLC0415

        paths = [[Path(path) for path in content[name]] for name in ("tops", "lone")]
        if content["state"] != state_of(*paths).digest:
            raise ValueError(self.file)
        # Git's answer depends on its settings, its refs and all of its objects: so it is asked again.
        for file, begin, end, change in content["changes"]:
            if git.last_change(Path(content["root"]), file, begin, end) != tuple(change):
                raise ValueError(self.file)
        printed: list[Any] = content["printed"]
        return printed

    def keep(self, printed: list[tuple[int, str]], began: float) -> None:
        """Keep an answer, if it is known what it comes from.

        Args:
            printed: the streams' numbers, and the texts that were written to them.
            began: when this process began, in seconds since the epoch.
        """
        from tritonsmith.atlas.command import origins  # noqa: PLC0415 - `explain` has imported it
        from tritonsmith.core.plan import files  # noqa: PLC0415

        (origin,) = origins or (None,)
        if origin is None or not origin.index.certain or origin.state.newest > began - _SETTLED:
            return
        tree = origin.index.tree
        content = {
            "key": self.key,
            "tops": [*map(str, origin.tops)],
            "lone": [*map(str, origin.lone)],
            "state": origin.state.digest,
            "root": str(tree.root),
            "changes": tree.changes,
            "printed": printed,
        }
        # A question alone makes no workspace; what another process keeps at the same time is as good.
        with suppress(OSError):
            if files.is_marked(self.file.parents[1]):
                files.write_atomically(self.file, json.dumps(content), wait=False)


@contextmanager
def _recorded() -> Iterator[list[tuple[int, str]]]:
    """Yield a list of what is printed in the body of a `with`: the stream's number, and the text."""
    printed: list[tuple[int, str]] = []
    out, err = sys.stdout.write, sys.stderr.write

    def write_out(text: str) -> int:
        printed.append((1, text))
        return out(text)

    def write_err(text: str) -> int:
        printed.append((2, text))
        return err(text)

    sys.stdout.write, sys.stderr.write = write_out, write_err  # type: ignore[method-assign]
    try:
        yield printed
    finally:
        sys.stdout.write, sys.stderr.write = out, err  # type: ignore[method-assign]


def _size(number: int) -> list[int]:
    """Return the size of the terminal at a descriptor; empty for a file or a pipe."""
    try:
        return [*os.get_terminal_size(number)] if os.isatty(number) else []
    except OSError:
        return []


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_ctime_ns  # noqa: PTH116 - of a text
    except OSError:
        return 0


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
