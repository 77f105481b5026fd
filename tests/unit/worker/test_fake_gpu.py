"""What a kernel's file is told of the GPU: by Triton's driver, by torch, and by a stand-in for torch."""

from __future__ import annotations

import collections
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tritonsmith.compiler import targets
from tritonsmith.core import configs
from tritonsmith.worker import fake_torch
from tritonsmith.worker.fake_gpu import FakeDriver, FakeGpu
from tritonsmith.worker.stubs import ImportWatcher, Ledger, StubFinder, UnknownError

GpuTarget = collections.namedtuple("GpuTarget", ["backend", "arch", "warp_size"])  # noqa: PYI024 - Triton's
REAL_TORCH = {
    "__init__.py": "from torch import _C, cuda, version, backends, nn\n",
    "_C.py": "",
    "version.py": "cuda = None\nhip = None\ngit_version = 'abc'\n",
    "cuda.py": """
def is_available(): return False
def device_count(): return 0
def get_device_capability(device=None): raise RuntimeError("no driver")
def get_device_properties(device=None): raise RuntimeError("no driver")
def get_device_name(device=None): raise RuntimeError("no driver")
def get_arch_list(): return []
def current_stream(device=None): raise RuntimeError("no driver")
class Stream: pass
class device:
    def __init__(self, index): raise RuntimeError("no driver")
""",
    "backends/__init__.py": "from torch.backends import cuda\n",
    "backends/cuda.py": "def is_built(): return False\n",
    "nn.py": "import torch\ndef sees(): return torch.cuda.is_available(), torch.version.cuda\n",
}


@pytest.fixture
def ledger() -> Ledger:
    """Nothing is noted yet."""
    return Ledger(fake_torch.PROVIDED)


def gpu_of(ledger: Ledger, text: str, *more: str) -> FakeGpu:
    every = [targets.parse(one) for one in (text, *more)]
    gpu = FakeGpu(ledger.note, UnknownError, targets.all_gpu_facts(every))
    gpu.become(GpuTarget(every[0].backend, every[0].arch, every[0].warp_size))
    return gpu


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A package of which only the place matters."""
    module = ModuleType("triton")
    module.__file__ = str(tmp_path / "triton" / "__init__.py")
    monkeypatch.setitem(sys.modules, "triton", module)
    return tmp_path / "triton"


@pytest.mark.parametrize(
    ("text", "shared", "capability"),
    [
        ("h100", 232448, (9, 0)),  # read from an H100 by cuDeviceGetAttribute
        ("a100", 166912, (8, 0)),
        ("rtx4090", 101376, (8, 9)),
        ("t4", 65536, (7, 5)),
        ("cuda:121", 101376, (12, 1)),
        ("mi300x", 65536, (9, 4)),
        ("mi250x", 65536, (9, 0)),
        ("mi355x", 163840, (9, 5)),
        ("gfx1100", 65536, (11, 0)),
        ("gfx1201", 65536, (12, 0)),
        ("gfx90a", 65536, (9, 0)),
    ],
)
@pytest.mark.usefixtures("triton")
def test_what_every_gpu_of_a_target_has(
    ledger: Ledger, text: str, shared: int, capability: tuple[int, int]
) -> None:
    driver = FakeDriver(gpu_of(ledger, text))
    properties = driver.utils.get_device_properties(0)
    assert properties["max_shared_mem"] == shared
    assert properties["warpSize"] == driver.get_current_target().warp_size
    assert driver.get_device_capability(0) == driver.utils.get_device_capability(0) == capability
    assert driver.get_current_device() == driver.get_current_stream() == 0
    assert not ledger.doubts


@pytest.mark.usefixtures("triton")
def test_what_differs_between_gpus_of_a_target_is_noted(ledger: Ledger) -> None:
    properties = FakeDriver(gpu_of(ledger, "h100")).utils.get_device_properties(0)
    assert properties["multiprocessor_count"] == 132
    (note,) = ledger.doubts
    assert (
        "multiprocessor_count is taken from NVIDIA H100 80GB HBM3: 132; other GPUs of cuda:90 differ" in note
    )


@pytest.mark.usefixtures("triton")
@pytest.mark.parametrize(("text", "count"), [("rtx3090", 82), ("a10", 72), ("sm_86", 72)])
def test_of_two_gpus_of_one_target_the_one_that_was_named_answers(
    ledger: Ledger, text: str, count: int
) -> None:
    properties = FakeDriver(gpu_of(ledger, text)).utils.get_device_properties(0)
    assert properties["multiprocessor_count"] == count
    assert targets.parse(text) == targets.parse("cuda:86")


@pytest.mark.usefixtures("triton")
def test_what_is_not_known_is_refused_and_told_even_if_it_is_caught(ledger: Ledger) -> None:
    gpu = gpu_of(ledger, "mi300x")
    properties = FakeDriver(gpu).utils.get_device_properties(0)
    assert not issubclass(UnknownError, Exception), "or a file's `except Exception` makes it a value"
    with pytest.raises(UnknownError, match="max_num_regs of a GPU of hip:gfx942 is unknown"):
        properties.get("max_num_regs", 65536)
    assert list(ledger.doubts)
    assert properties["arch"].split(":")[0] == "gfx942"
    with pytest.raises(KeyError):
        properties["no_such"]
    for text in ("cuda:77", "gfx1250"):
        strange = FakeDriver(gpu_of(ledger, text)).utils.get_device_properties(0)
        with pytest.raises(UnknownError):
            strange["multiprocessor_count"]


def test_only_what_this_triton_names_is_there(ledger: Ledger, triton: Path) -> None:
    source = triton / "backends" / "amd" / "driver.c"
    source.parent.mkdir(parents=True)
    source.write_text('"{s:i, s:i}", "max_shared_mem", props.sharedMemPerBlock, "warpSize", props.warpSize')
    properties = FakeDriver(gpu_of(ledger, "mi300x")).utils.get_device_properties(0)
    assert dict(properties) == {"max_shared_mem": 65536, "warpSize": 64}


def test_nothing_is_loaded_launched_or_measured(ledger: Ledger) -> None:
    driver = FakeDriver(gpu_of(ledger, "h100"))
    with pytest.raises(UnknownError, match="load_binary"):
        driver.utils.load_binary("k", b"", 0, 0)
    with pytest.raises(UnknownError, match="the time of a kernel"):
        driver.get_benchmarker()(print)


def purge(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)


@pytest.fixture
def real_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A torch without a driver is installed; it is a small one."""
    for name, text in REAL_TORCH.items():
        path = tmp_path / "torch" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    purge(monkeypatch)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield tmp_path
    purge(monkeypatch)


def ask(text: str) -> Any:
    names: dict[str, Any] = {"__name__": "kernel"}
    exec(text, names)  # noqa: S102
    return names["FOUND"]


def import_torch(gpu: FakeGpu) -> None:
    def patched(run: Any, module: ModuleType) -> None:
        fake_torch.patched(gpu, run, module)

    sys.meta_path.insert(0, ImportWatcher({"torch": patched}))


@pytest.mark.usefixtures("real_torch")
def test_an_installed_torch_answers_for_the_target_and_tells_itself_the_truth(ledger: Ledger) -> None:
    gpu = gpu_of(ledger, "h100", "mi300x")
    import_torch(gpu)
    asks = """
import torch, torch.nn
P = torch.cuda.get_device_properties(0)
with torch.cuda.device(0):
    stream = torch.cuda.current_stream().cuda_stream
FOUND = (torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.get_device_capability(), P.major,
         getattr(P, "shared_memory_per_block_optin", None), hasattr(P, "gcnArchName"), stream,
         torch.version.hip is None, torch.version.cuda is not None, torch.version.git_version,
         isinstance(torch.cuda.Stream(), torch.cuda.Stream) and torch._C._cuda_getCurrentRawStream(0) == 0,
         torch.backends.cuda.is_built(),
         hasattr(torch.cuda, "is_bf16_supported"), torch.nn.sees())
"""
    truth = (False, None)
    assert ask(asks) == (True, 1, (9, 0), 9, 232448, False, 0, True, True, "abc", True, True, False, truth)
    assert gpu.queried
    gpu.become(GpuTarget("hip", "gfx942", 64))
    assert ask(asks) == (True, 1, (9, 4), 9, None, True, 0, False, False, "abc", True, True, False, truth)
    assert not ledger.doubts


@pytest.mark.usefixtures("real_torch")
@pytest.mark.parametrize(
    "text", ["torch.cuda.get_arch_list()", "torch.version.cuda.split('.')", "torch.version.cuda >= '12'"]
)
def test_what_torch_cannot_know_is_refused(ledger: Ledger, text: str) -> None:
    import_torch(gpu_of(ledger, "h100"))
    with pytest.raises(UnknownError, match="is unknown"):
        ask(f"import torch\nFOUND = {text}\n")


@pytest.mark.usefixtures("real_torch")
def test_a_torch_that_is_built_for_the_vendor_says_its_own_version(ledger: Ledger, real_torch: Path) -> None:
    (real_torch / "torch" / "version.py").write_text("cuda = '13.0'\nhip = None\n")
    gpu = gpu_of(ledger, "h100", "mi300x")
    import_torch(gpu)
    asks = "import torch\nFOUND = torch.version.cuda, bool(torch.version.hip)\n"
    assert ask(asks) == ("13.0", False)
    gpu.become(GpuTarget("hip", "gfx942", 64))
    assert ask(asks) == (None, True)


def test_a_stand_in_for_torch_answers_too(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = gpu_of(ledger, "h100")
    purge(monkeypatch)

    def provide(module: ModuleType) -> None:
        fake_torch.provide(gpu, module)

    monkeypatch.setattr(sys, "meta_path", [StubFinder(["torch"], ledger, provide)])
    asks = """
import torch
from torch.cuda import get_device_capability
P = torch.cuda.get_device_properties("cuda")
FOUND = (torch.cuda.is_available(), get_device_capability(), P.warp_size,
         torch.version.hip, bool(torch.version.cuda))
"""
    try:
        assert ask(asks) == (True, (9, 0), 32, None, True)
        assert not ledger.doubts
        ask("import torch\nFOUND = torch.cuda.max_memory_allocated() > 3\n")
        (note,) = ledger.doubts
        assert "the code depends on a comparison of torch.cuda.max_memory_allocated()" in note
    finally:
        purge(monkeypatch)


@pytest.mark.parametrize(
    "text",
    [
        "torch.cuda.is_bf16_supported()",
        "hasattr(torch.cuda.get_device_properties(0), 'regs_per_multiprocessor')",
    ],
)
def test_what_amd_gpus_say_at_once_was_asked_too(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Or what a file made of the answer would be taken for the next target, which has another."""
    gpu = gpu_of(ledger, "mi300x", "t4")
    purge(monkeypatch)

    def provide(module: ModuleType) -> None:
        fake_torch.provide(gpu, module)

    monkeypatch.setattr(sys, "meta_path", [StubFinder(["torch"], ledger, provide)])
    try:
        ask(f"import torch\nFOUND = {text}\n")
    finally:
        purge(monkeypatch)
    assert gpu.queried


def test_data_is_of_known_gpus_and_complete() -> None:
    known = targets.known()
    table = configs.load("gpu-properties")
    models = [row["gpu"] for row in table["model"]]
    assert set(models) <= set(known)
    assert len(models) == len(set(models))
    ours = {name for part in table["names"].values() for row in part.values() for name in row.values()}
    assert {name for row in table["model"] for name in row} - {"gpu"} <= ours
    for name in known:
        facts = targets.gpu_facts(targets.parse(name))
        assert facts["known"]["block-shared"] >= 65536
        assert not set(facts["known"]) & set(facts["of_model"])


def test_a_device_that_is_entered_has_its_number() -> None:
    gpu = FakeGpu(lambda _: None, UnknownError, {})
    with fake_torch.torch_cuda(gpu)["device"](0):
        assert fake_torch.torch_cuda(gpu)["device"]("cuda:0").idx == 0


def test_host_code_is_marked_for_compilation_when_it_is_called() -> None:
    marked: list[object] = []

    def compile_(model: Any = None, *, fullgraph: bool = False) -> Any:
        """As torch.compile, which imports torch._dynamo."""
        if model is None:
            return lambda function: compile_(function, fullgraph=fullgraph)
        marked.append(model)
        return lambda *arguments: ("compiled", fullgraph, model(*arguments))

    later = fake_torch._when_called(compile_)

    def host(number: int) -> int:
        """Work of the host."""
        return number + 1

    plain, decorated = later(host), later(fullgraph=True)(host)
    assert (plain.__name__, decorated.__doc__, marked) == ("host", "Work of the host.", [])
    assert [plain(1), plain(2), decorated(3)] == [
        ("compiled", False, 2),
        ("compiled", False, 3),
        ("compiled", True, 4),
    ]
    assert marked == [host, host]
    # Anything else is marked at once: a module has more than a call.
    assert later(len)([1]) == ("compiled", False, 1)
    assert later(model=host)(1) == ("compiled", False, 2)
    assert later.__doc__ == compile_.__doc__
