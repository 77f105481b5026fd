"""Words of a side, each told from the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.lab.compare import compiler
from tests.unit.repositories import Made
from tritonsmith.compiler import targets, tritons
from tritonsmith.compiler.request import CompileRequest, Sweep
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import UsageError

A100, H100, MI300X = targets.parse_all(["a100", "h100", "mi300x"])


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("3.4.0", Triton("3.4.0", version="3.4.0")),
        ("3.4", Triton("3.4", version="3.4.0")),
        ("3.4rc1", Triton("3.4rc1", version="3.4.0rc1")),
        ("triton-3.3.1", Triton("triton-3.3.1", version="3.3.1")),
        ("debug", Triton("debug", env="debug")),
        (" 3.4.0 , a100,sm_80 ", Triton("3.4.0 , a100,sm_80", version="3.4.0", targets=(A100,))),
        ("pytorch:2.9,h100", Triton("pytorch:2.9,h100", version="3.5.1", targets=(H100,))),
        ("3.4.0,ptxas=12.9", Triton("3.4.0,ptxas=12.9", version="3.4.0", ptxas="12.9.86")),
        ("hip:gfx942,cuda:80", Triton("hip:gfx942,cuda:80", targets=(MI300X, A100))),
        (
            "num_warps=8,T=(1,2),A=relu,B=tl.float16",
            Triton(
                "num_warps=8,T=(1,2),A=relu,B=tl.float16",
                options={"num_warps": 8, "T": (1, 2), "A": "relu", "B": {"dtype": "float16"}},
            ),
        ),
    ],
)
def test_words(text: str, side: Triton) -> None:
    assert tritons.parse(text) == side


def test_all_targets() -> None:
    assert set(tritons.parse("all").targets) == {targets.parse(name) for name in targets.known()}


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    python = compiler.make(tmp_path / "venv", "3.2.0")
    side = tritons.parse("venv/bin/python,h100")
    assert (side.python, side.version, side.triton) == (str(python), "", "3.2.0")
    env = tmp_path / "mine.toml"
    env.write_text("[triton]\n")
    assert tritons.parse(str(env)).env == str(env)
    out = tmp_path / "out" / "kernel"
    out.mkdir(parents=True)
    (out / "manifest.json").write_text("{}")
    assert tritons.parse("out").folder == tmp_path / "out"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "one side is empty"),
        ("debg", "did you mean 'debug'"),
        ("h10", "did you mean 'h100'"),
        ("3.4.0,debug", "names two Tritons: 3.4.0 and debug"),
        ("3.4.0,3.4.0", "names two Tritons"),
        ("num_warps=4,num_warps=8", "sets num_warps twice"),
        ("ptxas=13.0,ptxas=13.0", "sets ptxas twice"),
        ("3.4.0,ptxas=new", "no version of ptxas: 'new'"),
        ("venv/bin/pyton", "no such interpreter"),
        ("venv", "its interpreter: "),
        ("empty", "a folder without compiled kernels"),
        ("missing.toml", "no such env file"),
        ("out,3.4.0", "is already compiled"),
        ("commit 1a2b3c4", "needs a clone of Triton"),
        ("nightly:2026-11-20", "needs an index of nightlies"),
    ],
)
def test_wrong_words(text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    compiler.make(tmp_path / "venv")
    for name in ("empty", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "out" / "manifest.json").write_text("{}")
    with pytest.raises(UsageError) as caught:
        tritons.parse(text)
    assert says in str(caught.value)


def test_what_a_side_changes(tmp_path: Path) -> None:
    asked = CompileRequest(tmp_path / "k.py", "k", "*fp32", (A100,), sweeps=(Sweep("N", ("1", "2")),))
    side = tritons.parse("mi300x,num_warps=8,D=tl.float16")
    got = tritons.applied(asked, side)
    assert got.targets == (MI300X,)
    assert got.sweeps == (Sweep("N", ("1", "2")), Sweep("num_warps", ("8",)), Sweep("D", ("tl.float16",)))
    assert tritons.applied(asked, tritons.parse("3.4.0")) == asked
    with pytest.raises(UsageError, match="both --sweep and the side N=4 set N"):
        tritons.applied(asked, tritons.parse("N=4"))


NIGHTLIES = [
    Triton(f"3.6.0.dev{date}+git{commit}", python="/python", commit=commit, url="https://x/y.whl")
    for date, commit in (("20261119", "feedf00d"), ("20261120", "0badcafe"))
]


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("v3.4", Triton("3.4.0", version="3.4.0")),
        ("3.4.1", Triton("3.4.1", version="3.4.1")),
        ("pytorch:2.9", Triton("3.5.1", version="3.5.1")),
        ("nightly:2026-11-20", NIGHTLIES[1]),
        ("nightly:20261119", NIGHTLIES[0]),
        (f"nightly:{NIGHTLIES[0].label}", NIGHTLIES[0]),
    ],
)
def test_ends_of_a_bisect(text: str, end: Triton) -> None:
    assert tritons.parse_end(text, "--good", None, lambda: NIGHTLIES) == end


def test_a_commit_is_an_end_of_a_clone(make: Callable[[str], Made]) -> None:
    made = make("triton")
    commit = made.commit("first", {"a": "1"})
    made.git("branch", "debug")
    for text in ("main", "debug", commit[:8], f"commit {commit[:8]}"):  # `debug` is an environment, too
        assert tritons.parse_end(text, "--bad", made.path) == Triton(commit, commit=commit)
    with pytest.raises(UsageError, match="--bad: no commit, tag or branch 'nothing'"):
        tritons.parse_end("nothing", "--bad", made.path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "--good is missing"),
        ("debug", "--good cannot be 'debug' without a clone"),
        ("nightly:2026-11-21", "the index of nightlies has no 2026-11-21"),
    ],
)
def test_what_is_no_end_of_a_bisect(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        tritons.parse_end(text, "--good", None, lambda: NIGHTLIES)


def test_a_fingerprint_is_of_the_content(tmp_path: Path) -> None:
    def make(name: str) -> tuple[Path, Path]:
        site = tmp_path / name / "lib" / "python3.11" / "site-packages"
        (site / "triton-3.6.0.dist-info").mkdir(parents=True)
        (site / "triton-3.6.0.dist-info" / "METADATA").write_text("Name: triton\nVersion: 3.6.0\n")
        checkout = tmp_path / f"{name} checkout" / "python"
        (checkout / "triton" / "_C").mkdir(parents=True)
        (checkout / "triton" / "__init__.py").write_text('__version__ = "3.6.0"\n')
        (checkout / "triton" / "again").symlink_to(checkout / "triton")  # a walk would not end
        library = tmp_path / f"{name} libtriton.so"
        library.write_text("code")
        (checkout / "triton" / "_C" / "libtriton.so").symlink_to(library)
        (site / "tritonsmith-bisect.pth").write_text(f"{checkout}\n")
        return tmp_path / name / "bin" / "python", library

    (one, _), (other, library) = make("one"), make("other")
    assert tritons.fingerprint(one) == tritons.fingerprint(other) != ""
    library.write_text("edoc")  # as large as before
    assert tritons.fingerprint(one) != tritons.fingerprint(other)
    assert tritons.fingerprint(tmp_path / "nobody" / "bin" / "python") == ""
