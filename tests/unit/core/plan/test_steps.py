from __future__ import annotations

import dataclasses
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import require
from tritonsmith.core.errors import StepError
from tritonsmith.core.plan import (
    Copy,
    Download,
    Extract,
    GitFetch,
    Link,
    MakeDir,
    Move,
    Patch,
    Plan,
    Remove,
    Run,
    Stamp,
    Step,
    Write,
    digest,
    download,
    files,
    stamped,
    step_key,
)
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.ui.progress import PhaseProgress

TEXTS = {
    "plain": "one\ntwo\n",
    "quotes": 'it\'s "quoted" `date` $HOME ${HOME} \\n \\\n',
    "blank lines": "\n\nx\n\n\n",
    "tabs and trailing blanks": "\ttab  \n  x \t\n",
    "no end": "no newline at the end",
    "only an end": "\n",
    "empty": "",
    "its own end": "EOF\n EOF\nEOF_\nx\n",
    "unicode": "\N{GREEK SMALL LETTER MU}s :smile: [bold]\n",
}


def sources(folder: Path) -> None:
    """What the plan starts from."""
    files.mark(folder)
    tree = folder / "the source"
    (tree / "deep er").mkdir(parents=True)
    (tree / "a.txt").write_text("a")
    (tree / "deep er" / "run.sh").write_text("#!/bin/sh\n")
    (tree / "deep er" / "run.sh").chmod(0o755)
    (tree / "link to a").symlink_to("a.txt")
    (tree / "link to folder").symlink_to("deep er")
    (folder / "old").mkdir()
    (folder / "old" / "file").write_text("old")
    (folder / "precious").mkdir()
    (folder / "precious" / "file").write_text("precious")
    (folder / "to precious").symlink_to("precious")
    (folder / "wrong link").symlink_to("nowhere")
    (folder / "half.partial").mkdir()
    (folder / "half.partial" / "left over").write_text("x")
    with tarfile.open(folder / "an archive.tar.gz", "w:gz") as tar:
        for name in ("llvm/a.txt", "llvm/deep/b.txt", "mlir/c.txt", "other/llvm/d.txt", "README"):
            path = folder / "the source" / "a.txt"
            tar.add(path, f"top-1.0/{name}")
        link = tarfile.TarInfo("top-1.0/llvm/link")
        link.type, link.linkname = tarfile.SYMTYPE, "deep/b.txt"
        tar.addfile(link)


def everything(folder: Path) -> Plan:
    """A plan with every kind of step that needs no network."""
    archive = folder / "an archive.tar.gz"
    source = folder / "the source"
    show = 'printf "%s|%s|%s" "$SET" "${GONE-unset}" "$1" > "$2"; helper >> "$2"'
    steps = (
        MakeDir(folder / "made" / "deep er", phase="make"),
        MakeDir(folder / "made", phase="make"),
        *(Write(folder / "texts" / name, text, phase="write") for name, text in TEXTS.items()),
        Write(folder / "old" / "file", "new\n", phase="write"),
        Write(
            folder / "tools" / "helper", "#!/bin/sh\necho \"helper in $PWD\" | sed 's|.*/||'\n", phase="write"
        ),
        Run(("chmod", "755", str(folder / "tools" / "helper")), cwd=folder, phase="run"),
        Run(
            ("sh", "-c", show, "sh", "an argument's $HOME", "out put"),
            cwd=folder / "made" / "deep er",
            env=(("SET", 'a "value" $HOME'), ("GONE", None)),
            path=(folder / "tools",),
            phase="run",
        ),
        *(
            Patch(folder, f"texts/{name}", text, f"first\n{text}last", phase="patch")
            for name, text in TEXTS.items()
        ),
        Link(folder / "links" / "new", Path("../made"), phase="link"),
        Link(folder / "wrong link", Path("precious"), phase="link"),
        Link(folder / "to precious", Path("made"), phase="link"),
        Copy(source / "deep er" / "run.sh", folder / "copies" / "renamed", phase="copy"),
        Copy(source, folder / "copies" / "tree", tree=True, phase="copy"),
        Copy(source, folder / "old", tree=True, phase="copy"),
        Move(folder / "made" / "deep er" / "out put", folder / "moved", phase="move"),
        Move(source / "deep er", folder / "moved folder", phase="move"),
        Extract(archive, folder / "all", folder, phase="extract"),
        Extract(archive, folder / "half", folder, only=("llvm", "mlir"), phase="extract"),
        Extract(archive, folder / "strip2", folder, strip=2, only=("deep", "a.txt"), phase="extract"),
        Extract(archive, folder / "strip0", folder, strip=0, phase="extract"),
        Extract(archive, folder / "checked", folder, sha256=download.sha256_of(archive), phase="extract"),
        Remove(
            (folder / "links" / "new", folder / "absent", folder / "all" / "other"), folder, phase="remove"
        ),
    )
    return Plan("everything\nrm -rf .", steps, ("a note\nexit 9",))


def tree_of(folder: Path) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()))
        elif path.is_dir():
            found[name] = ("folder", "")
        else:
            content = path.read_bytes().decode(errors="replace")
            found[name] = ("program" if path.stat().st_mode & 0o100 else "file", content)
    return found


def run_script(script: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(("/bin/sh",), input=script, cwd=cwd, capture_output=True, text=True, check=False)


def test_the_printed_script_does_what_the_runner_does(
    tmp_path: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_runner, by_shell = tmp_path / "a b" / "x", tmp_path / "c d" / "x"
    for folder in (by_runner, by_shell):
        sources(folder)
    Path(tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setenv("GONE", "still here")
    runner = Runner(tmp_path / "log", PhaseProgress(live=False, silent=True))
    runner.run(everything(by_runner))
    done = run_script(everything(by_shell).shell(), tmp_path / "cwd")
    assert (done.returncode, done.stderr) == (0, "")
    made = tree_of(by_runner)
    archive = "an archive.tar.gz"  # gzip keeps the time of packing
    assert made.pop(archive)[0] == "file"
    shell = tree_of(by_shell)
    shell.pop(archive)
    assert shell == made
    for name, text in TEXTS.items():
        assert made[f"texts/{name}"] == ("file", f"first\n{text}last")
    assert made["moved"] == ("file", 'a "value" $HOME|unset|an argument\'s $HOMEdeep er\n')
    assert made["to precious"] == ("link", "made")
    assert made["precious/file"] == ("file", "precious")
    assert made["copies/renamed"][0] == "program"
    assert "half/llvm/deep/b.txt" in made
    assert "half/README" not in made
    assert "half/other" not in made


def test_the_script_downloads_as_the_runner_does(tmp_path: Path, runner: Runner) -> None:
    require("curl", "sha256sum")
    (tmp_path / "the file").write_text("content")
    sha256 = download.sha256_of(tmp_path / "the file")

    def plan(folder: str, checksum: str) -> Plan:
        url, dest = (tmp_path / "the file").as_uri(), tmp_path / folder / "sub" / "dest"
        return Plan("x", (Download(url, checksum, dest, phase="get"),))

    runner.run(plan("by runner", sha256))
    assert run_script(plan("by shell", sha256).shell(), tmp_path).returncode == 0
    assert tree_of(tmp_path / "by runner") == tree_of(tmp_path / "by shell")
    assert run_script(plan("wrong", "0" * 64).shell(), tmp_path).returncode == 1
    assert not (tmp_path / "wrong" / "sub" / "dest").exists()


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_the_script_refuses_to_link_over_a_file_or_folder(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "place"
    path.touch() if kind == "file" else path.mkdir()
    done = run_script(Plan("x", (Link(path, Path("target"), phase="link"),)).shell(), tmp_path)
    assert done.returncode == 1
    assert tree_of(tmp_path) == {"place": (kind, "")}


def test_a_patch_spares_a_file_that_was_changed(tmp_path: Path, runner: Runner) -> None:
    (tmp_path / "file").write_text("mine\n")
    step = Patch(tmp_path, "file", "old\n", "new\n", phase="patch")
    with pytest.raises(StepError, match="has changed since"):
        runner.run(Plan("x", (step,)))
    assert run_script(Plan("x", (step,)).shell(), tmp_path).returncode == 1
    assert (tmp_path / "file").read_text() == "mine\n"


def test_the_script_stops_at_the_first_failure(tmp_path: Path) -> None:
    steps = (
        Run(("false",), cwd=tmp_path, phase="one"),
        MakeDir(tmp_path / "after", phase="two"),
    )
    assert run_script(Plan("x", steps).shell(), tmp_path).returncode == 1
    assert not (tmp_path / "after").exists()


def test_the_script_names_phases_and_stamps(tmp_path: Path) -> None:
    group = stamped([MakeDir(tmp_path / name, phase="p") for name in "ab"], tmp_path / ".done")
    text = Plan("title", (*group, MakeDir(tmp_path / "c", phase="q")), ("watch out",)).shell()
    assert text == "\n".join(
        [
            "#!/bin/sh",
            "# title",
            "# note: watch out",
            "set -eu",
            "",
            "# p",
            f"# skipped if {tmp_path}/.done is up to date:",
            f"mkdir -p {tmp_path}/a",
            f"mkdir -p {tmp_path}/b",
            "",
            "# q",
            "# always:",
            f"mkdir -p {tmp_path}/c",
            "",
        ]
    )


def nothing(_: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("spoil", "holds"),
    [
        (nothing, False),
        (lambda path: path.write_text("key"), True),
        (lambda path: path.write_text("other"), False),
        (lambda path: path.write_text("key\n"), False),
        (lambda path: path.write_text(""), False),
        (lambda path: path.write_bytes(b"\xff\xfe"), False),
        (lambda path: path.mkdir(), False),
        (lambda path: path.symlink_to("nowhere"), False),
        (lambda path: path.symlink_to(path), False),
    ],
)
def test_stamp_holds(tmp_path: Path, spoil: Callable[[Path], object], holds: bool) -> None:
    spoil(tmp_path / "stamp")
    assert Stamp(tmp_path / "stamp", "key").holds() is holds


def test_a_stamp_does_not_hold_without_what_was_made(tmp_path: Path) -> None:
    (tmp_path / "stamp").write_text("key")
    stamp = Stamp(tmp_path / "stamp", "key", tmp_path / "made")
    assert not stamp.holds()
    (tmp_path / "made").mkdir()
    assert stamp.holds()


def test_stamp_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not Stamp(tmp_path / "file" / "stamp", "key").holds()


HERE = Path("/here")
STEPS: tuple[Step, ...] = (
    Run(("a", "b"), cwd=HERE, env=(("A", "1"), ("B", None)), path=(HERE,), phase="p"),
    GitFetch(HERE, ("u", "v"), "c", phase="p"),
    Download("u", "s", HERE, phase="p"),
    Extract(HERE, HERE, HERE, ("a",), 2, "s", phase="p"),
    MakeDir(HERE, phase="p"),
    Write(HERE, "t", phase="p"),
    Link(HERE, HERE, phase="p"),
    Copy(HERE, HERE, tree=True, phase="p"),
    Move(HERE, HERE, phase="p"),
    Patch(HERE, "n", "b", "a", phase="p"),
    Remove((HERE,), HERE, phase="p"),
)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_every_field_but_the_stamp_is_in_a_steps_key(step: Step) -> None:
    others: dict[type, Any] = {
        bool: None,
        int: 7,
        str: "other",
        tuple: ("other",),
        type(HERE): Path("/other"),
    }
    for field in dataclasses.fields(step):
        value = getattr(step, field.name)
        if field.name == "stamp":
            assert step_key(dataclasses.replace(step, stamp=Stamp(HERE, "k"))) == step_key(step)
        else:
            change: Any = {field.name: others.get(type(value), "other")}
            assert step_key(dataclasses.replace(step, **change)) != step_key(step)


def test_keys_of_different_steps_differ() -> None:
    assert len({step_key(step) for step in STEPS}) == len(STEPS)
    assert step_key(MakeDir(HERE, phase="p")) == step_key(MakeDir(Path("/here"), phase="p"))


def test_digest_is_stable_from_run_to_run() -> None:
    assert digest("a", {"b": 1, "a": [HERE]}) == digest("a", {"a": [HERE], "b": 1}) == "4bbc5eb3c04fd681"
    assert digest("a", "b") != digest("b", "a")


def test_stamped_gives_all_one_stamp_that_depends_on_all() -> None:
    one = stamped(STEPS, HERE / ".done")
    assert {step.stamp for step in one} == {Stamp(HERE / ".done", one[0].stamp.key if one[0].stamp else "")}
    other = stamped(STEPS[:-1], HERE / ".done")
    assert one[0].stamp != other[0].stamp
    assert [step_key(step) for step in one] == [step_key(step) for step in STEPS]


def test_plans_add_up() -> None:
    one = Plan("one", STEPS[:1], ("n",))
    other = Plan("other", (MakeDir(HERE, phase="q"), *STEPS[1:2]), ("m",))
    both = one + other
    assert (both.title, both.notes, len(both.steps)) == ("one", ("n", "m"), 3)
    assert both.phases == ("p", "q")


@pytest.mark.parametrize(
    ("step", "title"),
    [
        (STEPS[0], "a"),
        (Download("https://x/y/z.tar", "s", HERE, phase="p"), "download z.tar"),
        (Extract(HERE / "z.tar", HERE, HERE, phase="p"), "extract z.tar"),
        (STEPS[4], "p"),
    ],
)
def test_titles(step: Step, title: str) -> None:
    assert step.title == title


def test_git_fetch_takes_no_option_from_a_revision() -> None:
    argv = GitFetch(HERE, ("u",), "--upload-pack=touch /tmp/x", phase="p").fetch_argv("u")
    assert argv.index("--") < argv.index("u") < argv.index("--upload-pack=touch /tmp/x")
