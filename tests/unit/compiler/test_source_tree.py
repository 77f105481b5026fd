"""Which files a kernel needs, so that a copy of them compiles alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.compiler import source, source_tree
from tritonsmith.core.errors import FactError

KERNEL = "@triton.jit\ndef k(p):\n    helper(p)\n"


def plant(root: Path, **texts: str) -> None:
    """Files: `ops__x` is ops/x.py, `ops__` is ops/__init__.py."""
    for name, text in texts.items():
        folder, _, module = name.rpartition("__")
        path = root / folder.replace("__", "/") / f"{module or '__init__'}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def names(root: Path, file: str, kernel: str = "k", module: str = "") -> list[str]:
    """Relative paths of the tree of a kernel."""
    return [name for name, _ in source_tree.of(root / file, kernel, module).sums]


def test_modules_beside_the_file_come_with_it(tmp_path: Path) -> None:
    plant(
        tmp_path,
        mine="import triton\nimport torch\nimport os\nfrom near import helper\nfrom unused import x\n"
        + KERNEL,
        near="import far.deep\nhelper = 1\n",
        far__="",
        far__deep="from . import other\nfrom .gone import x\n",
        far__other="",
        unused="",
        torch="",
    )
    assert names(tmp_path, "mine.py") == [
        "far/__init__.py", "far/deep.py", "far/other.py", "mine.py", "near.py",
    ]  # fmt: skip
    assert "unused.py" in names(tmp_path, "mine.py", "")  # no kernel is named: all of the file counts


def test_a_package_brings_its_own_files_and_small_packages_beside_it(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    plant(
        site,
        pack__="from .heavy import everything\n",
        pack__heavy="",
        pack__ops__="FLAG = 1\nfrom . import more\n",
        pack__ops__more="",
        pack__ops__k="import einops\nfrom ..utils import helper\nfrom pack.base import b\n" + KERNEL,
        pack__utils__="from .inner import helper\n",
        pack__utils__inner="import small.deep, large, torch, numbers\n",
        pack__base="",
        einops__="",
        small__="from .near import x\n",
        small__near="",
        small__deep="",
        torch__="",
        numbers="",
        large__="".join(f"from . import m{number}\n" for number in range(200)),
        **{f"large__m{number}": "" for number in range(200)},
    )
    assert names(site, "pack/ops/k.py") == [
        "pack/__init__.py", "pack/ops/__init__.py", "pack/ops/k.py", "pack/utils/__init__.py",
        "pack/utils/inner.py", "small/__init__.py", "small/deep.py", "small/near.py",
    ]  # fmt: skip
    text = (site / "pack/ops/k.py").read_text()
    (site / "pack/ops/k.py").write_text(text.replace("helper(p)", "helper(p, b, FLAG)"))
    assert "pack/base.py" in names(site, "pack/ops/k.py")
    plant(site, pack__ops__k="from pack.ops import FLAG\nfrom pack.utils import *\n" + KERNEL)
    assert "pack/ops/more.py" in names(site, "pack/ops/k.py", "")  # its __init__.py is asked for something
    assert "pack/utils/inner.py" in names(site, "pack/ops/k.py")


def test_the_import_name_tells_the_root_of_a_package_without_init(tmp_path: Path) -> None:
    plant(tmp_path, space__ops__k="from space.near import helper\n" + KERNEL, space__near="")
    assert names(tmp_path, "space/ops/k.py") == ["k.py"]
    assert names(tmp_path, "space/ops/k.py", module="space.ops.k") == ["space/near.py", "space/ops/k.py"]
    assert names(tmp_path, "space/ops/k.py", module="__main__") == ["k.py"]


def test_the_key_is_of_the_content(tmp_path: Path) -> None:
    for folder in ("one", "other"):
        plant(tmp_path / folder, k=KERNEL + "from near import helper\n", near="helper = 1\n")
    one, other = (source_tree.of(tmp_path / folder / "k.py", "k") for folder in ("one", "other"))
    assert one.key == other.key
    plant(tmp_path / "other", near="helper = 2\n")
    assert source_tree.of(tmp_path / "other" / "k.py", "k").key != one.key


def test_what_cannot_be_parsed_or_read(tmp_path: Path) -> None:
    plant(tmp_path, k="def k(:\n")
    (tmp_path / "k.ttir").write_text("module {}\n")
    assert names(tmp_path, "k.py") == ["k.py"]
    assert names(tmp_path, "k.ttir") == ["k.ttir"]
    with pytest.raises(FactError, match="no such file"):
        source_tree.of(tmp_path / "gone.py", "k")


def test_one_reader_reads_each_file_once_for_all_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = "".join(f"@triton.jit\ndef k{number}(p):\n    helper(p)\n" for number in range(4))
    plant(
        tmp_path,
        pack__="",
        pack__mine="import absent\nfrom pack.near import helper\n" + kernels,
        pack__near="from . import far\nimport other\nhelper = 1\n",
        pack__far="",
    )
    texts: list[str] = []
    read = source.read

    def counted(path: Path) -> str:
        texts.append(path.name)
        return read(path)

    monkeypatch.setattr(source, "read", counted)
    reader = source_tree.TreeReader()
    place = tmp_path / "pack" / "mine.py"
    trees = {reader.of(place, f"k{number}", "pack.mine").key for number in (0, 1, 2, 3, 0)}
    # The kernel's own file once for each kernel, as each needs other statements of it.
    assert sorted(texts) == ["far.py", *["mine.py"] * 4, "near.py"]
    assert trees == {source_tree.of(place, "k0", "pack.mine").key}
