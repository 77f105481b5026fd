from __future__ import annotations

import json
import re
from itertools import groupby

import pytest

from tests.unit.doctor.conftest import VERSIONS, Programs
from tests.unit.facts import fakes
from tritonsmith.core.envs.schema import Settings, TritonSettings
from tritonsmith.core.errors import UsageError
from tritonsmith.doctor import finding, registry
from tritonsmith.doctor.check import Check
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import Finding, ok

QUICK = [check for check in registry.ALL if not check.deep]


def test_names_and_titles() -> None:
    names = [check.id for check in registry.ALL]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+\.[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)
    assert max(len(name.partition(".")[2]) for name in names) < 18  # the width of their column
    assert all(check.title and not check.title.endswith(".") for check in registry.ALL)


def test_a_group_stands_together() -> None:
    groups = [group for group, _ in groupby(registry.ALL, key=lambda check: check.group)]
    assert groups[:4] == ["machine", "tools", "sources", "builds"]
    assert len(set(groups)) == len(groups)


@pytest.mark.parametrize("check", QUICK, ids=lambda check: check.id)
def test_where_there_is_nothing_yet_each_says_so(
    subject: DoctorContext, programs: Programs, check: Check
) -> None:
    programs({})
    found = check(subject)
    assert found
    assert {one.status for one in found} <= {"ok", "note", "not applicable", "error"}
    assert all(one.seen and one.check == check.id for one in found)
    assert {one.check for one in found if one.status == "error"} <= {
        "tools.cmake",
        "tools.ninja",
        "tools.git",
        "tools.clang",
    }


@pytest.mark.parametrize("era", fakes.ERAS)
def test_no_check_crashes_at_the_checkout_of_any_era(
    subject: DoctorContext, programs: Programs, era: str
) -> None:
    programs(VERSIONS)
    root = fakes.checkout(subject.cwd / "a triton", era)
    subject.cwd = root / "third_party"
    found = registry.examine(subject, QUICK)
    assert [one for one in found if one.status == "crashed"] == []
    assert subject.checkout is not None
    assert json.dumps(finding.as_json(found))


@pytest.mark.parametrize("trouble", ["gone", "no checkout", "marks of a merge", "too old", "no pin file"])
def test_sources_that_cannot_be_read_are_one_error_and_no_crash(
    subject: DoctorContext, programs: Programs, trouble: str
) -> None:
    programs(VERSIONS)
    root = subject.cwd / "triton"
    if trouble != "gone":
        fakes.checkout(root, "3.8")
    match trouble:
        case "no checkout":
            (root / "setup.py").unlink()
        case "marks of a merge":
            (root / "pyproject.toml").write_text("<<<<<<< HEAD\n")
        case "too old":
            text = (root / "setup.py").read_text()
            (root / "setup.py").write_text(text.replace("3.8.0", "1.1.0").replace("MIN_PYTHON", "X"))
        case "no pin file":
            (root / "cmake" / "llvm-info.json").write_text("{}")
    subject.settings = Settings("dev", triton=TritonSettings(source=str(root)))
    found = registry.examine(subject, QUICK)
    assert [one for one in found if one.status == "crashed"] == []
    assert [one.check for one in found if one.status == "error"] == ["sources.checkout"]


def test_all_are_chosen_but_the_deep_ones() -> None:
    assert list(registry.chosen()) == QUICK
    assert registry.chosen(deep=True) == registry.ALL


def test_checks_and_groups_are_chosen_by_name() -> None:
    taken = registry.chosen(["builds.llvm", "machine"])
    assert [check.id for check in taken] == [
        *(check.id for check in QUICK if check.group == "machine"),
        "builds.llvm",
    ]


def deep(_: DoctorContext) -> list[Finding]:
    return [ok("done")]


def test_a_deep_check_runs_when_it_is_named_or_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, quick = Check("tools.slow", "x", deep, deep=True), Check("tools.quick", "x", deep)
    monkeypatch.setattr(registry, "ALL", (slow, quick))
    assert registry.chosen() == registry.chosen(["tools"]) == (quick,)
    assert registry.chosen(["tools.slow"]) == (slow,)
    assert registry.chosen(["tools"], deep=True) == registry.chosen(deep=True) == (slow, quick)


@pytest.mark.parametrize(
    ("name", "nearest"), [("tools.cmaek", "tools.cmake"), ("tool", "tools"), ("Builds.llvm", "builds.llvm")]
)
def test_a_name_that_there_is_not(name: str, nearest: str) -> None:
    with pytest.raises(UsageError, match=f"no such check: '{name}'") as caught:
        registry.chosen(["machine", name])
    assert f"did you mean {nearest!r}?" in str(caught.value)


def test_the_others_go_on_when_one_crashes(subject: DoctorContext) -> None:
    def crash(_: DoctorContext) -> list[Finding]:
        raise ZeroDivisionError("of ours")

    found = registry.examine(
        subject, [Check("a.one", "x", deep), Check("a.two", "x", crash), Check("a.three", "x", deep)]
    )
    assert [(one.check, one.status) for one in found] == [
        ("a.one", "ok"),
        ("a.two", "crashed"),
        ("a.three", "ok"),
    ]
