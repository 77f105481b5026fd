from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from tritonsmith.doctor.pins import report
from tritonsmith.doctor.pins.install import InstalledTorch, Owner, Torch
from tritonsmith.doctor.pins.read_upstream import LivePin, Reading
from tritonsmith.doctor.pins.releases_with import Holders, Holding, Standing
from tritonsmith.facts import pytorch_pins

RELEASES = pytorch_pins.releases()


def release(version: str) -> pytorch_pins.PyTorchRelease:
    return pytorch_pins.find(version).release


def printed(table: object, width: int = 80) -> list[str]:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(table)
    return capture.get().splitlines()


def detail(version: str) -> str:
    return "\n".join(report.detail(release(version)))


def test_a_line_of_the_table_and_the_loud_ones_below() -> None:
    lines = printed(report.table(RELEASES))
    (differing,) = (line for line in lines if line.startswith("2.13.0"))
    assert differing.split() == [
        "2.13.0",
        "3.7.1",
        "5d6048aa",
        "quoted",
        "ac5dc54d",
        "f797708c",
        "1f126a6d",
        "!",
    ]
    (unknown,) = (line for line in lines if line.startswith("2.15.0"))
    assert unknown.split() == ["2.15.0", "3.9.0", "unknown", "unknown", "unknown", "unknown", "b010a18d"]
    remarks = list(report.remarks(RELEASES))
    assert remarks[0] == "!  2.6.0, 2.12.1, 2.13.0, 2.14.0: the LLVM in the wheel is NOT the LLVM at the pin"
    assert remarks[-1].endswith("invoke pins --pytorch 2.14.1")
    assert len(list(report.remarks([release("2.9.1")]))) == 2


def test_detail_says_which_commit_and_llvm_are_for_what() -> None:
    text = detail("2.12.1")
    assert "THE TWO LLVMs DIFFER" in text
    build, _, describe = text.partition("to build the Triton")[2].partition("to describe or debug")
    assert "5d6048aa0a324e090ada215b609ea76620133845, LLVM ac5dc54d509169d387fcfd495d71853d81c46484" in build
    assert "git checkout 5d6048aa0a && invoke setup-mlir && invoke build-triton" in build
    assert (
        "f797708c0626e5f9840ca5b0a98790e2c7cb09ad, LLVM 1f126a6dea50d185c0781743a667390037ae88bd" in describe
    )
    assert "ROCm  the same file as CUDA" in text
    assert "pin-file-diff: a diff on the release branch" in text


def test_detail_of_what_is_unknown() -> None:
    text = detail("2.9.0")
    assert "commit          unknown\n" in text
    assert "7416ffcb92cdbe98d9f97e4e6f95247e46dfc9fd unconfirmed candidate" in text
    assert "Both have the same LLVM." in text
    assert "commit unknown, LLVM 7d5de3033187c8a3bb4d2e322f5462cdaf49808f" in text
    assert "git checkout" not in text
    newest = detail("2.15.0")
    assert "Whether the two LLVMs differ is unknown." in newest
    assert "ROCm     unknown for this release" in newest
    assert "XPU   no pin known" in detail("2.2.0")


def test_names_of_all_eras() -> None:
    text = "\n".join(printed(report.names(), 160))
    assert "torchtriton" in text
    assert "2.10 - 2.14" in text


CUDA = LivePin("cuda", "CUDA", "7416ffcb92cdbe98d9f97e4e6f95247e46dfc9fd", "3.5.0", "a.txt", llvm="9" * 40)
READING = Reading(
    "/x",
    "v2.9.0",
    "c" * 40,
    "2026-01-02T00:00:00+00:00",
    (
        CUDA,
        LivePin("rocm", "ROCm", CUDA.commit, "", "a.txt", "cuda"),
        LivePin("cpu", "CPU", "d" * 40, "", "b.txt"),
    ),
)


def test_each_index_that_a_wheel_is_from_has_a_url() -> None:
    urls = dict(line.split(": ", 1) for line in report.indexes())
    assert {name.place.partition(",")[0] for name in pytorch_pins.wheel_names()} <= set(urls)
    assert all(url.startswith("https://") for url in urls.values())


def test_live_beside_the_table() -> None:
    text = "\n".join(report.live(READING, release("2.9.0")))
    assert "(2026-01-02)" in text
    assert "the same as CUDA" in text
    assert "CUDA     unknown in the table, and one of its candidates" in text
    assert "XPU" not in text.partition("The table")[2]
    other = "\n".join(report.live(READING, release("2.13.0")))
    assert "CUDA     DIFFERS: 5d6048aa0a324e090ada215b609ea76620133845 (pin-file-quoted)" in other
    assert "The table" not in "\n".join(report.live(READING, None))


def found(agrees: bool | None, version: str | None) -> InstalledTorch:
    row = release(version) if version else None
    owner = Owner("triton", "3.5.0+gitabcdef12", "abcdef12")
    return InstalledTorch(Path("/p"), Torch("2.9.0", "", ""), (owner,), row, agrees, ("because",))


@pytest.mark.parametrize(("agrees", "word"), [(True, "yes"), (False, "NO"), (None, "undecided")])
def test_installed(agrees: bool | None, word: str) -> None:
    text = "\n".join(report.installed(found(agrees, "2.9.0")))
    assert f"agrees  {word}\n          because" in text
    assert "Triton  triton 3.5.0+gitabcdef12" in text
    assert "\nPyTorch 2.9.0\n" in text
    assert "invoke pins --live --ref COMMIT" in "\n".join(report.installed(found(agrees, None)))


HOLDERS = Holders(
    "a" * 40,
    "Fix [red] (#1)",
    "2026-01-02T00:00:00+00:00",
    (
        Holding("2.9.1", "cuda", "b" * 40, Standing("after")),
        Holding("2.9.1", "wheel", "b" * 40, Standing("cherry-picked", "as bbbbbbbbbb, by its message")),
        Holding("2.9.0", "cuda", "", Standing("undecided", "the pin is unknown")),
        Holding("2.8.0", "cuda", "e" * 40, Standing("undecided", "this clone lacks the pin")),
        Holding("2.7.0", "cuda", "f" * 40, Standing("apart", "on another branch")),
    ),
)


def test_holders() -> None:
    assert list(report.holders(HOLDERS))[-2:] == [
        "Pins for CUDA that have it: 2.9.1",
        "Published wheels that have it: 2.9.1",
    ]
    lines = {line.split()[0]: line.split()[1:] for line in printed(report.holdings(HOLDERS)) if line.strip()}
    assert lines["2.9.1"][:4] == ["bbbbbbbb", "holds", "bbbbbbbb", "picked"]
    assert lines["2.9.0"][0] == "?"
    assert lines["2.8.0"][:2] == ["eeeeeeee", "?"]
    assert lines["2.7.0"][:2] == ["ffffffff", "lacks"]
    text = "\n".join(report.open_questions(HOLDERS))
    assert "Undecided (2):\n  2.9.0   CUDA   the pin is unknown\n" in text
    assert "git fetch origin" in text
    assert "Cherry-picked:\n  2.9.1   wheel  as bbbbbbbbbb, by its message" in text


def test_every_json_has_a_schema_and_can_be_written() -> None:
    forms = [
        report.table_json(RELEASES),
        report.release_json(release("2.9.1"), ""),
        report.live_json(READING),
        report.installed_json(found(None, None)),
        report.holders_json(HOLDERS),
        report.update_json(Path("/x"), ["a"], []),
    ]
    for form in forms:
        again = json.loads(json.dumps(form))
        assert again["schema"] == 1
    kinds = [form["kind"] for form in forms]
    assert kinds == ["table", "release", "live", "installed", "holders", "update"]


def test_what_is_unknown_is_null() -> None:
    row = report.release_table(release("2.15.0"))
    assert row["cuda"]["commit"] is None
    assert row["wheel"]["commit"] is None
    assert row["llvms_differ"] is None
    assert report.release_table(release("2.2.0"))["xpu"] is None
    assert report.live_json(READING)["pins"][2]["version"] is None
    pins = report.holders_json(HOLDERS)["pins"]
    assert pins[2] == {
        "release": "2.9.0",
        "where": "cuda",
        "pin": None,
        "relation": "undecided",
        "holds": None,
        "why": "the pin is unknown",
    }
