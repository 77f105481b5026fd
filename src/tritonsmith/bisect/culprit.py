"""Inside a culprit: the pass at which the compiles by its two sides part, and the file of that pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tritonsmith.errors import SmithError
from tritonsmith.kernels.batch import wheel_env
from tritonsmith.kernels.batch.spec import CompilerSpec, applied
from tritonsmith.kernels.compile.request import CompileRequest
from tritonsmith.passes.dump import run, select
from tritonsmith.passes.dump.options import Choices
from tritonsmith.passes.replay import pass_source
from tritonsmith.passes.view import diff
from tritonsmith.passes.view.diff import ComparedRun

_RELEASES = "two releases may print one IR in two ways, so this is where to look first and no proof"


def parting(
    asked: CompileRequest,
    good: CompilerSpec,
    bad: CompilerSpec,
    out: Path,
    checkout: Path | None = None,
    *,
    silent: bool = False,
) -> str:
    """A sentence: the first pass whose results differ; or why nobody can say.

    Args:
        asked: the kernel; the first of its targets is compiled.
        good: the Triton before the culprit.
        bad: the culprit's.
        out: folder of both dumps.
        checkout: sources in which the file of the pass is searched; None for none.
        silent: show no progress.
    """
    try:
        one, other = (
            _dump(replace(asked, targets=asked.targets[:1]), triton, out / name, silent=silent)
            for name, triton in (("good", good), ("bad", bad))
        )
    except SmithError as error:
        return f"passes: not comparable: {error.what}"
    found = diff.divergence(one, other)
    if found.already:
        return "passes: not comparable: the two print different IR before the first pass already"
    said = f"passes: {diff.said(found).rstrip(':')}"
    if good.version and bad.version:
        said = f"{said}; {_RELEASES}"
    named = found.other or found.one
    source = pass_source.find(named.label, checkout) if named and checkout else None
    return f"{said}; {source.file.relative_to(source.root)}" if source else said


def _dump(asked: CompileRequest, triton: CompilerSpec, out: Path, *, silent: bool) -> ComparedRun:
    request = applied(asked, triton)
    made = run.of_kernel(request, wheel_env.place_of(triton, 1), Choices(line_info=False), out)
    index, _ = run.dump_kernel(made, silent=silent)
    return ComparedRun(index, select.kernel(index, index.kernels[0].name if index.kernels else ""))
