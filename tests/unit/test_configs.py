from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tritonsmith.core import configs

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
    assert configs.data_dir("configs") == Path(configs.__file__).parents[1] / "_data" / "configs"


@dataclass(frozen=True)
class Row:
    name: str
    same_file: bool = False
    source: tuple[str, ...] = ()


def test_a_table_becomes_a_data_class_without_the_keys_that_it_does_not_have() -> None:
    row = configs.as_dataclass(
        Row, {"name": "cuda", "same-file": True, "source": ["#1"], "remark": "for people"}
    )
    assert row == Row("cuda", same_file=True, source=("#1",))
    assert configs.as_dataclass(Row, {"name": "rocm"}) == Row("rocm")
    with pytest.raises(TypeError, match="name"):
        configs.as_dataclass(Row, {"source": []})
