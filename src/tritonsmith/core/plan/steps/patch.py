"""Change a text file of a user's checkout, if its text is still the one that the plan was made from."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.errors import OwnershipError, StepError
from tritonsmith.core.plan import files
from tritonsmith.core.plan.steps.base import Step, StepTools, quote


@dataclass(frozen=True)
class Patch(Step):
    """Replace the text of a file, printed as a diff; nothing to do if the file has the new text already.

    The texts are `untrusted.exact_text`, so what is not changed stays byte for byte; so does the mode.

    Attributes:
        root: top folder of the checkout.
        name: the file, relative to it.
        before: the text that it must have.
        after: its new text.
    """

    root: Path
    name: str
    before: str
    after: str

    def shell(self) -> list[str]:
        old, new = _lines(self.before), _lines(self.after)
        diff = difflib.unified_diff(old, new, f"a/{self.name}", f"b/{self.name}", lineterm="")
        lines = "\n".join(diff).split("\n")
        end = "EOF"
        while end in lines:
            end += "_"
        return [f"git -C {quote(self.root)} apply <<'{end}'", *lines, end]

    def act(self, tools: StepTools) -> None:
        path = self.root / self.name
        check_unlinked(self.root, self.name)
        text = untrusted.exact_text(path)
        if text == self.after:
            return
        if text != self.before:
            raise StepError(
                "this file has changed since the plan was made",
                where=path,
                hints=["look at the change, and start again"],
            )
        files.write_atomically(path, untrusted.exact_bytes(self.after))


def check_unlinked(root: Path, name: str) -> None:
    """Check that neither a file nor a folder on the way to it is a link: it may lead out of the checkout.

    Raises:
        OwnershipError: one of them is a link.
    """
    for path in (root / name, *(root / name).parents):
        if path == root:
            break
        if path.is_symlink():
            hints = [f"make it a file, or a folder, of {root}"]
            raise OwnershipError("refusing to write through a link", where=path, hints=hints)


def _lines(text: str) -> list[str]:
    """Return lines as a diff has them; one without an end is marked as git marks it."""
    lines = text.split("\n")
    last = lines.pop()
    return [*lines, f"{last}\n\\ No newline at end of file"] if last else lines
