from __future__ import annotations

import platform
from pathlib import Path

import pytest

from tritonsmith.core import redact
from tritonsmith.core.redact import Redactor

REDACT = Redactor(
    folders=(("/home/anna/work/triton", "$TRITON"), ("/home/anna", "~")),
    names=(("anna", "<user>"), ("annas-box", "<host>")),
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # folders with a name of their own
        ("/home/anna/work/triton/setup.py", "$TRITON/setup.py"),
        ("/home/anna/x and /home/anna", "~/x and ~"),
        ("/home/anna/work/triton-2/x", "~/work/triton-2/x"),
        ("/home/anna.old/x", "…/x"),
        # other folders: their last part
        ("/home/bob/llvm/lib/libLLVM.a", "…/libLLVM.a"),
        ("/home/bob", "…/<user>"),
        ("/Users/bob/", "…/<user>"),
        ("/data/bob/", "…/bob"),
        ("/dev/shm/bob/x /dev/null", "…/x /dev/null"),  # noqa: S108
        ("'/data/bob/x'", "'…/x'"),
        ("`/data/bob/x`, (/data/bob/y)", "`…/x`, (…/y)"),
        ("/data/bob/a.cpp:12:3: error", "…/a.cpp:12:3: error"),
        ("LD_LIBRARY_PATH=/usr/lib:/data/bob/lib:/home/anna/lib", "LD_LIBRARY_PATH=/usr/lib:…/lib:~/lib"),
        ("clang -I/data/bob/include -L/data/bob/lib", "clang -I…/include -L…/lib"),
        ("-DLLVM_DIR=/data/bob/llvm", "-DLLVM_DIR=…/llvm"),
        ("git@server:/data/bob/triton.git", "git@server:…/triton.git"),
        ("file:///data/bob/llvm.tar", "file://…/llvm.tar"),
        # what is no secret
        ("/usr/bin/clang++-19", "/usr/bin/clang++-19"),
        ("/opt/rocm-6.4/bin /proc/self", "/opt/rocm-6.4/bin /proc/self"),
        ("/usrlocal/x", "…/x"),
        ("https://github.com/triton-lang/triton/issues/7088", None),
        ("and/or, a // b, third_party/nvidia, $HOME/x, ~/y, / and 1/2", None),
        # people and machines
        ("anna@annas-box", "<user>@<host>"),
        ("user anna.", "user <user>."),
        ("joanna, annabel, anna-lena, x.anna", None),
        ("/data/anna", "…/<user>"),
        # passwords
        ("https://anna:secret@mirror.example/x", "https://***@mirror.example/x"),
        ("ssh://token@host/x", "ssh://***@host/x"),
        ("", ""),
    ],
)
def test_what_is_shown(text: str, shown: str | None) -> None:
    assert REDACT(text) == (text if shown is None else shown)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/data/my secret dir/x", "…/x"),
        ("/data/my secret/a:/usr/lib:/home/anna/my lib", "…/a:/usr/lib:~/my lib"),
        ("/home/anna/work/triton/a b", "$TRITON/a b"),
        ("/data/my secret/x.cpp:12:3", "…/x.cpp:12:3"),
        ("file:///data/my secret/x", "file://…/x"),
        ("/data/my secret/anna", "…/<user>"),
        ("https://u:p@h/x", "https://***@h/x"),
        ("-I/data/bob/x", "-I…/x"),
        ("1", "1"),
    ],
)
def test_a_space_does_not_end_a_single_path(path: str, shown: str) -> None:
    assert REDACT.path(path) == shown
    assert REDACT(REDACT.path(path)) == shown


def test_a_quoted_path_is_one_path() -> None:
    assert REDACT("X='/data/my secret dir/x' is set") == "X='…/x' is set"


def test_a_home_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_uid: int) -> None:
        raise KeyError("uid not found: 1234")

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert redact.redactor({})("/data/x /usr/bin") == "…/x /usr/bin"


def test_each_line_of_many() -> None:
    assert REDACT("a /data/bob/x\nb /home/anna/y\n") == "a …/x\nb ~/y\n"


def test_twice_is_once() -> None:
    text = "/home/anna/work/triton/a /data/bob/b anna@annas-box https://u:p@h/c"
    assert REDACT(REDACT(text)) == REDACT(text)


def test_this_machine_and_user(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "annabel")
    monkeypatch.setattr(platform, "node", lambda: "annas-box.example.org")
    shown = redact.redactor({tmp_path / "triton": "$TRITON"})
    told = f"{tmp_path}/triton/x {home}/y {tmp_path}/z annabel annas-box annas-box.example.org"
    assert shown(told) == "$TRITON/x ~/y …/z <user> <host> <host>"


def test_the_longest_folder_gives_the_name(home: Path) -> None:
    shown = redact.redactor({home / "space" / "triton": "$TRITON", home / "space": "$TRITONSMITH_HOME"})
    assert shown(f"{home}/x {home}/space/y {home}/space/triton/z") == "~/x $TRITONSMITH_HOME/y $TRITON/z"


def test_the_home_folder_of_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "root")  # who came by sudo
    monkeypatch.setenv("HOME", "/home/annabel")
    assert redact.redactor({})("/home/annabel/x, annabel") == "~/x, <user>"
    monkeypatch.setenv("HOME", "/scratch/work")
    assert redact.redactor({})("/scratch/work/x, work") == "~/x, work"


def test_a_home_folder_behind_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = tmp_path / "mnt" / "annabel"
    real.mkdir(parents=True)
    (tmp_path / "home").symlink_to(real)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert redact.redactor({})(f"{tmp_path}/home/x {real}/x") == "~/x ~/x"


@pytest.mark.parametrize("name", ["root", "dev", "triton", "ab"])
def test_a_name_that_says_nothing_stays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", name)
    monkeypatch.setenv("HOME", "/")
    monkeypatch.setattr(platform, "node", lambda: name)
    text = f"{name} 3.5.0, invoke doctor --env {name}, /usr/bin, 1 / 2"
    assert redact.redactor({})(text) == text


def test_a_user_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError("uid not found: 1234")

    monkeypatch.setattr("getpass.getuser", unknown)
    monkeypatch.setenv("USER", "annabel")
    assert redact.redactor({})("annabel") == "<user>"
    monkeypatch.delenv("USER")
    assert redact.redactor({})("annabel") == "annabel"
