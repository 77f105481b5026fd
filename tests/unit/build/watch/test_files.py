"""Files that are really saved, in the ways of editors."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tritonsmith.build.watch.files import NamedPaths, PythonFiles, SavedError, Saves
from tritonsmith.core.errors import SmithError

PATIENCE = 20.0  # seconds


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.py"
    path.write_text("x = 1\n")
    return path


@pytest.fixture
def saves(kernel: Path) -> Iterator[Saves]:
    with Saves([PythonFiles([kernel])]) as made:
        until_watched(made, kernel)
        yield made


def until_watched(saves: Saves, path: Path) -> None:
    """Save until that is seen: the watcher is a thread, which begins when it likes."""
    seen = False
    until = time.monotonic() + PATIENCE
    while not seen:
        assert time.monotonic() < until
        try:
            with saves.heeded():
                path.write_text(f"x = {time.monotonic()}\n")
                time.sleep(0.1)
        except SavedError:
            seen = True
    saves.wait()


def replaced(path: Path) -> None:
    fresh = path.with_name("kernel.py.new")
    fresh.write_text("x = 2\n")
    fresh.replace(path)


def made_again(path: Path) -> None:
    path.unlink()
    path.write_text("x = 3\n")


def backed_up(path: Path) -> None:
    path.rename(path.with_name("kernel.py~"))
    path.write_text("x = 4\n")


@pytest.mark.parametrize("save", [lambda path: path.write_text("x = 5\n"), replaced, made_again, backed_up])
def test_each_way_to_save_is_seen(save: Callable[[Path], object], kernel: Path, saves: Saves) -> None:
    save(kernel)
    assert saves.wait() == {kernel}


def test_saves_that_follow_each_other_count_once(kernel: Path, saves: Saves) -> None:
    for number in range(5):
        kernel.write_text(f"x = {number}\n")
    assert saves.wait() == {kernel}
    with saves.heeded():
        time.sleep(0.2)


def test_a_file_of_no_matter_causes_nothing(kernel: Path, saves: Saves) -> None:
    for name in ("README.md", ".kernel.py.swp", "other.py"):
        kernel.with_name(name).write_text("")
    kernel.with_name("__pycache__").mkdir()
    with saves.heeded():
        time.sleep(0.2)


def interrupted_by(saves: Saves, save: Callable[[], object]) -> bool:
    try:
        with saves.heeded():
            save()
            time.sleep(PATIENCE)
    except SavedError:
        return True
    return False


def test_a_save_interrupts_a_run_and_is_not_lost(kernel: Path, saves: Saves) -> None:
    assert interrupted_by(saves, lambda: kernel.write_text("x = 6\n"))
    assert saves.wait() == {kernel}
    kernel.write_text("x = 7\n")
    deadline = time.monotonic() + PATIENCE
    while (
        saves._found.empty() and time.monotonic() < deadline
    ):  # on a busy machine it takes a while to arrive
        time.sleep(0.05)
    with pytest.raises(SavedError), saves.heeded():
        pytest.fail("the save before was forgotten")


def test_a_run_that_writes_what_was_there_does_not_interrupt_itself(kernel: Path, saves: Saves) -> None:
    text = kernel.read_text()
    with saves.heeded():
        kernel.write_text(text)
        time.sleep(0.2)
    time.sleep(0.1)  # the clock of files is coarse, and may lag behind the run's end
    kernel.write_text(text)
    assert saves.wait() == {kernel}, "a person who saves wants a run"


def test_a_run_that_writes_what_was_there_last_of_all_does_not_start_itself(
    kernel: Path, saves: Saves
) -> None:
    text = kernel.read_text()
    with saves.heeded():
        kernel.write_text(text)
    with saves.heeded():
        time.sleep(0.3)


def test_a_signal_whose_save_was_taken_interrupts_nothing(saves: Saves) -> None:
    with saves.heeded():
        signal.raise_signal(signal.SIGUSR1)


def test_new_folders_are_watched(kernel: Path, saves: Saves) -> None:
    package = kernel.with_name("parts")
    package.mkdir()
    (package / "__init__.py").write_text("")
    kernel.write_text("import parts\n")
    assert saves.wait() == {kernel}
    time.sleep(0.2)
    (package / "__init__.py").write_text("y = 1\n")
    assert saves.wait() == {package / "__init__.py"}


def test_a_folder_that_cannot_be_watched(tmp_path: Path) -> None:
    with Saves([NamedPaths([tmp_path / "gone" / "file"])]) as saves, pytest.raises(SmithError) as error:
        saves.wait()
    assert "cannot watch" in error.value.what
