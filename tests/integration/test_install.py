"""`install-triton` and `link-compile-commands` on top of what `build-triton` built."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.integration.harness import LLVM, Done, Smith, capture, git, plant

NAME = "compile_commands.json"


@pytest.fixture(scope="module")
def installed(built: Smith) -> Done:
    """The checkout, installed into the env."""
    return built("install-triton")  # nothing said of Debug: as it was built last


def test_import_works_in_the_env_from_the_checkout(built: Smith, installed: Done) -> None:
    python = built.env("dev") / "venv" / "bin" / "python"
    assert f"import triton works in {python}" in installed.out
    assert "vector_add by Triton 3.6.0" in installed.out
    ask = "import triton, json; print(json.dumps([triton.__file__, triton.built_in()]))"
    file, backends = json.loads(capture(python, "-c", ask, cwd=built.root, env=built.environ))
    assert Path(file) == built.cwd / "python" / "triton" / "__init__.py"
    assert backends == {"nvidia": 12080, "amd": "gfx942"}


def test_the_install_goes_on_in_the_build_folder_and_builds_nothing_again(
    built: Smith, installed: Done
) -> None:
    assert installed.code == 0
    link = next((built.cwd / "build").glob("cmake.*"))
    assert link.resolve() == built.build().resolve()
    log = built.log("install-triton")
    assert log.count("ninja: no work to do.") >= 1
    assert "Building C" not in log
    assert "Linking" not in log


def test_after_the_install_build_triton_has_nothing_to_do(built: Smith, installed: Done) -> None:
    assert installed.code == 0
    built("build-triton", "--debug")
    assert "ninja: no work to do." in built.log("build-triton")


def test_the_install_leaves_the_checkout_clean(built: Smith, installed: Done) -> None:
    assert installed.code == 0
    assert git(built.cwd, "status", "--porcelain") == ""


IDLE = "pip has nothing to do"


def test_pip_runs_again_only_if_what_it_left_or_what_it_reads_has_changed(
    built: Smith, installed: Done
) -> None:
    """Each change is one that pip would notice, or undo, and that a file of the last install cannot tell."""
    assert installed.code == 0
    python = built.env("dev") / "venv" / "bin" / "python"
    site = Path(capture(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    setup, stranger = built.cwd / "setup.py", site / "triton-9.9.9.dist-info"
    (line,) = site.glob("__editable__*.pth")
    backend = built.cwd / "python" / "triton" / "backends" / "another"
    text = setup.read_bytes()

    def run() -> bool:
        """Whether `install-triton` ran pip; the import works afterwards in any case."""
        built("install-triton")
        capture(python, "-c", "import triton; triton.built_in()", cwd=built.root, env=built.environ)
        return IDLE not in built.log("install-triton")

    run()
    assert not run()
    (built.cwd / "python" / "triton" / "language.py").touch()  # which an editable install finds by itself
    assert not run()
    for change in (
        lambda: capture(python, "-m", "pip", "uninstall", "--quiet", "--yes", "triton"),
        line.unlink,
        partial(backend.symlink_to, built.cwd / "third_party" / "nvidia"),
        backend.unlink,
        lambda: setup.write_bytes(text + b"# changed\n"),
        lambda: setup.write_bytes(text),
        lambda: git(built.cwd, "commit", "--quiet", "--allow-empty", "--message", "another version"),
        lambda: git(built.cwd, "switch", "--quiet", "--create", "release/3.6.x"),
        stranger.mkdir,
        stranger.rmdir,
        (built.cwd / "third_party" / "another").mkdir,
        (built.cwd / "third_party" / "another").rmdir,
    ):
        change()
        assert run()
        assert not run()
    git(built.cwd, "switch", "--quiet", "-")


def test_a_wheel_runs_elsewhere_and_the_build_folder_stays_as_it_was(
    built: Smith, installed: Done, tmp_path: Path
) -> None:
    assert installed.code == 0
    library = next((built.cwd / "python" / "triton" / "_C").glob("libtriton*"))
    before = library.stat().st_mtime_ns
    done = built("build-triton", "--debug", "--wheel")
    log = built.log("build-triton")
    assert "Building C" not in log
    assert "## configure Triton as before the wheel: cmake" in log
    (wheel,) = (built.env("dev") / "wheels").glob("triton-3.6.0-*.whl")
    assert wheel.name in "".join(done.out.split())
    assert "it needs glibc 2." in done.out
    assert built.receipt("build-triton")["wheels"] == str(wheel.parent)
    python, packages = built.env("dev") / "venv" / "bin" / "python", tmp_path / "packages"
    capture(python, "-m", "pip", "install", "--quiet", "--no-deps", "--target", packages, wheel)
    ask = "import triton, json; print(json.dumps([triton.__file__, triton.built_in()]))"
    environ = {**built.environ, "PYTHONPATH": str(packages)}
    file, backends = json.loads(capture(python, "-c", ask, cwd=built.root, env=environ))
    assert Path(file) == packages / "triton" / "__init__.py"
    assert backends == {"nvidia": 12080, "amd": "gfx942"}
    assert library.stat().st_mtime_ns == before
    built("build-triton", "--debug")  # which links it once more: both links write one file of dependencies
    log = built.log("build-triton")
    assert "Building C" not in log
    assert f'Linking C shared module "{library}"' in log or "ninja: no work to do." in log
    assert git(built.cwd, "status", "--porcelain") == ""


def test_a_file_that_setup_py_would_delete_keeps_install_triton_from_starting(built: Smith) -> None:
    mine = built.cwd / NAME
    mine.unlink(missing_ok=True)
    mine.write_text("[]\n", encoding="utf-8")
    try:
        error = built("install-triton", code=1).error
    finally:
        mine.unlink()
    assert "nothing was started" in error
    assert "[compile-commands] setup.py would " in error
    assert str(mine) in error


@pytest.mark.parametrize("state", ["absent", "right", "wrong", "dangling", "file"])
def test_the_link_is_right_whatever_lay_there(built: Smith, state: str) -> None:
    link, merged = built.cwd / NAME, built.env("dev") / NAME
    backup = built.cwd / f"{NAME}.backup"
    for path in (link, backup):
        path.unlink(missing_ok=True)
    match state:
        case "right":
            link.symlink_to(merged)
        case "wrong":
            link.symlink_to(built.cwd / "setup.py")
        case "dangling":
            link.symlink_to("nowhere")
        case "file":
            link.write_text("[]\n", encoding="utf-8")
    built("link-compile-commands")
    assert link.readlink() == merged
    commands = json.loads(link.read_text(encoding="utf-8"))
    assert {Path(row["file"]).name for row in commands} >= {"triton-opt.cpp", "Dialect.cpp", "main.c"}
    assert all(Path(row["directory"]).is_dir() for row in commands)
    assert backup.exists() == (state == "file")
    if state == "file":
        assert backup.read_text(encoding="utf-8") == "[]\n"
    link.unlink()


def test_a_folder_in_the_way_is_left_alone(built: Smith) -> None:
    folder = built.cwd / NAME
    folder.unlink(missing_ok=True)
    folder.mkdir()
    (folder / "mine").touch()
    try:
        error = built("link-compile-commands", code=1).error
        assert (folder / "mine").exists()
    finally:
        (folder / "mine").unlink()
        folder.rmdir()
    assert "a folder is in the place of the link" in error
    assert str(folder) in error


def test_the_database_has_the_commands_of_an_llvm_that_the_tool_built_too(
    built: Smith, tmp_path: Path
) -> None:
    sources = plant("mini_llvm", tmp_path / "llvm-project")
    from_source = ("--provider", "source", "--llvm-source", sources, "--any-commit", "--target", "FileCheck")
    built("setup-mlir", *from_source)
    try:
        built("link-compile-commands")
        commands = json.loads((built.cwd / NAME).read_text(encoding="utf-8"))
    finally:
        built("setup-mlir", "--provider", "system", "--llvm-dir", LLVM)
    files = [Path(row["file"]) for row in commands]
    assert sources / "llvm" / "utils" / "FileCheck.cpp" in files
    assert built.cwd / "bin" / "triton-opt.cpp" in files
    assert len(files) == len(set(files))


def test_there_is_nothing_to_link_before_a_build(built: Smith) -> None:
    error = built("link-compile-commands", "--env", "release", code=1).error
    assert "compile_commands.json does not exist yet" in error
    assert "tritonsmith build-triton" in error
