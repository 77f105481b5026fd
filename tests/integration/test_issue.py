"""`issue.new` with the newest wheel: an assertion, from the dump to an issue whose commands show it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.integration.harness import Smith
from tests.integration.test_passes_reduce import CRASHING, FAILING, MATMUL, SIGNATURE, python

TEXT = "isPowerOf2_32"  # of the assertion


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool, with a compile that failed, the dump of another one, and the failing pass of that alone."""
    made = with_wheel.beside(tmp_path_factory.mktemp("jane's issue"))
    (made.cwd / "mine.py").write_text(MATMUL.read_text())
    words = ("mine.py:tiled_matmul", *SIGNATURE, *CRASHING)
    made("kernel.compile", *words, "--out", "compiled", code=1)
    made("passes.dump", *words, "--out", "crashed", code=1)
    made("passes.isolate", "crashed", "--reduce", "--out", "alone")
    made("kernel.compile", "mine.py:tiled_matmul", *SIGNATURE, "--target", "cuda:80", "--out", "fine")
    return made


def run(smith: Smith, *argv: str | Path) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": "/usr/bin:/bin", "TRITON_CACHE_DIR": str(smith.cwd / "its cache")}
    return subprocess.run(
        (python(smith), *argv), env=environ, capture_output=True, text=True, check=False, timeout=120
    )


def test_the_commands_of_the_issue_show_the_bug(smith: Smith) -> None:
    out = smith.cwd / "issue"
    answer = json.loads(
        smith("issue.new", "alone", "--with", "compiled", "--with", "crashed", "--out", out, "--json").out
    )
    assert answer["repository"] == "triton-lang/triton"
    assert [row["status"] for row in answer["commands"]] == ["shown", "shown"]
    body = (out / "issue.md").read_text()
    for text in (
        "### Describe the bug",
        "### Environment details",
        "python mine.py",
        f"triton-opt input.mlir --pass-pipeline='builtin.module({FAILING}{{",
        TEXT,
        "**To blame:**",
        f"`the pass {FAILING}`: it fails alone on its input",
        "`hip:gfx942`",
        "LLVM in it",
        "kpack=3",
    ):
        assert text in body
    # Nothing of this machine is in it.
    for path in out.iterdir():
        assert str(smith.root.parent) not in path.read_text()
        assert "jane's issue" not in path.read_text()
    # A reader has these files, and a wheel.
    for argv in ((out / "mine.py",), (out / "reproduce.py", out / "input.mlir")):
        done = run(smith, *argv)
        assert done.returncode
        assert TEXT in done.stderr
    # What is not known is left out, with the command that finds it out.
    left_out = {row["what"]: row["hint"] for row in answer["unknown"]}
    assert "invoke bisect " in left_out["the version or commit that brought it"]
    assert "invoke reduce " in left_out["a smaller kernel"]
    assert answer["post"].startswith("gh issue create --repo triton-lang/triton --title ")


def test_a_compile_that_did_not_fail_is_no_issue(smith: Smith) -> None:
    done = smith("issue.new", "fine", "--out", "nothing", code=1)
    assert "nothing here has failed" in done.error
    assert not (smith.cwd / "nothing").exists()


def test_what_was_not_run_says_so(smith: Smith) -> None:
    smith("issue.new", "compiled", "--not-run", "--out", "not run")
    body = (smith.cwd / "not run" / "issue.md").read_text()
    assert "(It was not run: `--not-run`.)" in body
    # MLIR names the pass, which proves nothing.
    assert "The faulty component is not known." in body


def test_an_issue_that_was_edited_is_kept(smith: Smith) -> None:
    smith("issue.new", "compiled", "--not-run", "--out", "edited")
    path = smith.cwd / "edited" / "issue.md"
    path.write_text(f"{path.read_text()}my own words\n")
    before = {item: item.read_text() for item in path.parent.iterdir()}
    refused = smith("issue.new", "alone", "--not-run", "--out", "edited", code=2)
    assert "is not empty" in refused.error
    assert {item: item.read_text() for item in path.parent.iterdir()} == before


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tl.dot(tl.arange(0, 16), tl.arange(0, 16))", "equal ranks >= 2"),
        ("tl.store(x, nothing)", "nothing is not defined"),
    ],
)
def test_an_error_in_the_kernel_is_no_bug_of_triton(smith: Smith, line: str, message: str) -> None:
    name = "dot" if "dot" in line else "name"
    (smith.cwd / f"{name}.py").write_text(
        f"import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(x):\n    {line}\n"
    )
    words = (f"{name}.py:k", "--signature", "*fp32", "--target", "cuda:90")
    smith("kernel.compile", *words, "--out", name, code=1)
    refused = smith("issue.new", name, "--out", f"{name}-issue", code=1)
    assert "this looks like an error in the kernel: " in refused.error
    assert message in refused.error
    assert "--for triton" in refused.error
    assert not (smith.cwd / f"{name}-issue").exists()
    answer = json.loads(smith("issue.new", name, "--for", "triton", "--out", f"{name}-issue", "--json").out)
    assert [row["status"] for row in answer["commands"]] == ["shown"]
    body = (smith.cwd / f"{name}-issue" / "issue.md").read_text()
    assert "Triton's front end rejects the program: " in body
    assert "The reporter believes that it should be accepted." in body


def test_a_changed_source_is_not_the_one_that_failed(smith: Smith) -> None:
    path = smith.cwd / "mine.py"
    text = path.read_text()
    path.write_text(text + "# changed\n")
    try:
        answer = json.loads(smith("issue.new", "compiled", "--out", "changed", "--json").out)
    finally:
        path.write_text(text)
    assert answer["commands"] == []
    assert "the kernel" in {row["what"] for row in answer["unknown"]}


def test_a_wrong_result_is_what_passes_check_has_seen(smith: Smith) -> None:
    """The check keeps its answer beside the dump, and one that finds nothing is no evidence."""
    smith("passes.dump", "mine.py:tiled_matmul", *SIGNATURE, "--target", "cuda:80", "--out", "right")
    smith("passes.check", "right")
    assert json.loads((smith.cwd / "right" / "check.json").read_text())["outcome"] == "unchanged"
    assert "nothing here has failed" in smith("issue.new", "right", code=1).error
