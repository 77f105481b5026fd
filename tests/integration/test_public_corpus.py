"""`compare --corpus-make` of wheels of the test's own, with the newest Triton and no torch."""

from __future__ import annotations

import hashlib
import json
import shutil
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.integration.harness import Smith

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def {name}(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, {value}, mask=at < n)
"""
# The module's name is that of the driver without `_driver`: the driver must import the package, not itself.
DRIVER = """
import sys
from norms.first import double
from norms.second import shift

class Array:
    dtype = "float32"
    def data_ptr(self):
        return 256

print("standard output is not the result")
for n in (100, 128, 256, 1):
    double[(1,)](Array(), Array(), n, BLOCK=64)
    shift[(1,)](Array(), Array(), n, BLOCK=128)
print("not reached: scale: RuntimeError: no GPU", file=sys.stderr)
"""
PACKAGE = """
[[package]]
name = "{name}"
version = "{version}"
license = "MIT"
sha256 = ["{sha256}"]
drivers = ["{driver}"]
"""


def wheel(folder: Path, version: str, value: str) -> str:
    """Write a wheel of a package with two kernels, one of which has a new source; return its hash."""
    folder.mkdir(exist_ok=True)
    info = f"norms-{version}.dist-info"
    texts = {
        "norms/__init__.py": "",
        "norms/first.py": KERNEL.format(name="double", value="value * 2"),
        "norms/second.py": KERNEL.format(name="shift", value=value),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: norms\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in (*texts, f"{info}/RECORD"))
    path = folder / f"norms-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in (texts | {f"{info}/RECORD": record}).items():
            archive.writestr(name, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def recipe(path: Path, *packages: str, more: str = "") -> None:
    path.write_text(
        f'device = "h100"\npython = "3.11"\nplatforms = ["manylinux2014_x86_64"]\nmost = 2\n{more}'
        + "".join(packages)
    )


def norms(version: str, sha256: str, driver: str = "norms_driver.py") -> str:
    return PACKAGE.format(name="norms", version=version, sha256=sha256, driver=driver)


@pytest.fixture
def smith(with_wheel: Smith, tmp_path: Path) -> Smith:
    """Somebody with a recipe, whose registry is a folder."""
    (tmp_path / "norms_driver.py").write_text(DRIVER)
    recipe(tmp_path / "recipe.toml", norms("1.0", wheel(tmp_path / "wheels", "1.0", "value + 1")))
    more = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels")}
    return Smith(tmp_path, cwd=tmp_path, more=more, shared=with_wheel.home)


def test_a_corpus_is_recorded_then_made_anew_and_a_new_version_shows(smith: Smith, tmp_path: Path) -> None:
    make = ("compare", "--corpus-make", "recipe.toml", "--corpus", "corpus")
    done = smith(*make, "--record", "--env", "wheel", "--json")
    (row,) = json.loads(done.out)["packages"]
    assert [kernel["state"] for kernel in row["kernels"]] == ["new"] * 4
    assert row["not_reached"] == ["scale: RuntimeError: no GPU"]
    text = (tmp_path / "captured" / "norms.toml").read_text()
    assert str(tmp_path) not in text
    rows = tomllib.loads(text)["kernel"]
    assert sorted({(entry["file"], entry["kernel"]) for entry in rows}) == [
        ("norms/first.py", "double"), ("norms/second.py", "shift"),
    ]  # fmt: skip

    # Whoever has no torch and no Triton makes the same: the drivers do not run.
    shutil.rmtree(tmp_path / "corpus")
    assert "norms 1.0 (MIT): 4 new" in smith(*make, "--env", "no-such-environment").out
    smith("kernel.compile", "corpus/kernels.toml", "--env", "wheel", "--target", "h100")

    recipe(tmp_path / "recipe.toml", norms("1.1", wheel(tmp_path / "wheels", "1.1", "value - 1")))
    assert smith(*make).out.splitlines()[:2] == [
        "norms 1.1 (MIT): 2 changed, 2 same",
        "  the source of 2 kernels changed since the capture (shift, shift-3); --record captures anew",
    ]


def test_what_fails_costs_itself_only(smith: Smith, tmp_path: Path) -> None:
    (tmp_path / "crash_driver.py").write_text(DRIVER + "import os\nos.abort()\n")
    (tmp_path / "captured").mkdir()
    (tmp_path / "captured" / "crash.toml").write_text("kept")
    sha256 = wheel(tmp_path / "wheels", "1.0", "value + 1")
    ghost = PACKAGE.format(name="ghost", version="2", sha256=sha256, driver="norms_driver.py")
    twice = norms("1.0", sha256, 'crash_driver.py", "norms_driver.py')
    recipe(tmp_path / "recipe.toml", ghost, twice)
    make = ("compare", "--corpus-make", "recipe.toml", "--corpus", "corpus", "--record", "--env", "wheel")
    done = smith(*make, code=1)
    assert "norms (norms_driver.py) 1.0 (MIT): 4 new" in done.out
    assert "2 of 3 drivers added no kernels to the corpus" in done.error
    assert "norms (crash_driver.py): the driver ended with exit code 134" in done.error
    assert "ghost: " in done.error
    assert (tmp_path / "captured" / "crash.toml").read_text() == "kept"


def test_a_driver_that_never_ends_is_killed(smith: Smith, tmp_path: Path) -> None:
    (tmp_path / "norms_driver.py").write_text("while True:\n    print('more')\n")
    sha256 = wheel(tmp_path / "wheels", "1.0", "value + 1")
    recipe(tmp_path / "recipe.toml", norms("1.0", sha256), more="seconds = 2\n")
    make = ("compare", "--corpus-make", "recipe.toml", "--corpus", "corpus", "--record", "--env", "wheel")
    assert "norms: the program did not end within 2 s" in smith(*make, code=1).error
