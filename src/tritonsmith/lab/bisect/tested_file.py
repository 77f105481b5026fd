"""The test of `--test`: a file of the commit under test, or the very file that was given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.errors import UsageError
from tritonsmith.facts import checkout, git_history

_FOR_PYTEST = ("python/test", "python/conftest.py", "python/pytest.ini", "pytest.ini")


@dataclass(frozen=True)
class TestFile:
    """A test.

    Attributes:
        path: in the checkout, or absolute.
        name: of one test in it; empty for all.
        lit: whether lit runs it.
        of_commit: each commit has its own.
    """

    __test__ = False  # no test class of pytest's

    path: str
    name: str = ""
    lit: bool = False
    of_commit: bool = False

    @property
    def needed(self) -> tuple[str, ...]:
        """The folders that a commit's own tests consist of."""
        if self.lit:
            return ("test",)
        return _FOR_PYTEST if self.of_commit else ()


def parse(text: str, clone: Path | None, commit: str) -> TestFile:
    """The test of `FILE` or `FILE::NAME`.

    Args:
        text: as it was given.
        clone: Triton's history; None if only releases are tested.
        commit: the bad end; empty for a release.

    Raises:
        UsageError: there is no such file, on disk or in that commit; or lit's, and no commits to run it on.
    """
    head, _, name = text.partition("::")
    file = Path(head).expanduser()
    inside = _inside(file, clone) if clone and commit else ""
    if clone and inside:
        with git_history.opened(clone) as repository:
            content = git_history.text_at(repository, commit, inside)
        if content is not None:
            lit = checkout.is_lit_test(inside, content)
            if lit and not inside.startswith("test/"):
                raise UsageError("--test: only lit tests below test/ are run", where=inside)
            return TestFile(inside, name, lit, of_commit=True)
    if not file.is_file():
        hints = ["--test FILE or FILE::NAME; with --source and commits as ends, also a path in Triton"]
        what = f"--test: no such file{' on disk, or at the bad end' if inside else ''}"
        raise UsageError(what, where=inside or file.absolute(), hints=hints)
    found = TestFile(str(file.absolute()), name, checkout.is_lit_test(file.name, untrusted.read_text(file)))
    if found.lit and not commit:
        raise UsageError(
            "a lit test cannot run on a release: wheels have no triton-opt",
            where=file,
            hints=["--source CLONE with commits, tags or branches as --good and --bad"],
        )
    return found


def _inside(file: Path, clone: Path) -> str:
    """The path of a file in Triton; empty for one that is elsewhere."""
    if file.resolve().is_relative_to(clone.resolve()):
        return file.resolve().relative_to(clone.resolve()).as_posix()
    return "" if file.is_absolute() or file.exists() else file.as_posix()
