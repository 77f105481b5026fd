"""The trial of a torch in a process of its own, before anything of it is patched in a user's process.

Real torches are for tests/real/test_capture.py; here the trial crashes, hangs, fails or works.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from tritonsmith.worker.messages import CaptureRequest
from tritonsmith.worker.torch_accelerator import TorchAccelerator, canary, fate
from tritonsmith.worker.torch_compile import compile_if_captured

pytestmark = pytest.mark.unit

CRASHES, HANGS, FAILS = "import os; os.abort()", "import time; time.sleep(600)", "raise ValueError('no such')"
COUNTS = "import os; open('trials', 'a').write('x')"


def trial(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


@pytest.fixture
def request_(tmp_path: Path) -> CaptureRequest:
    return CaptureRequest(
        target=("cuda", 90, 32),
        gpus={},
        results=str(tmp_path / "work" / "results"),
        stand_ins=(),
        canaries=str(tmp_path / "canaries"),
        built={},
        memory=1,
        inductor={},
        autocast={},
        canary_timeout=60,
    )


@pytest.fixture
def torch(tmp_path: Path) -> ModuleType:
    """A torch of which only the version and the library matter."""
    library = tmp_path / "torch" / "lib" / "libtorch_cpu.so"
    library.parent.mkdir(parents=True)
    library.write_text("no library")
    module = ModuleType("torch")
    vars(module).update(__version__="2.13.0", __file__=str(tmp_path / "torch" / "__init__.py"))
    return module


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pass", ""),
        (CRASHES, "a trial of it ended by SIGABRT"),
        (HANGS, "a trial of it did not end within 1 s"),
        (FAILS, "a trial of it failed: ValueError: no such"),
        ("import sys; sys.exit(3)", "a trial of it failed: exit code 3"),
    ],
)
def test_every_way_to_end(request_: CaptureRequest, text: str, said: str) -> None:
    limited = replace(request_, canary_timeout=1) if text == HANGS else request_
    assert fate(trial(text), limited) == said


def test_the_trial_is_not_captured_itself(
    request_: CaptureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "work" / "site"
    site.mkdir(parents=True)
    (site / "sitecustomize.py").write_text("import os\nos._exit(9)\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(site), str(tmp_path / "mine"))))
    said = "import os; assert os.environ['PYTHONPATH'].endswith('mine')"
    assert fate(trial(said), request_) == ""


def test_a_torch_is_tried_once_until_it_is_another(
    request_: CaptureRequest, torch: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def trials() -> int:
        return len((tmp_path / "trials").read_text())

    for _ in range(3):
        assert canary(torch, request_, trial(COUNTS)) == ""
    assert trials() == 1
    vars(torch)["__version__"] = "2.14.0"
    assert canary(torch, request_, trial(COUNTS)) == ""
    assert trials() == 2
    Path(str(torch.__file__)).with_name("lib").joinpath("libtorch_cpu.so").write_text("another library")
    assert canary(torch, request_, trial(COUNTS)) == ""
    assert trials() == 3
    (remembered, *_) = (tmp_path / "canaries").iterdir()
    for file in (tmp_path / "canaries").iterdir():
        file.write_text("{" if file == remembered else "")  # killed while it wrote
    assert canary(torch, request_, trial(COUNTS)) == ""
    assert trials() == 4


def test_a_crash_is_remembered_too(request_: CaptureRequest, torch: ModuleType) -> None:
    assert canary(torch, request_, trial(CRASHES)) == "a trial of it ended by SIGABRT"
    assert canary(torch, request_, trial("pass")) == "a trial of it ended by SIGABRT"


def test_a_torch_without_the_library_is_not_tried(request_: CaptureRequest, torch: ModuleType) -> None:
    Path(str(torch.__file__)).with_name("lib").joinpath("libtorch_cpu.so").unlink()
    assert canary(torch, request_, trial(CRASHES)).endswith("libtorch_cpu.so: No such file or directory")


@pytest.mark.slow
@pytest.mark.parametrize("text", [CRASHES, HANGS])
def test_functions_stay_uncompiled_and_a_note_says_why_once(
    request_: CaptureRequest, torch: ModuleType, text: str
) -> None:
    notes: list[str] = []
    vars(torch)["compile"] = _refused
    limited = replace(request_, canary_timeout=1)
    compile_if_captured(torch, TorchAccelerator(torch, limited, notes.append, trial(text)))
    assert notes == [], "nothing is tried before it is used"

    @torch.compile  # type: ignore[untyped-decorator]
    def plain(value: int) -> int:
        return value + 1

    @torch.compile(mode="max-autotune")  # type: ignore[untyped-decorator]
    def with_options(value: int) -> int:
        return value + 2

    assert (plain(1), with_options(1)) == (2, 3)
    (note,) = notes
    assert note.startswith("torch.compile is not captured with this torch: a trial of it ")


def test_where_it_is_disabled_nothing_is_tried(request_: CaptureRequest, torch: ModuleType) -> None:
    notes: list[str] = []
    vars(torch)["compile"] = lambda model, **_: model
    compile_if_captured(torch, TorchAccelerator(torch, request_, notes.append, trial(CRASHES)))
    assert torch.compile(_refused, disable=True) is _refused
    assert notes == []
    assert not Path(request_.canaries).exists()


def _refused(*_: object, **__: object) -> Callable[..., object]:
    raise AssertionError("torch's own compile is called")
