"""`plugin.check`: whether a plugin fits a Triton."""

from __future__ import annotations

from pathlib import Path

from invoke.context import Context

from tritonsmith.build import plugins
from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import word
from tritonsmith.cli.tasks.options import JSON, LOADER
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler import tritons
from tritonsmith.compiler.replay import replayer
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.core.ui import console
from tritonsmith.facts import installed_tritons, machine


@task(tables=True, name="check")
def check_(
    context: Context,
    plugin: Path = word("the plugin: a shared library"),
    wheel: str = LOADER,
    json: bool = JSON,
) -> None:
    """Check whether a plugin is compatible with a Triton."""
    compiler = tritons.parse(wheel)
    if compiler.targets or compiler.options or compiler.folder:
        raise UsageError(
            f"--wheel {wheel} must name a Triton, and nothing else", hints=["--wheel 3.9.0", "--wheel dev"]
        )
    place = tritons.place_of(compiler)
    library = replayer.library(place.python)
    found = installed_tritons.of_python(place.python)
    version = found.version if found else ""
    checked = plugins.check(plugin, library, place.python, version, machine.read(), place.space)
    if json:
        output.json(checked.as_json())
    else:
        console.out().print(plugins.rows_table(checked))
    if checked.misfits:
        raise SmithError(
            f"this plugin is not compatible with Triton {checked.version}",
            where=plugin,
            why="\n".join(
                f"{row.what}: {row.why or f'{row.plugin}, not {row.triton}'}" for row in checked.misfits
            ),
            hints=["compile it with clang against the headers of that release, and link it to its libtriton"],
        )
