"""Change a text file of a user's checkout, if its text is still the one that the plan was made from."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.errors import StepError
from tritonsmith.plan import files
from tritonsmith.plan.steps.base import Step, StepTools, quote


@dataclass(frozen=True)
class Patch(Step):
    """Replace the text of a file, printed as a diff; nothing to do if the file has the new text already.

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
        text = path.read_bytes().decode(errors="replace")
        if text == self.after:
            return
        if text != self.before:
            raise StepError(
                "this file has changed since the plan was made",
                where=path,
                hints=["look at the change, and start again"],
            )
        files.write_atomically(path, self.after)


def _lines(text: str) -> list[str]:
    """Lines as a diff has them; one without an end is marked as git marks it."""
    lines = text.split("\n")
    last = lines.pop()
    return [*lines, f"{last}\n\\ No newline at end of file"] if last else lines
