"""Which files a kernel needs, so that a copy of them compiles alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.compiler import source, source_tree
from tritonsmith.core.errors import FactError, SmithError

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


def test_a_file_that_its_package_imports_by_another_name_may_import_the_package(tmp_path: Path) -> None:
    plant(
        tmp_path,
        pack__="",
        pack__base="",
        pack__gpu__="",
        pack__gpu__ops__="",
        pack__gpu__ops__k="from pack.base import helper\n" + KERNEL,
        pack__gpu__ops__alone="from ops.other import helper\n" + KERNEL,
        pack__gpu__ops__other="",
    )
    root = source_tree.of(tmp_path / "pack/gpu/ops/k.py", "k", "ops.k").root
    assert root == tmp_path
    assert "pack/base.py" in names(tmp_path, "pack/gpu/ops/k.py", "k", "ops.k")
    # Of one that does not, the root is where its own name begins.
    assert source_tree.of(tmp_path / "pack/gpu/ops/alone.py", "k", "ops.alone").root == tmp_path / "pack/gpu"


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


def test_relative_imports_tell_the_root_of_a_package_without_init(tmp_path: Path) -> None:
    plant(tmp_path, mine__ops__k="from ..base import helper\nfrom mine.more import x\n" + KERNEL)
    plant(tmp_path, mine__base="helper = 1\n", mine__more="")
    assert names(tmp_path, "mine/ops/k.py") == ["mine/base.py", "mine/ops/k.py"]
    assert names(tmp_path, "mine/ops/k.py", "") == ["mine/base.py", "mine/more.py", "mine/ops/k.py"]
    # Only what the kernel needs decides, as in the worker.
    plant(tmp_path, mine__ops__k="from ...too.far import other\nfrom .near import helper\n" + KERNEL)
    plant(tmp_path, mine__ops__near="helper = 1\n")
    assert names(tmp_path, "mine/ops/k.py") == ["ops/k.py", "ops/near.py"]
    # More levels than there are folders: the worker says so.
    plant(tmp_path, mine__ops__k=f"from {'.' * 99}far import helper\n" + KERNEL)
    assert names(tmp_path, "mine/ops/k.py") == ["k.py"]


def test_a_file_of_a_package_imports_modules_beside_it_as_a_script_does(tmp_path: Path) -> None:
    plant(
        tmp_path,
        pack__="",
        pack__ops__="",
        pack__ops__k="from near import helper\nfrom pack.base import b\n" + KERNEL + "    b(p)\n",
        pack__ops__near="import folder.inner, types\nhelper = 1\n",
        pack__ops__types="",
        pack__ops__folder__inner="",
        pack__base="import lone\nb = 1\n",
        pack__lone="",
    )
    assert names(tmp_path, "pack/ops/k.py") == [
        "pack/__init__.py", "pack/base.py", "pack/ops/__init__.py", "pack/ops/folder/inner.py",
        "pack/ops/k.py", "pack/ops/near.py",
    ]  # fmt: skip


def test_a_package_beside_brings_those_that_it_needs_unless_they_are_installed(tmp_path: Path) -> None:
    texts = {
        "pack__": "",
        "pack__k": "import second\n@triton.jit\ndef k(p):\n    second.f(p)\n",
        "second__": "from third.part import f\n",
        "third__": "",
        "third__part": "import second, fourth\n",
        "fourth": "",
    }
    for folder in ("checkout", "site-packages"):
        plant(tmp_path / folder, **texts)
    needed = ["pack/__init__.py", "pack/k.py", "second/__init__.py"]
    assert names(tmp_path / "site-packages", "pack/k.py") == needed
    more = ["fourth.py", "third/__init__.py", "third/part.py"]
    assert names(tmp_path / "checkout", "pack/k.py") == sorted([*needed, *more])


def test_a_copy_of_a_corpus_counts_whole_and_through_its_links(tmp_path: Path) -> None:
    # Python's folder, and one with the name of a corpus' own, may be anywhere in the path.
    corpus = tmp_path / "__pycache__" / "sources" / "corpus"
    copy = corpus / "sources" / "0123456789abcdef"
    plant(copy, pack__="", pack__sources__k=KERNEL, pack__unread="")
    plant(tmp_path / "checkout", part__="SCALE = 1\n")
    (copy / "part").symlink_to(tmp_path / "checkout" / "part")
    (copy / "pack" / "around").symlink_to(copy)
    (copy / "pack" / ".#k.py").symlink_to("jane@machine:1")  # the lock of an editor
    (copy / "pack" / "__pycache__").mkdir()
    (copy / "pack" / "__pycache__" / "unread.pyc").write_text("")
    alone = ["k.py"]
    assert names(copy, "pack/sources/k.py") == alone  # without the list, it is no corpus
    (corpus / "kernels.toml").write_text("")
    tree = source_tree.of(copy / "pack/sources/k.py", "k")
    assert (tree.root, tree.main) == (copy, "pack/sources/k.py")
    assert [name for name, _ in tree.sums] == [
        "pack/__init__.py", "pack/sources/k.py", "pack/unread.py", "part/__init__.py",
    ]  # fmt: skip
    plant(tmp_path / "checkout", part__="SCALE = 2\n")
    assert source_tree.of(copy / "pack/sources/k.py", "k").key != tree.key
    for number in range(2001):
        (tmp_path / "checkout" / "part" / f"{number}.txt").touch()
    with pytest.raises(SmithError, match="more than 2000 files"):
        source_tree.of(copy / "pack/sources/k.py", "k")


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
