"""Secrets in every source that the tool takes, at once: none of them is printed, or written anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.harness import DEAD, Done, Smith
from tests.unit.facts import fakes

CANARY = "c4naryC4nary"
LOGIN = DEAD.replace("://", f"://me:{CANARY}-login@")
SIGNED = f"X-Amz-Date=20261122T000000Z&X-Amz-Credential={CANARY}-id&X-Amz-Signature={CANARY}-sig"
ENV = f"""
[triton]
source = "{LOGIN}/triton.git?private_token={CANARY}-private"
cmake-args = ["-DSOME_PASSWORD={CANARY}-cmake"]
[llvm]
source = "{LOGIN}/llvm.git?access_token={CANARY}-access"
prebuilt-url = "{DEAD}/builds?{SIGNED}"
"""
REMOTE = f'[cache]\nremote = "redis://me:{CANARY}-redis@127.0.0.1:9"\n'
VARIABLES = {
    "TRITON_FOO_TOKEN": f"{CANARY}-variable",
    "TRITON_SOME_URL": f"{LOGIN}/x",
    "CUDA_REGISTRY_AUTH": f"{CANARY}-auth",
    "LLVM_SHAPE": "ghp_" + CANARY * 3,
    "PIP_INDEX_URL": f"{LOGIN}/simple?token={CANARY}-index",
    "PIP_RETRIES": "0",
    "HTTPS_PROXY": "",
}


@pytest.fixture(scope="module")
def smith(tmp_path_factory: pytest.TempPathFactory) -> Smith:
    root = tmp_path_factory.mktemp("canaries")
    for name, text in (("mine", ENV), ("shared", ENV + REMOTE)):
        (root / f"{name}.toml").write_text(text)
    fakes.commit(fakes.checkout(root / "checkout", "3.5"))
    return Smith(root, cwd=root, more=VARIABLES)


def commands(smith: Smith) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Exit code and command line."""
    at = ("--env", "mine.toml")
    remote, checkout = f"{LOGIN}/r.git?token={CANARY}-flag", str(smith.root / "checkout")
    yield 0, ("env.explain", *at)
    yield 0, ("doctor", "--report", *at, "--only", "variables,tools.git")
    yield 0, ("build-triton", *at, "--dry-run")
    yield 1, ("build-triton", *at)
    yield 1, ("build-triton", "--source", remote)
    yield 1, ("build-triton", *at, "--source", checkout, "--llvm-dir", "/nowhere")
    mlir = ("setup-mlir", "--source", checkout, "--provider", "source", "--force")  # without a compiler, too
    yield 0, (*mlir, *at, "--dry-run")
    yield 1, (*mlir, *at)
    yield 1, (*mlir, "--env", "shared.toml")
    yield 0, ("pins", "--live", "--repository", remote, "--dry-run")
    yield 1, ("pins", "--live", "--repository", remote)
    yield 1, ("store", "--import", f"{DEAD}/llvm.tar.zst?{SIGNED}")
    yield 1, ("store", "--import", f"{DEAD}/llvm.tar.zst?{SIGNED}", "--sha256", "0" * 64)
    yield 1, ("up",)
    yield 2, ("up", f"--index-url={remote}")
    yield 2, ("doctor", "--only", remote)


@pytest.fixture(scope="module")
def said(smith: Smith) -> list[Done]:
    return [smith(*argv, code=code) for code, argv in commands(smith)]


@pytest.mark.slow
def test_nothing_that_is_printed_has_a_secret(said: list[Done]) -> None:
    shown = [f"{done.out}\n{done.err}" for done in said]
    assert [text for text in shown if CANARY in text] == []
    assert sum("***" in text for text in shown) >= 10  # where something stood


@pytest.mark.slow
def test_nothing_that_is_written_has_a_secret(smith: Smith, said: list[Done]) -> None:
    assert said
    own = {smith.root / "mine.toml", smith.root / "shared.toml"}
    files = [path for path in smith.root.rglob("*") if path.is_file() and path not in own]
    assert [path for path in smith.root.rglob("*") if CANARY in str(path)] == []
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []
    logs = list((smith.home / "logs").iterdir())
    assert len(logs) >= 5
    assert {path.stat().st_mode & 0o777 for path in logs} == {0o600}
    assert "***" in "".join(path.read_text() for path in logs)


@pytest.mark.slow
def test_a_command_line_has_none(smith: Smith, said: list[Done]) -> None:
    """What `ps` would have shown of git, as the logs have it."""
    assert said
    text = "".join(path.read_text() for path in Path(smith.home / "logs").iterdir())
    fetches = [line for line in text.splitlines() if " fetch --depth=1" in line]
    assert fetches
    assert all(" -- http://127.0.0.1:9/" in line for line in fetches)
