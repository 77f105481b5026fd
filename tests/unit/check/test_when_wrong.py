"""`--when wrong`: an answer of the check as a predicate of bisect, and as a symptom under triage."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.check.texts import ADD, checked
from tritonsmith.check import check, when_wrong
from tritonsmith.compiler import targets, tritons
from tritonsmith.compiler.dump.index import DumpIndex
from tritonsmith.compiler.interpreter import choose_interpreter
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.lab.bisect.kernels import WrongResultTests
from tritonsmith.lab.compare.two_sides import ComparedKernel
from tritonsmith.lab.journal import Journal, Verdict
from tritonsmith.lab.triage import verdict
from tritonsmith.lab.triage.kernel import WrongKernelSubject
from tritonsmith.lab.triage.verdict import Conclusion

TEXTS = {
    "right": (ADD, ADD.replace("%sum", "%other")),
    "wrong": (ADD, ADD.replace('"arith.mulf"', '"arith.divf"')),
    "open": (ADD, ADD.replace('"arith.mulf"', '"tt.strange"')),
    "none": (ADD.replace('"arith.mulf"', '"tt.strange"'),),
}


def asked() -> CompileRequest:
    return CompileRequest(Path("add.py"), "add", "*fp32", targets.parse_all(("cuda:90",)))


@pytest.fixture(params=list(TEXTS))
def told(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The check is real; what it is about was not compiled."""

    def check_kernel(*_: object, **__: object) -> object:
        return DumpIndex(Path()), checked(*TEXTS[request.param])

    monkeypatch.setattr(check, "check_kernel", check_kernel)
    monkeypatch.setattr(tritons, "place_of", lambda *_: choose_interpreter("", sys.executable))
    return str(request.param)


def test_a_predicate(told: str, tmp_path: Path) -> None:
    kernel = ComparedKernel("add", asked())
    outcome = WrongResultTests((kernel,), tmp_path).test(Triton("3.8.0", version="3.8.0"))
    expected = {"right": Verdict.GOOD, "wrong": Verdict.BAD}.get(told, Verdict.SKIP)
    assert outcome.verdict is expected
    assert ("pass-0 changes the result" in outcome.figures) == (told == "wrong")
    assert bool(outcome.why) == (expected is Verdict.SKIP)


def test_nothing_to_check_is_no_good_triton(tmp_path: Path) -> None:
    outcome = WrongResultTests((), tmp_path).test(Triton("3.8.0", version="3.8.0"))
    assert outcome.verdict is Verdict.SKIP


def test_a_symptom(told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = choose_interpreter("", sys.executable)
    monkeypatch.setattr(WrongKernelSubject, "triton", "3.8.0")
    subject = WrongKernelSubject(asked(), where, (), tmp_path)
    found = verdict.run(subject, Journal(), lambda _name, _seen: None)
    assert found.decided == (told in ("right", "wrong"))
    assert found.conclusion is {"right": Conclusion.NOTHING, "wrong": Conclusion.DECIDED}.get(
        told, Conclusion.NONE
    )
    if told == "wrong":
        assert found.text == "k: pass-0 changes the result"
        assert {one.variant.name for one in found.tried} == {"the newest release", "the release before"}
        assert any(reason.startswith("first: out[") for reason in found.reasons)
        assert "--when wrong" in subject.bisect("3.9.0")


def test_wrong_and_a_limit_are_two_searches() -> None:
    assert when_wrong.is_requested(["wrong"])
    assert not when_wrong.is_requested(["spills>0"])
    with pytest.raises(UsageError, match="contradict"):
        when_wrong.is_requested(["wrong", "spills>0"])


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(when_wrong, "_PACKAGES", ("no_such_package",))
    with pytest.raises(FactError, match="needs packages that are not installed: no_such_package") as caught:
        when_wrong.require_packages()
    assert "tritonsmith[check]" in str(caught.value.hints)


IMPORT_ALL = """
import importlib, importlib.abc, pathlib, sys
packages, folder = sys.argv[1].split(","), pathlib.Path(sys.argv[2])

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in packages:
            raise ModuleNotFoundError(f"no {name}", name=name)

sys.meta_path.insert(0, Missing())
for room in ("cli", "lab"):
    for path in sorted((folder / room).rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        importlib.import_module(".".join(parts).removesuffix(".__init__"))
"""


@pytest.mark.slow
def test_commands_can_be_imported_without_its_packages() -> None:
    """They are of an extra: without it, `bisect`, `triage` and `reduce` work, but for `--when wrong`."""
    packages = ",".join(when_wrong._PACKAGES)
    folder = str(Path(check.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, packages, folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
