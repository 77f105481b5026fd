"""The wheel has every file of the package: CMake's, the shell's and the configuration too."""

from __future__ import annotations

from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
_PLACES = {
    "src/tritonsmith": "tritonsmith",
    "configs": "tritonsmith/_data/configs",
    "envs": "tritonsmith/_data/envs",
}


def test_every_file_of_the_package_is_in_the_wheel() -> None:
    builder = WheelBuilder(str(ROOT))
    config = builder.config
    with config.set_build_data({"artifacts": [], "force_include": {}, "build_hooks": ()}):
        packed = {file.distribution_path for file in builder.recurse_included_files()}
    on_disk = {
        f"{place}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, place in _PLACES.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    } | {"tritonsmith/_data/docs/doctor.md"}  # `doctor --explain`
    assert {Path(name).suffix for name in on_disk} >= {".py", ".cmake", ".sh", ".txt", ".toml", ".js", ".css"}
    assert on_disk - packed == set()
