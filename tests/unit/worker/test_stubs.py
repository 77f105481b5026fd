"""What a stand-in for a module that is not installed answers, and what is noted of it."""

from __future__ import annotations

import copy
import importlib
import linecache
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tritonsmith.worker.messages import LedgerNews
from tritonsmith.worker.stubs import Ledger, LentFinder, StubFinder, UnknownError, name_of

Run = Callable[[str], dict[str, Any]]


@pytest.fixture
def ledger() -> Ledger:
    """Nothing is noted yet."""
    return Ledger()


@pytest.fixture
def run(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs a file in whose place `gone`, `other` and all below them are not installed; gives its names."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, StubFinder(["gone", "other"], ledger)])
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "__init__.py").touch()

    def run(text: str) -> dict[str, Any]:
        file = tmp_path / "k.py"
        file.write_text(text)
        linecache.clearcache()  # a folder of an earlier test may have had this path
        names: dict[str, Any] = {"__name__": "k"}
        exec(compile(text, str(file), "exec"), names)  # noqa: S102
        return names

    yield run
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_what_is_replaced_is_noted_by_its_full_name_and_first_place(run: Run, ledger: Ledger) -> None:
    run("import gone.nn\nx = gone.nosuch.thing\ny = gone.nosuch.thing\nfrom gone.nn import Module\n")
    assert ledger.used == {"gone.nn": "k.py:1", "gone.nosuch.thing": "k.py:2", "gone.nn.Module": "k.py:4"}
    assert not ledger.doubts
    assert ledger.news().stand_ins == ledger.used
    assert ledger.news() == LedgerNews(), "each is told once"


def test_a_module_of_a_package_that_is_here_has_no_stand_in(run: Run, ledger: Ledger) -> None:
    ledger_names = StubFinder(["here"], ledger)
    assert ledger_names.find_spec("here.nosuch") is None
    with pytest.raises(ModuleNotFoundError, match=r"here\.nosuch"):
        run("import here\nimport here.nosuch\n")
    assert not ledger.used


WITHOUT = (
    "try:\n    import gone\n    HAVE = 1\nexcept ImportError:\n    HAVE = 0\n",
    """
def have():
    try:
        import gone.nn
    except Exception:
        return 0
    return 1
HAVE = have()
""",
    """
import contextlib
HAVE = 0
with contextlib.suppress(ModuleNotFoundError):
    import gone
    HAVE = 1
""",
    "import importlib.util\nHAVE = int(importlib.util.find_spec('gone') is not None)\n",
    """
import importlib
try:
    HAVE = len([importlib.import_module('gone')])
except ImportError:
    HAVE = 0
""",
)


@pytest.mark.parametrize("text", WITHOUT)
def test_who_says_what_happens_without_a_module_goes_on_without(run: Run, ledger: Ledger, text: str) -> None:
    assert run(text)["HAVE"] == 0
    assert list(ledger.gone) == ["gone"]
    assert not ledger.used


def test_whether_a_missing_package_has_a_part_is_doubtful(run: Run, ledger: Ledger) -> None:
    run("import gone\ntry:\n    import gone.part\nexcept ImportError:\n    pass\nhasattr(gone, 'x')\n")
    assert list(ledger.doubts) == [
        "k.py:3: the code depends on the presence of gone.part, a stand-in",
        "k.py:6: the code depends on the presence of gone.x, a stand-in",
    ]


def test_a_name_is_the_same_thing_each_time_and_so_a_key(run: Run, ledger: Ledger) -> None:
    names = run(
        "import gone\nfrom gone import half\nTYPES = {gone.half: 1, gone.float: 2}\n"
        "FOUND = TYPES[half], TYPES[gone.float], gone.half is half, gone.half == half\n"
    )
    assert names["FOUND"] == (1, 2, True, True)
    assert not ledger.doubts


def test_what_inherits_from_one_has_what_it_would_have(run: Run, ledger: Ledger) -> None:
    names = run(
        "import abc, enum, typing, gone\n"
        "class F(gone.autograd.Function):\n    @staticmethod\n    def forward(x):\n        return 3\n"
        "f = F.apply\n"
        "class G(F, typing.Generic[typing.TypeVar('T')]):\n"
        "    def __init__(self):\n        super().__init__(1)\n"
        "class H(gone.Module, gone.Other, abc.ABC):\n    pass\n"
        "class Kind(gone.Strings, enum.Enum):\n    A = 1\n"
        "class Kept(gone.Module[int], kw=3):\n    x: gone.Tensor | None = None\n"
        "FOUND = F.forward(1), G().forward(1), Kind.A.name, callable(G().eval)\n"
    )
    assert names["FOUND"] == (3, 3, "A", True)
    assert name_of(names["f"]) == "gone.autograd.Function.apply"
    assert ledger.used["gone.autograd.Function.apply"] == "k.py:6"
    assert not ledger.doubts


def test_harmless_uses_decide_nothing(run: Run, ledger: Ledger) -> None:
    names = run(
        "import dataclasses, functools, typing, copy, gone\n"
        "@gone.no_grad()\n@gone.compile\n"
        "def f(x: gone.Tensor) -> typing.Optional[gone.Tensor]:\n    return 4\n"
        "@gone.register('x')\nclass C:\n    pass\n"
        "@dataclasses.dataclass\nclass D:\n    kind: typing.Union[gone.dtype, int] = gone.float\n"
        "with gone.device('x') as d:\n    y = 2 * gone.pi + d[0] - gone.e // 3\n"
        "copy.deepcopy(gone.x), functools.partial(gone.f, 1), gone.cat([1, 2], dim=0)\n"
        "-gone.x, gone.x.y()[1:], repr(gone.x)\n"
    )
    assert names["f"](1) == 4
    assert isinstance(names["C"], type)
    assert not ledger.doubts


def test_exceptions_can_be_caught_raised_and_inherited(run: Run, ledger: Ledger) -> None:
    names = run(
        "import gone\n"
        "try:\n    gone.init()\nexcept gone.NVMLError_Unknown as error:\n    raise\n"
        "class Own(gone.LibraryException): pass\n"
        "try:\n    raise Own('mine')\n"
        "except (gone.NVMLError, gone.LibraryException) as error:\n    text = str(error)\n"
        "same = gone.NVMLError is gone.NVMLError, isinstance(3, gone.NVMLError)\n"
    )
    assert (names["text"], names["same"]) == ("mine", (True, False))
    assert not ledger.doubts
    assert "gone.NVMLError" in ledger.used


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("if gone.x.y:\n    pass", "the truth value of gone.x.y"),
        ("gone.f(1) or 2", "the truth value of gone.f()"),
        ("gone.x > 3", "a comparison of gone.x"),
        ("3 < gone.x", "a comparison of gone.x"),
        ("gone.x == gone.y", "a comparison of gone.x"),
        ("gone.x != 'a'", "a comparison of gone.x"),
        ("[1 for _ in gone.x]", "the elements of gone.x"),
        ("len(gone.x)", "the length of gone.x"),
        ("3 in gone.x", "the elements of gone.x"),
        ("isinstance(3, gone.Tensor)", "an instance of gone.Tensor"),
        ("'bfloat16' in str(gone.x)", "the text of gone.x"),
        ("{'float16': 1}.get(f'{gone.x}', 2)", "the text of gone.x"),
        ("gone.__version__.split('.')", "the value '0' of gone.__version__"),
        ("getattr(gone, 'x', None)", "the presence of gone.x"),
    ],
)
def test_what_decides_is_a_doubt_and_while_a_kernel_is_compiled_an_error(
    run: Run, ledger: Ledger, text: str, what: str
) -> None:
    run(f"import gone\n{text}\n")
    assert list(ledger.doubts) == [f"k.py:2: the code depends on {what}, a stand-in"]
    ledger.strict = True
    with pytest.raises(UnknownError, match="is needed, but gone is not installed"):
        run(f"import gone\n{text}\n")


def test_what_a_kernel_calls_is_refused_and_what_it_only_names_is_not(run: Run, ledger: Ledger) -> None:
    """Triton lets a kernel read a module, and so the annotation `x: gone.Tensor`, and calls what it calls."""
    names = run("import gone\nimport gone.tiles\n")
    assert type(names["gone"]) is ModuleType
    assert copy.copy(names["gone"].Tensor) is names["gone"].Tensor
    ledger.strict = True
    run("import gone\nx = gone.Tensor\n")
    with pytest.raises(UnknownError, match=r"a call of gone.tiles.store is needed"):
        run("import gone\ngone.tiles.store(1, 2)\n")


def test_triton_passes_over_what_is_named(
    run: Run, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As triton.runtime.jit looks at what a kernel depends on, and triton.compiler at what it may read."""
    text = "def look(x): return f'{x}', x == 3, bool(x), getattr(x, '__triton_builtin__', False)\n"
    for name in ("__init__", "runtime/__init__", "compiler/__init__"):
        path = tmp_path / "triton" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (tmp_path / "triton/runtime/jit.py").write_text(text)
    (tmp_path / "triton/compiler/code.py").write_text(text)
    for name in [one for one in sys.modules if one.partition(".")[0] == "triton"]:
        monkeypatch.delitem(sys.modules, name)
    names = run(
        "import gone\nfrom triton.runtime import jit\nfrom triton.compiler import code\nx = gone.Tensor\n"
    )
    assert names["jit"].look(names["x"]) == ("<stand-in gone.Tensor>", False, False, True)
    assert not ledger.doubts
    assert names["code"].look(names["x"]) == ("<stand-in gone.Tensor>", False, False, False)
    assert len(ledger.doubts) == 2  # a comparison and the truth


@pytest.mark.parametrize("text", ["range(gone.x)", "int(gone.x)", "float(gone.x)", "[1, 2][gone.x]"])
def test_a_number_is_never_made_up(run: Run, ledger: Ledger, text: str) -> None:
    with pytest.raises(UnknownError, match=r"the number of gone.x is needed, but gone is not installed"):
        run(f"import gone\ntry:\n    {text}\nexcept Exception:\n    pass\n")
    assert ledger.doubts, "it is told, even if the file catches everything"


def test_what_triton_itself_asks_is_no_use_of_the_kernel(
    run: Run, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").write_text("import gone\nFLAG = gone.x\n")
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    run("import triton\n")
    assert not ledger.used


def test_a_package_that_is_lent_comes_from_its_folder_and_nothing_else_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lent_package").mkdir()
    (tmp_path / "lent_package" / "__init__.py").write_text("from lent_package.version import MAJOR\n")
    (tmp_path / "lent_package" / "version.py").write_text("MAJOR = 26\n")
    (tmp_path / "beside_it.py").touch()
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, LentFinder({"lent_package": str(tmp_path)})])
    try:
        assert importlib.import_module("lent_package").MAJOR == 26
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("beside_it")
    finally:
        for name in ("lent_package", "lent_package.version"):
            sys.modules.pop(name, None)
