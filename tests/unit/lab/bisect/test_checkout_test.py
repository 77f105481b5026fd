"""Which test `--test` names, one of each commit's own or the very file, and what it says of a Triton."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.repositories import Made
from tritonsmith.compiler import tritons
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import UsageError
from tritonsmith.lab.bisect import program_tests
from tritonsmith.lab.bisect.program_tests import CheckoutTests, TestFile
from tritonsmith.lab.journal import Verdict

pytestmark = pytest.mark.unit

GOOD, BAD, SKIP = Verdict.GOOD, Verdict.BAD, Verdict.SKIP
LIT, PYTEST = "test/Triton/ops.mlir", "python/test/unit/test_x.py"


@pytest.fixture
def made(make: Callable[[str], Made]) -> Made:
    found = make("triton")
    found.commit(
        "tests", {LIT: "// RUN: x", PYTEST: "'RUN: no lit'", "third_party/amd/test/a.mlir": "// RUN: x"}
    )
    return found


def test_a_path_in_the_clone_is_a_test_of_each_commit(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    head = made.git("rev-parse", "HEAD")
    for text in (LIT, str(made.path / LIT)):
        assert program_tests.parse(text, made.path, head) == TestFile(LIT, lit=True, of_commit=True)
    monkeypatch.chdir(made.path / "python")
    assert program_tests.parse("test/unit/test_x.py::test_a", made.path, head) == TestFile(
        PYTEST, "test_a", of_commit=True
    )


def test_a_file_elsewhere_is_the_very_file(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = made.git("rev-parse", "HEAD")
    (tmp_path / "mine.mlir").write_text("// RUN: x")
    monkeypatch.chdir(tmp_path)
    found = program_tests.parse("mine.mlir", made.path, head)
    assert found == TestFile(str(tmp_path / "mine.mlir"), lit=True)
    assert found.needed == ("test",)  # the configuration of the commit's own


def test_what_cannot_be_tested_is_refused(made: Made) -> None:
    head = made.git("rev-parse", "HEAD")
    with pytest.raises(UsageError, match="no such file on disk, or at the bad end"):
        program_tests.parse("test/none.mlir", made.path, head)
    with pytest.raises(UsageError, match="only lit tests below test/"):
        program_tests.parse("third_party/amd/test/a.mlir", made.path, head)
    with pytest.raises(UsageError, match="a lit test cannot run on a release"):
        program_tests.parse(str(made.path / LIT), None, "")
    assert program_tests.parse(str(made.path / PYTEST), None, "") == TestFile(str(made.path / PYTEST))


def spec(label: str) -> Triton:
    return Triton(label, version=label)


PYTESTS = {
    "good": "def test_a(): pass\ndef test_b(): assert False, 'always'\n",
    "bad": "def test_a(): raise ValueError('0x12 is wrong')\ndef test_b(): assert False, 'always'\n",
    "bad again": "def test_a(): raise ValueError('0x77 is wrong')\n",
    "otherwise": "def test_a(): raise KeyError('x')\n",
    "unreadable": "def test_a(:\n",
}


@pytest.mark.slow
def test_a_test_is_bad_where_it_fails_as_at_the_bad_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = TestFile("python/test/test_x.py", of_commit=True)
    for name, text in PYTESTS.items():
        file = tmp_path / name / "source" / test.path
        file.parent.mkdir(parents=True)
        file.write_text(text)
        (tmp_path / name / "bin").mkdir()
        (tmp_path / name / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "none" / "bin").mkdir(parents=True)
    (tmp_path / "none" / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PYTHONPATH", next(folder for folder in sys.path if folder.endswith("site-packages")))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # these few tests need none of our plugins
    monkeypatch.setattr(
        tritons, "place_of", lambda one: SimpleNamespace(python=tmp_path / one.label / "bin" / "python")
    )
    tests = CheckoutTests(test, tmp_path / "tests", lambda: spec("good"), lambda: spec("bad"))
    outcomes = {name: tests.test(spec(name)) for name in (*PYTESTS, "none")}
    assert {name: one.verdict for name, one in outcomes.items()} == {
        "good": GOOD, "bad": BAD, "bad again": BAD, "otherwise": SKIP, "unreadable": SKIP, "none": SKIP,
    }  # fmt: skip
    assert outcomes["otherwise"].why == "it fails in another way"
    assert outcomes["unreadable"].why.startswith("pytest did not run it: ")
    assert outcomes["none"].why == f"this commit has no {test.path}"
    nothing_new = CheckoutTests(test, tmp_path / "tests", lambda: spec("bad"), lambda: spec("bad again"))
    assert nothing_new.test(spec("bad")).verdict is BAD
