"""`passes.report`: a dump as one HTML file."""

from __future__ import annotations

from typing import Any

from tritonsmith.tasks.task import given, task


@task(
    name="report",
    positional=["folder"],
    help={
        "folder": "a folder that passes.dump or passes.import wrote",
        "out": "the file (default: report.html in that folder)",
        "against": "another such folder, to compare: another target, other options, another Triton",
        "open": "show it in the browser",
    },
)
def report(context: Any, folder: str, out: str = "", against: str = "", open: bool = False) -> None:  # noqa: A002 - a flag
    """Write one HTML page of all passes, which needs no network."""
    from pathlib import Path

    from tritonsmith.passes.dump import index
    from tritonsmith.passes.report import write
    from tritonsmith.ui import console
    from tritonsmith.ui import units as formats

    place = Path(folder).expanduser().absolute()
    other = Path(against).expanduser().absolute() if given(against) else None
    file = Path(out).expanduser().absolute() if given(out) else place / "report.html"
    write.check(file)
    made = write.make(index.read(place), file, index.read(other) if other else None)
    console.out().print(str(made.path), markup=False)
    console.note(
        f"{made.passes} passes, {formats.size(made.dumped)} of IR in {formats.size(made.size)}, "
        f"{formats.duration(made.seconds)}"
    )
    if open:
        import webbrowser

        if not webbrowser.open(made.path.as_uri()):
            console.warn("no browser was found here: open the file in yours")
