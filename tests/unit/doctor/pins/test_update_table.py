from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from tests.unit.repositories import Made, Maker
from tritonsmith.core import configs
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import Write
from tritonsmith.core.text import version_key
from tritonsmith.doctor.pins import read_upstream
from tritonsmith.doctor.pins.read_upstream import LivePin, Reading
from tritonsmith.facts import pytorch_pins

COMMIT = "c" * 40
PIN_FILE = ".ci/docker/ci_commit_pins/triton.txt"


@pytest.fixture
def text() -> str:
    """The table that ships with the tool."""
    return (configs.data_dir("configs") / "pytorch-pins.toml").read_text(encoding="utf-8")


def pin(channel: str, commit: str, version: str = "", llvm: str = "", same_as: str = "") -> LivePin:
    return LivePin(
        channel, channel.upper(), commit, version, PIN_FILE, same_as, llvm, "the table" if llvm else ""
    )


def reading(version: str, *pins: LivePin) -> Reading:
    return Reading("/a clone of mine", f"v{version}", COMMIT, "2026-01-01T00:00:00+00:00", pins)


def rows(text: str) -> dict[str, dict[str, Any]]:
    return {row["pytorch"]: row for row in tomllib.loads(text)["release"]}


def test_the_library_writes_the_file_as_it_is(text: str) -> None:
    assert tomlkit.dumps(tomlkit.parse(text)) == text


def test_an_unknown_pin_becomes_a_read_one(text: str) -> None:
    before = rows(text)["2.9.0"]
    commit = before["cuda"]["candidates"][0]
    read = reading("2.9.0", pin("cuda", commit, "3.5.0"), pin("rocm", commit, "3.5.0", same_as="cuda"))
    revision = read_upstream.revise(text, "2.9.0", read)
    assert revision.changes == (
        f"2.9.0 CUDA: unknown -> {commit[:10]} (read)",
        "2.9.0 ROCm: the same file as CUDA -> the same file as CUDA (read)",
    )
    after = rows(revision.text)["2.9.0"]
    assert after["cuda"] == {
        "version": "3.5.0",
        "requires": before["cuda"]["requires"],
        "commit": commit,
        "grade": "read",
        "llvm": before["cuda"]["llvm"],
        "llvm-grade": "read-at-commit",
        "source": [f"pytorch v2.9.0 = {COMMIT}, {PIN_FILE}"],
    }
    assert after["rocm"]["same-file"] is True
    assert after["rocm"]["note"] == before["rocm"]["note"]
    assert (after["xpu"], after["wheel"]) == (before["xpu"], before["wheel"])


def test_nothing_else_in_the_file_changes(text: str) -> None:
    revision = read_upstream.revise(text, "2.9.0", reading("2.9.0", pin("cuda", "1" * 40, "3.5.0")))
    mark = '[[release]]\npytorch = "2.9.0"\n'
    end = "\n[release.rocm]"
    head, _, tail = text.partition(mark)
    new_head, _, new_tail = revision.text.partition(mark)
    assert new_head == head
    assert new_tail.partition(end)[2] == tail.partition(end)[2]
    assert "candidates" not in new_tail.partition(end)[0]
    assert "llvm" not in new_tail.partition(end)[0]  # that was of the candidates
    assert "'triton==3.5.0; platform_system ==" in new_tail.partition(end)[0]  # quoted as before


def test_the_same_again_changes_nothing(text: str) -> None:
    read = reading("2.9.0", pin("cuda", "1" * 40, "3.5.0", "2" * 40), pin("xpu", "3" * 40))
    once = read_upstream.revise(text, "2.9.0", read)
    assert len(once.changes) == 2
    assert read_upstream.revise(once.text, "2.9.0", read) == read_upstream.Revision(once.text, ())


def test_a_confirmed_pin_keeps_its_llvm_and_another_one_does_not(text: str) -> None:
    before = rows(text)["2.13.0"]["cuda"]
    same = read_upstream.revise(text, "2.13.0", reading("2.13.0", pin("cuda", before["commit"], "3.7.1")))
    after = rows(same.text)["2.13.0"]["cuda"]
    assert (after["grade"], after["llvm"]) == ("read", before["llvm"])
    other = read_upstream.revise(text, "2.13.0", reading("2.13.0", pin("cuda", "1" * 40, "3.7.1")))
    assert "llvm" not in rows(other.text)["2.13.0"]["cuda"]
    known = read_upstream.revise(text, "2.13.0", reading("2.13.0", pin("cuda", "1" * 40, "3.7.1", "2" * 40)))
    assert rows(known.text)["2.13.0"]["cuda"]["llvm"] == "2" * 40


def test_a_channel_that_the_row_did_not_have(text: str) -> None:
    revision = read_upstream.revise(
        text, "2.3.1", reading("2.3.1", pin("cuda", "1" * 40), pin("xpu", "3" * 40, "2.1.0"))
    )
    row = rows(revision.text)["2.3.1"]
    assert list(row) == ["pytorch", "cuda", "rocm", "xpu", "wheel"]
    assert (row["xpu"]["version"], row["xpu"]["grade"]) == ("2.1.0", "read")


@pytest.mark.parametrize("version", ["2.16.0", "2.9.2", "1.13.1"])
def test_a_new_release_goes_where_it_belongs(text: str, version: str) -> None:
    read = reading(version, pin("cuda", "1" * 40, "3.9.9"), pin("rocm", "1" * 40, same_as="cuda"))
    revision = read_upstream.revise(text, version, read)
    found = rows(revision.text)
    assert list(found) == sorted(found, key=version_key)
    assert found[version]["wheel"] == {"grade": "unknown"}
    assert found[version]["rocm"]["same-file"] is True
    assert "\n\n\n" not in revision.text
    assert revision.text.endswith("\n")
    assert not revision.text.endswith("\n\n")
    assert read_upstream.revise(revision.text, version, read).changes == ()


def test_what_is_written_can_be_read_back(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    revision = read_upstream.revise(text, "2.16.0", reading("2.16.0", pin("cuda", "1" * 40, "3.9.9")))
    (tmp_path / "pytorch-pins.toml").write_text(revision.text, encoding="utf-8")
    monkeypatch.setattr(configs, "data_dir", lambda _: tmp_path)
    release = pytorch_pins.find("2.16").release
    assert (release.cuda.commit, release.cuda.grade) == ("1" * 40, "read")
    assert (release.cuda.requires, release.wheel.commit, release.xpu) == ("", "", None)


@pytest.fixture
def pytorch(make: Maker) -> Made:
    made = make("pytorch")
    for version, digit in (("2.9.0", "1"), ("2.9.1", "2")):
        made.commit(version, {PIN_FILE: f"{digit * 40}\n"})
        made.git("tag", f"v{version}")
    return made


def test_several_tags_and_one_that_is_missing(pytorch: Made, text: str) -> None:
    found, missing = read_upstream.readings(
        ["2.9.0", "2.9.1", "2.10.0"], str(pytorch.path), workspace.default()
    )
    assert (list(found), missing) == (["2.9.0", "2.9.1"], ("2.10.0",))
    revision = read_upstream.revise_all(text, found)
    assert [rows(revision.text)[version]["cuda"]["commit"][0] for version in found] == ["1", "2"]
    assert len(revision.changes) == 4
    assert str(pytorch.path) not in revision.text


def test_a_first_tag_that_is_missing_ends_it(pytorch: Made) -> None:
    with pytest.raises(SmithError, match="no tag, branch or commit 'v2"):
        read_upstream.readings(["2.8.0", "2.9.0"], str(pytorch.path), workspace.default())


def test_the_plan_writes_the_file_or_nothing(text: str, tmp_path: Path) -> None:
    file = tmp_path / "table.toml"
    changed = read_upstream.Revision("new\n", ("2.9.0 CUDA: unknown -> 1111111111 (read)",))
    plan = read_upstream.plan_table(file, changed)
    assert plan.steps == (Write(file, "new\n", phase=read_upstream.TABLE_PHASE),)
    assert "# note: 2.9.0 CUDA: unknown -> 1111111111 (read)" in plan.shell()
    assert read_upstream.plan_table(file, read_upstream.Revision(text, ())).steps == ()
    read_upstream.execute(plan, workspace.default())
    assert file.read_text() == "new\n"


def test_only_a_checkout_has_a_table_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_upstream.table_file() == configs.data_dir("configs") / "pytorch-pins.toml"
    monkeypatch.setattr(configs, "data_dir", lambda name: tmp_path / "_data" / name)
    with pytest.raises(SmithError, match="only be updated in a checkout of tritonsmith"):
        read_upstream.table_file()
