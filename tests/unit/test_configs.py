from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith import configs

FILES = sorted(path.stem for path in configs.data_dir("configs").glob("*.toml"))


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_valid_and_names_its_schema(name: str) -> None:
    assert configs.load(name)["schema"] == 1


def test_a_file_is_read_once() -> None:
    assert configs.load("tools") is configs.load("tools")


def test_a_missing_file_is_a_bug() -> None:
    with pytest.raises(FileNotFoundError):
        configs.load("no-such-file")


def test_data_lies_inside_the_package_once_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert configs.data_dir("envs").name == "envs"
    monkeypatch.setattr(configs, "_REPOSITORY", tmp_path)
    assert configs.data_dir("configs") == Path(configs.__file__).parent / "_data" / "configs"
