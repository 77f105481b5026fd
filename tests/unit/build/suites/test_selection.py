"""Which tests a command line names, and what it means if none ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.atlas.planted import plant
from tests.unit.build.suites.test_results import UNITS
from tritonsmith.build.suites import command
from tritonsmith.build.suites.command import NothingRunError
from tritonsmith.build.suites.results import SUITES, SuiteTest
from tritonsmith.build.suites.selection import SuiteSelection, SuiteTree
from tritonsmith.core.errors import FactError, UsageError

pytestmark = pytest.mark.unit

NONE: frozenset[str] = frozenset()


@pytest.fixture
def tree(tmp_path: Path) -> SuiteTree:
    root = plant(tmp_path / "triton")
    more = {
        "test/lit.cfg.py": "",
        "unittest/Tools/CMakeLists.txt": UNITS,
        "unittest/Tools/LayoutTest.cpp": "",
        "python/test/unit/language/test_frontend.py": "def test_a(): pass\n",
        "python/test/unit/language/test_random.py": "@pytest.mark.interpreter\ndef test_b(): pass\n",
        "python/test/unit/runtime/test_cache.py": "def test_nochange(): pass\n",
    }
    for name, text in more.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return SuiteTree(root, ("nvidia",))


def test_whole_suites(tree: SuiteTree) -> None:
    found = tree.whole(SUITES)
    assert found.lit == ("test",)
    assert [unit.name for unit in found.cpp] == ["TestLayout", "TestMore"]
    assert found.gpu_less == (
        "python/test/unit/language/test_frontend.py",
        "python/test/unit/runtime/test_cache.py::test_nochange",
    )
    assert found.interpreter == ("python/test/unit/language/test_random.py",)
    assert found.suites == SUITES
    assert tree.whole(["lit"]).suites == ("lit",)


def test_what_a_checkout_lacks_is_left_out_with_a_reason(tmp_path: Path) -> None:
    found = SuiteTree(plant(tmp_path), ("nvidia",)).whole(SUITES)
    assert found.suites == ()
    assert {what for what, _ in found.left_out} == set(SUITES)
    assert all(why for _, why in found.left_out)
    with pytest.raises(NothingRunError, match="no test ran") as error:
        command.check(found, (), tmp_path)
    assert error.value.exit_code == 6
    assert "upstream marks them since 3.0" in str(error.value)


def test_named_paths(tree: SuiteTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree.root / "test")
    words = ("TritonGPU", "unittest/Tools/LayoutTest.cpp", "python/test/unit/test_core.py::test", "lib")
    found, rest = tree.named(words, frozenset())
    assert found.lit == ("test/TritonGPU",)
    assert [unit.name for unit in found.cpp] == ["TestLayout"]
    assert found.gpu_less == ("python/test/unit/test_core.py::test",)
    assert rest == ["lib"]
    again, _ = tree.named(words[2:3], frozenset({"interpreter"}))
    assert again.interpreter == found.gpu_less


@pytest.mark.parametrize(
    ("word", "suites", "says"),
    [
        ("test/none.mlir", NONE, "no such file or folder in this checkout"),
        ("/etc/passwd", NONE, "no such file or folder in this checkout"),
        ("test/TritonGPU", {"cpp"}, "these are tests of lit, and --cpp asks for others"),
        ("test/lit.cfg.py", NONE, "this is not a lit test"),
    ],
)
def test_what_cannot_be_named(tree: SuiteTree, word: str, suites: frozenset[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        tree.named([word], frozenset(suites))  # type: ignore[arg-type]


def test_a_suite_that_ran_nothing_is_no_success(tmp_path: Path) -> None:
    both = SuiteSelection(lit=("test",), gpu_less=("a.py",))
    passed, skipped = SuiteTest("lit", "a", "passed"), SuiteTest("gpu-less", "b", "skipped", why="no torch")
    with pytest.raises(NothingRunError, match="no test of gpu-less") as error:
        command.check(both, (passed, skipped), tmp_path)
    assert error.value.why == "no torch"
    command.check(SuiteSelection(lit=("test",)), (passed,), tmp_path)


def test_an_environment_without_a_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path))
    with pytest.raises(FactError, match="has no build of Triton with tests") as error:
        command.find("dev")
    assert "build-triton --env dev --for tests" in str(error.value)
