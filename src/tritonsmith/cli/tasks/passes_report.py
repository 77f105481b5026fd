"""`passes.show --page`: write a dump as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.cli.tasks.option_fields import OutFile, again, flag
from tritonsmith.cli.tasks.options import FOLDER, OUT_FILE
from tritonsmith.cli.tasks.task import task


@task(name="report")
def report(
    context: Any,
    folder: Path = FOLDER,
    out: OutFile | None = again(OUT_FILE, "report.html in DIR"),
    against: Path | None = flag("another dump's folder, to compare with", None),
    open: bool = flag("open the page in the browser", default=False),  # noqa: A002 - a flag
) -> None:
    """Write one self-contained HTML page of all passes."""
    from tritonsmith.compiler.dump import index
    from tritonsmith.core.ui import console
    from tritonsmith.core.ui import units as formats
    from tritonsmith.inspect.report import write

    file = out.path("report.html") if out else folder / "report.html"
    write.check(file)
    made = write.make(index.read(folder), file, index.read(against) if against else None)
    console.out().print(str(made.path), markup=False)
    console.note(
        f"{made.passes} passes, {formats.size(made.dumped)} of IR in {formats.size(made.size)}, "
        f"{formats.duration(made.seconds)}"
    )
    if open:
        import webbrowser

        if not webbrowser.open(made.path.as_uri()):
            console.warn("no browser found: open the file in your browser")
