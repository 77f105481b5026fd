"""Pages of wheels: which of them are nightlies that can be installed here, and their order."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from git import Repo

from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs import receipts
from tritonsmith.core.errors import (
    DownloadError,
    FactError,
    InterruptedRunError,
    LockedError,
    SmithError,
    StepError,
    UsageError,
)
from tritonsmith.lab.bisect import history

pytestmark = pytest.mark.unit

HERE = f"cp{sys.version_info.major}{sys.version_info.minor}"
FILES = (
    f"triton-3.5.0%2Bgit12345678-{HERE}-{HERE}-linux_x86_64.whl#sha256=aa",
    "triton-3.5.0+git12345678-py3-none-any.whl",
    "triton-3.5.0+gitabcdef01-cp27-cp27m-linux_x86_64.whl",
    "pytorch_triton-3.6.0.dev20251103+git0badcafe-py3-none-any.whl",
    "pytorch_triton-3.6.0.dev20251012+gitfeedf00d-py3-none-any.whl",
    "triton_nightly-3.0.0.dev20240101-py3-none-any.whl",
    "triton-3.5.0-py3-none-any.whl",
    "torch-2.9.0.dev20251012-py3-none-any.whl",
    "broken.whl",
)


@pytest.fixture
def page(tmp_path: Path) -> str:
    file = tmp_path / "nightly.html"
    file.write_text("".join(f"<a href='{name}'>{name}</a>" for name in FILES))
    return file.as_uri()


def test_nightlies_that_fit_this_python_are_found(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("packaging.tags.platform_tags", lambda: iter(["linux_x86_64"]))
    found = {wheel.label: wheel for wheel in history.read_nightlies(page)}
    assert {label: wheel.commit for label, wheel in found.items()} == {
        "3.5.0+git12345678": "12345678",
        "3.6.0.dev20251103+git0badcafe": "0badcafe",
        "3.6.0.dev20251012+gitfeedf00d": "feedf00d",
        "3.0.0.dev20240101": "",
    }
    assert found["3.5.0+git12345678"].url.endswith("#sha256=aa")  # the wheel of this Python before any other


def test_dates_order_what_names_them(page: str) -> None:
    found = history.by_date(history.read_nightlies(page), "3.5.0", "3.6.0")
    assert [wheel.commit for wheel in found] == ["feedf00d", "0badcafe"]


def test_history_orders_commits_and_leaves_out_what_it_lacks() -> None:
    def wheel(commit: str) -> Triton:
        return Triton(f"3.5.0+git{commit}", commit=commit)

    commits = [f"{digit}" * 40 for digit in "9512"]
    found = history.by_history(
        [wheel(one) for one in ("22222222", "11111111", "77777777", "5555555")], commits
    )
    assert [one.commit[0] for one in found] == ["5", "1", "2"]
    assert history.by_history([wheel("99999999")], commits) == ()  # the good end


def test_what_is_no_index_of_nightlies_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--nightlies is not a URL"):
        history.read_nightlies("nightly.html")
    with pytest.raises(DownloadError):
        history.read_nightlies((tmp_path / "none.html").as_uri())
    (tmp_path / "empty.html").write_text("<a href='triton-3.5.0-py3-none-any.whl'>")
    with pytest.raises(UsageError, match="no nightly of Triton"):
        history.read_nightlies((tmp_path / "empty.html").as_uri())


def _clone(folder: Path) -> tuple[Path, list[str]]:
    """Three commits on main and one beside the second, oldest first."""
    made = Repo.init(folder, initial_branch="main")
    commits = []
    for number in range(3):
        date = f"2025-10-{number + 1:02d}T00:00:00 +0000"
        made.index.commit(str(number), author_date=date, commit_date=date)
        commits.append(made.head.commit.hexsha)
    made.git.checkout("-q", "-b", "side", commits[0])
    made.index.commit(
        "side", author_date="2025-10-09T00:00:00 +0000", commit_date="2025-10-09T00:00:00 +0000"
    )
    return folder, [*commits, made.head.commit.hexsha]


def test_which_nightlies_have_a_commit(tmp_path: Path) -> None:
    clone, (old, middle, new, side) = _clone(tmp_path / "clone")
    wheels = [Triton(f"3.5.0+git{one[:8]}", commit=one[:8]) for one in (side, new, middle, old, "f" * 40)]
    found = history.standings(wheels, middle[:10], clone)
    told = {one.wheel.commit: str(one.standing) for one in found}
    expected = {
        old: "lacks it",
        middle: "built from it",
        new: "has it",
        side: "lacks it",
        "f" * 40: "unknown",
    }
    assert told == {commit[:8]: said for commit, said in expected.items()}
    assert [one.wheel.commit for one in found if one.time] == [one[:8] for one in (old, middle, new, side)]
    first = history.first_with(found)
    assert first
    assert first.wheel.commit == middle[:8]
    with pytest.raises(FactError, match="no commit deadbeef"):
        history.standings(wheels, "deadbeef", clone)


def test_without_a_clone_only_a_name_tells() -> None:
    wheels = [Triton(f"3.5.0+git{one * 8}", commit=one * 8) for one in "12"]
    found = history.standings(wheels, "1" * 40, None)
    assert [str(one.standing) for one in found] == ["built from it", "unknown"]
    assert history.first_with(history.standings(wheels, "3" * 8, None)) is None


@pytest.mark.parametrize("error", [InterruptedRunError("interrupted"), LockedError("busy")])
def test_only_what_is_wrong_with_a_nightly_makes_it_a_skip(
    error: SmithError, monkeypatch: pytest.MonkeyPatch
) -> None:
    nightly = Triton("3.6.0.dev20251103", url="file:///none.whl")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(receipts, "open_session", fail)
    with pytest.raises(type(error)):
        history.install_nightly(nightly)
    error = StepError("pip found no such file")
    assert history.install_nightly(nightly) == "pip found no such file"
