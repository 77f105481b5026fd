"""The page of a bisect in a real Chromium."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration import chromium
from tests.integration.harness import Smith
from tests.integration.test_passes_report import MATMUL, SIGNATURE
from tests.support import require
from tests.unit.lab.bisect.findings import FINDINGS
from tritonsmith.cli.tasks.kernel_options import CompileOptions, compared_kernels
from tritonsmith.compiler.tritons import Triton
from tritonsmith.lab.bisect import report
from tritonsmith.lab.bisect.report import BisectTexts
from tritonsmith.lab.isolate import first_pass_with
from tritonsmith.lab.isolate.first_pass_with import Level


@pytest.mark.slow
def test_what_the_page_shows_of_two_real_compiles(
    with_wheel: Smith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITONSMITH_HOME", str(with_wheel.home))
    python = str(with_wheel.env("wheel") / "venv" / "bin" / "python")
    what = CompileOptions(signature=SIGNATURE, target=("h100",))
    (kernel,) = compared_kernels(str(MATMUL), what)
    good, bad = (Triton(str(n), python=python, options={"num_stages": n}) for n in (1, 3))
    found = first_pass_with.parting(kernel.asked, good, bad, tmp_path / "dumps", silent=True)
    assert found.level is Level.PASSES
    assert found.name in found.sentence
    by_pass = BisectTexts(found.name, found.language, found.good, found.bad, found.file)
    report.write(replace(FINDINGS, by_pass=by_pass), tmp_path / "bisect.html")
    require(chromium.found())
    with chromium.page(tmp_path / "profile") as tab:
        assert found.name in tab.read(tmp_path / "bisect.html")
        assert tab.js("document.querySelectorAll('code.added').length") > 0


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    report.write(FINDINGS, tmp_path / "bisect.html")
    require(chromium.found())
    with chromium.page(tmp_path / "profile") as tab:
        shown = tab.read(tmp_path / "bisect.html")
        assert tab.js("document.querySelectorAll('svg circle').length") == len(FINDINGS.points)
        back = "getComputedStyle(document.querySelector('code.{}')).backgroundColor"
        assert tab.js(back.format("added")) != tab.js(back.format("gone"))
        places = (
            "[...document.querySelectorAll('code.gone, code.added')].map(one => one.getBoundingClientRect())"
        )
        (left, right) = tab.js(f"{places}.map(one => [one.left, one.top])")
        assert left[0] < right[0], "the good text is on the left"
        assert left[1] == right[1]
        title = tab.js("document.querySelector('circle title').textContent")
    assert title == "3.6.0: good: spills 980"
    assert "[Pipeliner] Wait <later> (#123)" in shown
    assert "tritongpu-coalesce" in shown
