"""The flags that all experiments have."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from tests.unit.cli.tasks.conftest import Smith
from tritonsmith.cli.tasks.experiments import ExperimentOptions
from tritonsmith.cli.tasks.option_fields import OutFile
from tritonsmith.compiler.dump import index
from tritonsmith.compiler.dump.index import DumpedKernel, DumpIndex
from tritonsmith.compiler.replay import replayer
from tritonsmith.compiler.replay.replayer import Replayer
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Plan
from tritonsmith.lab import journal, report
from tritonsmith.lab.experiment import Rules
from tritonsmith.lab.isolate import failing_pass, issue_folder
from tritonsmith.lab.journal import Journal, Observation, Verdict
from tritonsmith.lab.reduce import reduce_ir
from tritonsmith.lab.reduce.oracles import PassRunner
from tritonsmith.lab.reduce.reduce_ir import ReduceOptions

pytestmark = pytest.mark.unit


def test_a_page_that_cannot_be_written_is_refused_before_anything_is_tested(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "page.html").mkdir()
    for place in ("file/page.html", "file/", "file/deeper/page.html", "."):
        with pytest.raises(UsageError, match="--page cannot be written"):
            _ = ExperimentOptions(page=OutFile(f"{tmp_path}/{place}")).rules
    for place in ("new.html", "new/page.html", "new/", "file"):
        assert ExperimentOptions(page=OutFile(f"{tmp_path}/{place}")).rules.confirm == 1


def test_the_file_to_reduce_is_never_overwritten(smith: Smith, tmp_path: Path) -> None:
    file, link = tmp_path / "f.mlir", tmp_path / "link.mlir"
    file.write_text("module {}\n", encoding="utf-8")
    link.symlink_to(file)
    for out in (file, link):
        answer = smith("reduce", str(file), "--out", str(out), "--", "grep", "-q", "module", "{}")
        assert answer.code == 2
        assert "--out is the file to reduce, which is never changed" in " ".join(answer.err.split())
    assert file.read_text(encoding="utf-8") == "module {}\n"


def test_the_status_names_the_command_that_began_the_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["triage", "k.py:k", "--", "env", "API_TOKEN=swordfish", "python", "a b.py"]
    monkeypatch.setattr(sys, "argv", ["tritonsmith", *words])
    monkeypatch.setenv("COLUMNS", "300")
    rules = ExperimentOptions().rules
    Journal(tmp_path / journal.FILE, "key", command=rules.command).begin()
    assert ExperimentOptions(status=True).show_status(tmp_path)
    shown = capsys.readouterr().out
    assert "started by: tritonsmith triage k.py:k -- env" in shown
    assert "'a b.py'" in shown
    assert "swordfish" not in shown
    assert "swordfish" not in (tmp_path / journal.FILE).read_text(encoding="utf-8")


def test_a_status_comes_before_a_dry_run(smith: Smith, tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("import triton\n@triton.jit\ndef k(a): pass\n", encoding="utf-8")
    flags = ("--signature", "*fp32", "--target", "sm_80", "--python", sys.executable)
    answer = smith("knockout", f"{tmp_path / 'k.py'}:k", *flags, "--status", "--dry-run")
    assert (answer.code, answer.out) == (0, ""), answer.err
    assert "there is no run to show" in answer.err


@pytest.fixture
def isolations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Rules]:
    """Return the rules of each isolation of the dump `dump`, which comes to an error."""
    rules: list[Rules] = []

    def isolate(*argv: Any, **_: Any) -> NoReturn:
        rules.append(next(word for word in argv if isinstance(word, Rules)))
        raise FactError("isolated")

    kernel = DumpedKernel("k", "k", "cuda:90", "SomePass", "error")
    dump = DumpIndex(tmp_path / "dump", "", "", "", 0, (kernel,), ())
    dump.folder.mkdir()
    (dump.folder / index.FILE).touch()
    monkeypatch.setattr(index, "read", lambda _: dump)
    monkeypatch.setattr(replayer, "choose", lambda *_, **__: Replayer(None, Path("opt"), None, None))
    monkeypatch.setattr(failing_pass, "isolate", isolate)
    return rules


def test_the_status_of_a_reduction_does_not_wait_for_the_isolation(
    smith: Smith, tmp_path: Path, isolations: list[Rules]
) -> None:
    answer = smith("reduce", str(tmp_path / "dump"), "--status")
    assert (answer.code, isolations) == (0, [])
    assert "there is no run to show" in answer.err


@pytest.mark.parametrize("words", [("reduce",), ("passes.isolate", "--reduce")])
def test_the_rules_reach_the_isolation_that_comes_before_a_reduction(
    smith: Smith, tmp_path: Path, isolations: list[Rules], words: tuple[str, ...]
) -> None:
    flags = ("--confirm", "3", "--skip", "3 cse", "--skip", "0123456789abcdef")
    assert "isolated" in smith(words[0], str(tmp_path / "dump"), *words[1:], *flags).err
    (rules,) = isolations
    assert (rules.confirm, rules.skip) == (3, ("3 cse",))


def test_the_rules_reach_the_reduction_of_what_was_isolated(
    smith: Smith, tmp_path: Path, isolations: list[Rules], monkeypatch: pytest.MonkeyPatch
) -> None:
    options: list[ReduceOptions] = []

    def reduce(_text: str, _way: object, _space: object, given: ReduceOptions, *_: object) -> NoReturn:
        options.append(given)
        raise FactError("reduced")

    isolated = SimpleNamespace(way=PassRunner("cse", opt=Path("opt")), text="", same=True)
    monkeypatch.setattr(failing_pass, "isolate", lambda *_, **__: (isolated, Journal()))
    monkeypatch.setattr(issue_folder, "about", lambda *_: {})
    monkeypatch.setattr(issue_folder, "plan", lambda *_: Plan("none"))
    monkeypatch.setattr(reduce_ir, "reduce", reduce)
    flags = ("--confirm", "3", "--skip", "3 cse", "--skip", "0123456789abcdef")
    for words in (("reduce",), ("passes.isolate", "--reduce")):
        assert "reduced" in smith(words[0], str(tmp_path / "dump"), *words[1:], *flags).err
    assert [(row.rules.confirm, row.rules.skip) for row in options] == [(3, ("0123456789abcdef",))] * 2
    assert isolations == []


def test_the_result_is_printed_although_the_page_cannot_be_written(
    smith: Smith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk may become full after the check; by then the journal has ended."""

    def write(*_: object, **__: object) -> NoReturn:
        raise FactError("cannot write the page")

    monkeypatch.setattr(report, "write", write)
    (tmp_path / "f.mlir").write_text("module {\n}\n", encoding="utf-8")
    flags = ("--jobs", "1", "--out", str(tmp_path / "small.mlir"), "--page", str(tmp_path / "page.html"))
    answer = smith("reduce", str(tmp_path / "f.mlir"), *flags, "--", "grep", "-q", "module", "{}")
    assert "cannot write the page" in answer.err
    assert "operations" in answer.out


def test_a_status_with_a_page_writes_one_of_a_run_that_has_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["tritonsmith", "triage", "k.py:k", "--status"])
    page = tmp_path / "page.html"
    with pytest.raises(UsageError, match="there is no run to show"):
        ExperimentOptions(status=True, page=OutFile(str(page))).show_status(tmp_path)
    begun = Journal(tmp_path / journal.FILE, "key")
    begun.begin()
    begun.add("num_warps=8", Observation(Verdict.GOOD, "registers 40"))
    begun.end("few warps")
    assert ExperimentOptions(status=True, page=OutFile(str(page))).show_status(tmp_path)
    assert all(
        text in page.read_text(encoding="utf-8") for text in ("few warps", "num_warps=8", "registers 40")
    )


def test_skip_needs_a_value(smith: Smith) -> None:
    for words in (("--skip", "--status"), ("--status", "--skip")):
        answer = smith("triage", "k.py:k", *words)
        assert (answer.code, "--skip needs a value" in answer.err) == (2, True), answer.err
