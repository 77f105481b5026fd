from __future__ import annotations

from pathlib import Path

from tests.unit.facts.installs import install, python_of, site_of
from tritonsmith.facts import torch_install
from tritonsmith.facts.torch_install import Torch

GIT = "cf30153c4c131c8164ee7798e5022d810682e2cb"


def test_everything_that_it_tells(tmp_path: Path) -> None:
    text = (
        "from typing import Optional\n__version__ = '2.13.0+cu130'\ndebug = False\n"
        f"cuda: Optional[str] = '13.0'\ngit_version = '{GIT}'\nhip: Optional[str] = None\n"
        "xpu: Optional[str] = '20250201'\n"
    )
    install(site_of(tmp_path), "torch", "2.13.0+cu130", {"torch/version.py": text})
    assert torch_install.read(python_of(tmp_path)) == Torch(
        "2.13.0+cu130", GIT, "", "False", "13.0", "", "20250201"
    )


def test_none_and_one_that_says_little(tmp_path: Path) -> None:
    assert torch_install.read(python_of(tmp_path)) is None
    text = "__version__ = '2.0'\ngit_version = 'Unknown'\n"
    install(site_of(tmp_path), "torch", "2.0", {"torch/version.py": text})
    assert torch_install.read(python_of(tmp_path)) == Torch("2.0", "", "")
