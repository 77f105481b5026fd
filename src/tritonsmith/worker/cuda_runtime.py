"""Replace the parts of `torch.cuda` besides tensors: events, graphs, generators, memory, files of tensors.

torch for the CPU has no C++ for them. Nothing runs on the fake GPU, so most of them do nothing.
"""

from __future__ import annotations

import functools
import importlib
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .fake_gpu import FakeGpu
from .fake_torch import TorchStream, for_everyone
from .launches import Recorder, site
from .messages import CaptureRequest

if TYPE_CHECKING:
    from .border import Table
    from .foreign import Tensor, Torch


def install(torch: Torch, gpu: FakeGpu, recorder: Recorder, request: CaptureRequest) -> None:
    """Let programs call the CUDA runtime, although the CPU's torch has nothing to call."""
    _answers(torch, gpu, request)
    _graphs(torch, recorder)
    _profiler(torch, recorder)
    _generators(torch)
    _numbered_devices(torch)
    _constructors(torch)
    _storages(torch)


def _nothing(*_: Any, **__: Any) -> None:
    pass


def _zero(*_: Any, **__: Any) -> int:
    return 0


class _Event:
    """`torch.cuda.Event`."""

    cuda_event = event_id = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def elapsed_time(self, _: object) -> float:
        # Not 0: benchmarks divide by it to choose a number of repetitions.
        return 1.0

    def query(self) -> bool:
        return True

    record = wait = synchronize = _nothing


def _answers(torch: Torch, gpu: FakeGpu, request: CaptureRequest) -> None:
    def memory(*_: Any, **__: Any) -> tuple[int, int]:
        size = gpu.fact("memory", "the memory of the GPU") if gpu.knows("memory") else request.memory
        return size, size

    def architectures() -> list[str]:
        return [f"sm_{gpu.target.arch}" if gpu.target.backend == "cuda" else str(gpu.target.arch)]

    answers: Table = {
        **dict.fromkeys(("_lazy_init", "_lazy_call", "ipc_collect"), _nothing),
        **dict.fromkeys(
            ("reset_peak_memory_stats", "reset_max_memory_allocated", "reset_accumulated_memory_stats"),
            _nothing,
        ),
        **dict.fromkeys(("seed", "seed_all", "set_stream", "_set_stream_by_id"), _nothing),
        **dict.fromkeys(("memory_allocated", "max_memory_allocated", "memory_reserved"), _zero),
        **dict.fromkeys(("max_memory_reserved",), _zero),
        **dict.fromkeys(("_exchange_device", "_maybe_exchange_device"), _zero),
        **dict.fromkeys(("memory_stats", "memory_stats_as_nested_dict"), lambda *_, **__: {}),
        "_is_compiled": lambda: True,
        # torch refuses CUDA in a forked process, whose copy of the driver's state is broken. Here there is
        # none.
        "_is_in_bad_fork": lambda: False,
        "can_device_access_peer": lambda *_: False,
        "get_arch_list": architectures,
        "get_gencode_flags": lambda: " ".join(
            f"-gencode compute={name.replace('sm', 'compute')},code={name}" for name in architectures()
        ),
        "mem_get_info": memory,
        "Event": _Event,
    }
    for name, answer in answers.items():
        # These names come and go between torch's releases, and a name that this torch lacks must not appear:
        # programs ask for it by hasattr, too.
        if hasattr(torch.cuda, name):
            setattr(torch.cuda, name, for_everyone(answer))
    if hasattr(torch, "accelerator"):
        for name in ("set_device_index", "set_device_idx", "set_stream", "synchronize", "empty_cache"):
            setattr(torch.accelerator, name, for_everyone(_nothing))
        torch.accelerator.current_stream = lambda *_: torch.cuda.current_stream()
        torch.accelerator.current_device_idx = lambda *_: 0
        torch.accelerator.device_index = torch.cuda.device
    # `torch.cuda.graph` calls it, and `torch.cuda.nvtx` the library below: both are C++ that is not there.
    torch._C._host_emptyCache = _zero  # noqa: SLF001 - torch's own name
    # `torch._dynamo.reset` imports the trees of CUDA graphs, and these the class.
    if not hasattr(torch._C, "_cuda_CUDAAllocator_AllocatorState"):  # noqa: SLF001 - torch's own name
        torch._C._cuda_CUDAAllocator_AllocatorState = object  # noqa: SLF001 - torch's own name
    nvtx: Any = importlib.import_module("torch.cuda.nvtx")
    calls = (
        "rangePushA",
        "rangePop",
        "rangeStartA",
        "rangeEnd",
        "markA",
        "deviceRangeStart",
        "deviceRangeEnd",
    )
    nvtx._nvtx = types.SimpleNamespace(**dict.fromkeys(calls, _zero))  # noqa: SLF001 - torch's own name


def _graphs(torch: Torch, recorder: Recorder) -> None:
    """Replace CUDA graphs: captured kernels are launched once, at the capture; a replay launches nothing."""
    capturing: list[Any] = []

    class CUDAGraph:
        """`torch.cuda.CUDAGraph`."""

        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def capture_begin(self, *_: Any, **__: Any) -> None:
            capturing.append(self)

        def capture_end(self) -> None:
            capturing.remove(self)

        def replay(self) -> None:
            recorder.note(f"{site()} replays a CUDA graph: its launches are counted once, at its capture")

        def pool(self) -> tuple[int, int]:
            return 0, 0

        instantiate = reset = enable_debug_mode = debug_dump = _nothing

    graphs: Any = importlib.import_module("torch.cuda.graphs")
    # torch.cuda has copies of these names, and torch.cuda.graphs uses its own.
    for module in (torch.cuda, graphs):
        module.CUDAGraph = CUDAGraph
        module.graph_pool_handle = lambda: (0, 0)
        module.is_current_stream_capturing = lambda: bool(capturing)
    graphs._cuda_isCurrentStreamCapturing = lambda: bool(capturing)  # noqa: SLF001 - torch's own name
    TorchStream.is_capturing = lambda self: bool(capturing)  # type: ignore[method-assign] # noqa: ARG005


def _profiler(torch: Torch, recorder: Recorder) -> None:
    """Let the profiler run, although it sees only the CPU."""
    profile = torch.autograd.profiler.profile
    real = profile.__init__

    def init(self: Tensor, *args: Any, **kwargs: Any) -> None:
        # `use_cuda` is the older name of `use_device`.
        if kwargs.get("use_device") == "cuda" or kwargs.pop("use_cuda", False):
            recorder.note(f"{site()} profiles the GPU: there are no times of kernels")
            kwargs.update(use_device=None, use_cpu=True)
        real(self, *args, **kwargs)

    profile.__init__ = functools.wraps(real)(init)


def _generator_type(torch: Torch) -> Any:
    """Return a `torch.Generator` for either device, based on the CPU's."""
    real = torch.Generator

    class Generator(real):  # type: ignore[misc, valid-type]
        def __new__(cls, device: object = "cpu") -> Any:
            # torch's own constructor raises an error for `cuda`, as this build has no generator for it.
            generator = real.__new__(cls, "cpu")
            generator.smith_device = torch.device("cuda", 0) if torch.device(device).type == "cuda" else None
            return generator

        @property
        def device(self) -> Any:
            return self.smith_device or real.device.__get__(self)

        # The state of a generator of CUDA is a seed and an offset, which kernels read. Programs take it
        # apart.
        def get_state(self) -> Any:
            if self.smith_device is None:
                return real.get_state(self)
            numbers = [self.initial_seed(), self.get_offset()]
            return torch.tensor(numbers, dtype=torch.int64, device="cpu").view(torch.uint8)

        def set_state(self, state: Tensor) -> Any:
            if self.smith_device is None:
                return real.set_state(self, state)
            seed, offset = state.view(torch.int64).tolist()
            self.manual_seed(seed)
            self.set_offset(offset)
            return self

        def get_offset(self) -> int:
            return int(getattr(self, "smith_offset", 0))

        def set_offset(self, offset: int) -> Any:
            self.smith_offset = offset
            return self

    return Generator


def _generators(torch: Torch) -> None:
    torch.Generator = _generator_type(torch)
    default = torch.Generator("cuda")
    torch.cuda.default_generators = (default,)
    answers: Table = {
        "manual_seed": default.manual_seed,
        "manual_seed_all": default.manual_seed,
        "initial_seed": default.initial_seed,
        "get_rng_state": lambda *_, **__: default.get_state(),
        "set_rng_state": lambda state, *_, **__: default.set_state(state),
        "get_rng_state_all": lambda: [default.get_state()],
        "set_rng_state_all": lambda states: default.set_state(states[0]),
    }
    for module in (torch.cuda, importlib.import_module("torch.cuda.random")):
        for name, answer in answers.items():
            setattr(module, name, for_everyone(answer))


def _numbered_devices(torch: Torch) -> None:
    """Let functions that make tensors take a device by its number: `device=torch.cuda.current_device()`."""
    # torch's parser of arguments asks for the accelerator by then, which a torch for the CPU does not have.
    # The list is torch's own. It is cached by this call: `torch.set_default_device` compares functions with
    # it, and must not find those that replace them.
    constructors = importlib.import_module("torch.utils._device")._device_constructors()  # noqa: SLF001
    alike = ("empty_like", "full_like", "ones_like", "rand_like", "randint_like", "randn_like", "zeros_like")
    new = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros")
    listed = [name for name, value in vars(torch).items() if callable(value) and value in constructors]

    def by_number(real: Callable[..., Any]) -> Callable[..., Any]:
        def make(*args: Any, **kwargs: Any) -> Any:
            if type(kwargs.get("device")) is int:
                kwargs["device"] = "cuda"
            return real(*args, **kwargs)

        return functools.wraps(real)(make)

    for owner, names in ((torch, (*listed, *alike)), (torch.Tensor, new)):
        for name in names:
            setattr(owner, name, by_number(getattr(owner, name)))
    default = torch.set_default_device
    torch.set_default_device = lambda device: default("cuda" if type(device) is int else device)


def _constructors(torch: Torch) -> None:
    """Support pinned tensors from lists, and the old constructors: `torch.cuda.FloatTensor(2, 3)`."""
    real = torch.tensor

    def tensor(*args: Any, pin_memory: bool = False, **kwargs: Any) -> Any:
        result = real(*args, **kwargs)
        return result.pin_memory() if pin_memory else result

    torch.tensor = functools.wraps(real)(tensor)

    class Typed(type):
        dtype: Any

        def __call__(cls, *args: Any, **_: Any) -> Any:
            if all(isinstance(size, int) for size in args):
                return torch.zeros(args, dtype=cls.dtype, device="cuda")
            return torch.as_tensor(*args).to(device="cuda", dtype=cls.dtype)

        # torch's old types have no instances either: they answer isinstance() by device and dtype.
        def __instancecheck__(cls, value: Tensor) -> bool:
            return bool(torch.is_tensor(value) and value.is_cuda and value.dtype == cls.dtype)

    for name in [name for name in vars(torch.cuda) if name.endswith("Tensor")]:
        dtype = getattr(torch, name).dtype
        setattr(torch.cuda, name, Typed(name, (), {"dtype": dtype, "__module__": "torch.cuda"}))


def _storages(torch: Torch) -> None:
    """Let `torch.save` write tensors of the GPU as a GPU's, and `torch.load` restore them there."""
    cuda = torch.device("cuda", 0)

    class GpuStorage(torch.UntypedStorage):  # type: ignore[misc]
        device = property(lambda _: cuda)
        is_cuda = property(lambda _: True)

    def restored(storage: Tensor, location: str) -> Any:
        if location.partition(":")[0] != "cuda":
            return None
        storage.__class__ = GpuStorage
        return storage

    def tag(storage: Tensor) -> str | None:
        return "cuda:0" if hasattr(storage, "smith_gpu") else None

    # Before torch's own function for CUDA, which has priority 20 and asks for the runtime.
    first = 0
    torch.serialization.register_package(first, tag, restored)
