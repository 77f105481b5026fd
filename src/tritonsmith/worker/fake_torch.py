"""Answer for `torch.cuda` and `torch.version` about the fake GPU; torch is a stub or installed."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import types
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from .fake_gpu import FakeGpu

if TYPE_CHECKING:
    from .border import Table
    from .foreign import Torch

_TRITON = "torch.utils._triton"
_RAW_STREAM = "_cuda_getCurrentRawStream"
PROVIDED = ("torch.cuda", "torch.version", _TRITON)  # where a stand-in for torch knows the GPU

_SINCE_VOLTA = 7
_SINCE_BF16 = 8  # major number of the first capability with it


class TorchProperties:
    """The result of `torch.cuda.get_device_properties`."""

    def __init__(self, gpu: FakeGpu) -> None:
        self._gpu = gpu

    def __getattr__(self, name: str) -> Any:
        names = self._gpu.names("torch")
        if name in ("major", "minor"):
            return self._gpu.capability()[name == "minor"]
        if name.startswith("__") or name not in names:
            raise AttributeError(name)
        value = self._gpu.fact(names[name], name)
        return uuid.UUID(value) if name == "uuid" else value


class TorchStream:
    """A stream of the fake GPU."""

    cuda_stream = stream_id = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def query(self) -> bool:
        """Report that all work is done."""
        return True

    def is_capturing(self) -> bool:
        """Report that no graph is recorded."""
        return False

    def wait_stream(self, *_: Any) -> None:
        """Do nothing: there is no work."""

    synchronize = wait_event = record_event = wait_stream


class TorchVersion(types.ModuleType):
    """A `torch.version` that names the target's vendor as the one torch was built for."""

    _smith_gpu: FakeGpu
    _smith_built: Table
    _smith_for_torch: bool  # whether torch itself sees the GPU, too

    @property
    def cuda(self) -> Any:
        """The version of CUDA; None for AMD."""
        return self._built("cuda")

    @property
    def hip(self) -> Any:
        """The version of HIP; None for NVIDIA."""
        return self._built("hip")

    def _built(self, name: str) -> Any:
        # torch branches on its own build: on CUDA it would call C++ functions that this build lacks.
        if _is_torch(sys._getframe(2)) and not self._smith_for_torch:  # noqa: SLF001 - who asks decides the answer
            return self._smith_built.get(name)
        self._smith_gpu.queried = True
        if self._smith_gpu.target.backend != name:
            return None
        return self._smith_built.get(name) or UnknownVersion(f"torch.version.{name}", self._smith_gpu)


class UnknownVersion:
    """A version that exists (true, not None), but is unknown."""

    def __init__(self, called: str, gpu: FakeGpu) -> None:
        self._called, self._gpu = called, gpu

    def __bool__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._gpu.refuse(self._called)

    def __eq__(self, other: object) -> bool:
        if other is not None:
            self._gpu.refuse(self._called)
        return False

    def _refuse(self, *_: object) -> NoReturn:
        self._gpu.refuse(self._called)

    __str__ = __lt__ = __gt__ = __le__ = __ge__ = _refuse
    __hash__ = object.__hash__


def torch_cuda(gpu: FakeGpu) -> Table:
    """Return the attributes of `torch.cuda`, by name."""

    def context(*_: Any, **__: Any) -> Any:
        entered: Any = contextlib.nullcontext()
        entered.idx = entered.prev_idx = 0  # of `torch.cuda.device`; unsloth reads them
        return entered

    def name(*_: Any, **__: Any) -> Any:
        return gpu.fact("name", "the name of the GPU")

    # Releases of torch differ in whether a GPU without bf16 counts as one that supports it, by emulation.
    # Where the caller does not say which it means, only hardware that has it gives the same answer in all of
    # them.
    def bf16(including_emulation: bool | None = None) -> bool:
        major = gpu.capability()[0]
        native = bool(gpu.target.backend == "hip" or major >= _SINCE_BF16)
        if not native and including_emulation is None:
            gpu.refuse("torch.cuda.is_bf16_supported()")
        return bool(native or including_emulation)

    def refused(called: str) -> Callable[..., Any]:
        return lambda *_, **__: gpu.refuse(f"torch.cuda.{called}()")

    return {
        "is_available": _constant(True),
        "is_initialized": _constant(True),
        "device_count": _constant(1),
        "current_device": _constant(0),
        **dict.fromkeys(("init", "set_device", "synchronize", "empty_cache"), _constant(None)),
        **dict.fromkeys(("current_stream", "default_stream"), lambda *_, **__: TorchStream()),
        **dict.fromkeys(("device", "device_of", "stream"), context),
        "Stream": TorchStream,
        "get_device_capability": gpu.capability,
        "get_device_properties": lambda *_, **__: TorchProperties(gpu),
        "get_device_name": name,
        "is_bf16_supported": bf16,
        **{
            called: refused(called)
            for called in ("mem_get_info", "get_arch_list", "get_gencode_flags", "clock_rate", "utilization")
        },
    }


def provide(gpu: FakeGpu, module: types.ModuleType) -> None:
    """Add the GPU to a stand-in for a module of torch."""
    if module.__name__ == "torch":
        # `import torch` makes these two attributes of it; the third has to be imported by name.
        for name in PROVIDED[:2]:
            importlib.import_module(name)
    elif module.__name__ == "torch.cuda":
        vars(module).update(torch_cuda(gpu))
    elif module.__name__ == "torch.version":
        _version(gpu, module, None)
    elif module.__name__ == _TRITON:
        vars(module).update(has_triton=lambda: _has_triton(gpu), has_triton_package=_constant(True))


def patch(gpu: FakeGpu, torch: Torch, built: Table | None = None) -> None:
    """Let an installed torch report the fake GPU.

    Args:
        gpu: the GPU.
        torch: the module.
        built: versions by the vendor that torch claims to be built for, `cuda` or `hip`: then torch itself
            sees the GPU, too, as captures need.
    """
    # Torch itself would use a GPU that it sees, by C++ functions that a build for the CPU lacks.
    everyone = built is not None
    others = for_everyone if everyone else _for_others
    for name, answer in torch_cuda(gpu).items():
        if hasattr(torch.cuda, name):
            setattr(torch.cuda, name, others(answer, getattr(torch.cuda, name)))
    if hasattr(torch, "accelerator"):  # since 2.6
        device = torch.device("cuda")
        answers = {"is_available": True, "device_count": 1, "current_device_index": 0}
        for name, value in {**answers, "current_accelerator": device}.items():
            if hasattr(torch.accelerator, name):
                real = getattr(torch.accelerator, name)
                setattr(torch.accelerator, name, others(_constant(value), real))
    torch.backends.cuda.is_built = others(_constant(True), torch.backends.cuda.is_built)
    # A torch for the CPU lacks this function, which unsloth calls when it is imported.
    if hasattr(torch, "_C"):
        real = getattr(torch._C, _RAW_STREAM, _constant(0))  # noqa: SLF001 - torch's own name
        setattr(torch._C, _RAW_STREAM, others(_constant(0), real))  # noqa: SLF001
    _version(gpu, torch.version, built)


def triton_found(gpu: FakeGpu, run: Callable[[], None], module: types.ModuleType) -> None:
    """Import `torch.utils._triton`, which queries the interfaces of all devices for a GPU."""
    # It is torch's own module, but answers packages: `_is_torch` lets its other functions see the fake GPU.
    run()
    vars(module)["has_triton"] = _for_others(lambda: _has_triton(gpu), module.has_triton)


def _has_triton(gpu: FakeGpu) -> bool:
    """Answer as `torch.utils._triton`: true on NVIDIA's GPUs since Volta, and on all of AMD's."""
    return bool(gpu.target.backend != "cuda" or gpu.capability()[0] >= _SINCE_VOLTA)


def patched(gpu: FakeGpu, run: Callable[[], None], torch: Torch) -> None:
    """Import torch, which finds no GPU; from then on torch reports the fake GPU."""
    run()
    patch(gpu, torch)
    if hasattr(torch, "overrides"):
        _tensors_on_cpu(gpu, torch)
    for place, name in ((torch, "compile"), (getattr(torch, "compiler", None), "disable")):
        if hasattr(place, name):
            setattr(place, name, _when_called(getattr(place, name)))


def _when_called(mark: Callable[..., Any]) -> Callable[..., Any]:
    """Return `torch.compile`, or `torch.compiler.disable`, that marks a function at its first call."""

    # It imports `torch._dynamo`, which takes as long as `import torch`, for the host code of a kernel's file:
    # that does not run here. Whatever else is marked may be asked for more than its name and a call.
    @functools.wraps(mark)
    def later(*args: Any, **kwargs: Any) -> Any:
        if not args and not {"fn", "model"} & set(kwargs):
            return lambda function: later(function, **kwargs)
        function = args[0] if args else None
        if not isinstance(function, types.FunctionType):
            return mark(*args, **kwargs)
        marked = functools.lru_cache(maxsize=1)(lambda: mark(*args, **kwargs))

        @functools.wraps(function)
        def call(*own: Any, **named: Any) -> Any:
            return marked()(*own, **named)

        return call

    return later


def _tensors_on_cpu(gpu: FakeGpu, torch: Torch) -> None:
    """Let a file make tensors of the GPU, such as tables of its host code, as tensors of torch's CPU."""

    # Their values are right, and no kernel takes a tensor as a constant. Their device is wrong, which is
    # noted.
    def on_gpu(value: object) -> bool:
        text = str(value) if isinstance(value, (str, torch.device)) else ""
        return text.partition(":")[0] == "cuda"

    class OnCpu(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self,
            func: Callable[..., Any],
            _types: object,
            args: tuple[Any, ...] = (),
            kwargs: Table | None = None,
        ) -> Any:
            more = dict(kwargs or {})
            name = getattr(func, "__name__", "")
            moved = name == "cuda" and isinstance(args[0], torch.Tensor)
            if on_gpu(more.get("device")) or moved or (name == "to" and any(map(on_gpu, args))):
                gpu.note(f"torch.{name}() on the GPU returns a tensor of the CPU, whose values are the same")
                args = tuple("cpu" if on_gpu(value) else value for value in args)
                more.update({"device": "cpu"} if "device" in more else {})
                if moved:
                    return args[0]
            return func(*args, **more)

    OnCpu().__enter__()


def _constant(value: object) -> Callable[..., Any]:
    return lambda *_, **__: value


def _version(gpu: FakeGpu, module: types.ModuleType, claimed: Table | None) -> None:
    # The properties of a class answer only where the module's own variables are gone.
    built = {name: vars(module).pop(name, None) or (claimed or {}).get(name) for name in ("cuda", "hip")}
    module.__class__ = TorchVersion
    vars(module).update(_smith_gpu=gpu, _smith_built=built, _smith_for_torch=claimed is not None)


def _is_torch(frame: types.FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return name.partition(".")[0] == "torch" and name != _TRITON


def for_everyone(answer: Callable[..., Any], _real: object = None) -> Any:
    """Return a function of its own for each name that has this answer."""
    # torch._dynamo has a table of functions in which none may occur twice.
    if isinstance(answer, type):
        return answer

    def function(*args: Any, **kwargs: Any) -> Any:
        return answer(*args, **kwargs)

    return function


def _for_others(answer: Callable[..., Any], real: Callable[..., Any]) -> Any:
    # A class is more than its call: packages inherit from `torch.cuda.Stream`, or pass it to `isinstance`.
    if isinstance(real, type):
        return _ClassForOthers(answer, real)

    def function(*args: Any, **kwargs: Any) -> Any:
        truth = _is_torch(sys._getframe(1))  # noqa: SLF001 - who asks decides the answer
        return (real if truth else answer)(*args, **kwargs)

    function.__name__ = function.__qualname__ = getattr(real, "__name__", "function")
    function.__doc__ = getattr(real, "__doc__", None)
    function.__module__ = "torch.cuda"
    return function


class _ClassForOthers:
    """A stand-in for a class such as `torch.cuda.Stream`: only torch itself creates real objects."""

    def __init__(self, answer: Callable[..., Any], real: type) -> None:
        self._answer, self._real = answer, real
        self.__doc__, self.__name__ = real.__doc__, real.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        truth = _is_torch(sys._getframe(1))  # noqa: SLF001 - who asks decides the answer
        return (self._real if truth else self._answer)(*args, **kwargs)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, (self._real, TorchStream))

    def __mro_entries__(self, _: object) -> tuple[type, ...]:
        return (self._real,)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __or__(self, other: object) -> Any:
        return self._real | other  # Python 3.10

    def __ror__(self, other: object) -> Any:
        return other | self._real
