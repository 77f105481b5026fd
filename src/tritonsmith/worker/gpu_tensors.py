"""Imitate tensors of the GPU: torch's CPU tensors, with values, that report the device `cuda:0`.

Below autograd, torch hands all operations to one function here (`TorchDispatchMode`), which runs them on the
CPU.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import os
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex

from . import cuda_runtime, torch_compile
from .fake_gpu import FakeGpu
from .fake_torch import patch
from .launches import Recorder, site
from .messages import CaptureRequest

if TYPE_CHECKING:
    from .border import Table
    from .foreign import DType, Operator, Tensor, Torch

_REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"
_CUDA = 1  # c10::DeviceType
# Operations by which a program sees values: after a kernel's launch they would be wrong, as no kernel runs.
_READS = (
    "_local_scalar_dense",
    "nonzero",
    "equal",
    "is_nonzero",
    "masked_select",
    "unique_consecutive",
    "_unique2",
)
_PRODUCTS = ("mm", "bmm", "addmm", "baddbmm")
_TORCHS = ("aten", "prims")  # namespaces whose operations run on the CPU's tensors
_EMPTY = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted")


def install(torch: Torch, gpu: FakeGpu, recorder: Recorder, request: CaptureRequest) -> None:
    """Let torch make tensors of the fake GPU."""
    patch(gpu, torch, request.built)
    tensors = _Tensors(torch, recorder, request)
    cuda_runtime.install(torch, gpu, recorder, request)
    device_guard(torch)
    if hasattr(torch._C, "_set_only_lift_cpu_tensors"):  # noqa: SLF001 - torch.tensor(1, device="cuda")
        torch._C._set_only_lift_cpu_tensors(True)  # noqa: SLF001 - torch's own name
    _comparisons(torch, tensors.type, recorder)
    tensors.enter()
    torch_compile.watch(torch, tensors.type, recorder, request)
    run = threading.Thread.run

    # torch's modes belong to one thread: data loaders and servers start others.
    def in_thread(thread: threading.Thread) -> None:
        with tensors.mode():
            run(thread)

    threading.Thread.run = in_thread  # type: ignore[assignment, method-assign]


class _Tensors:
    def __init__(self, torch: Torch, recorder: Recorder, request: CaptureRequest) -> None:
        self._torch, self._recorder, self._request = torch, recorder, request
        self._cuda, self._cpu = torch.device("cuda", 0), torch.device("cpu")
        self._own = set(torch._C._dispatch_get_registrations_for_dispatch_key("CUDA"))  # noqa: SLF001
        self._to = torch.Tensor.to
        self._copy = torch.ops.aten._to_copy.default  # noqa: SLF001 - torch's own name
        self.type = self._tensor_type()
        self.mode = self._mode_type()
        torch.Tensor.to = self._from_cpu()
        torch.Tensor.cuda = lambda tensor, device=None, non_blocking=False, **more: tensor.to(
            device if device is not None else self._cuda, non_blocking=non_blocking, **more
        )
        torch.Tensor.pin_memory = lambda tensor, *_: self._pinned(tensor.clone())
        torch.Tensor.is_pinned = lambda tensor, *_: hasattr(tensor.untyped_storage(), "smith_pinned")
        torch.__future__.set_overwrite_module_params_on_conversion(True)

    def enter(self) -> None:
        """Activate the mode in this thread."""
        self.mode().__enter__()

    def _mode_type(self) -> Any:
        base = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode
        dispatch, handles = self._dispatch, self._handles

        class FakeGpuMode(base):  # type: ignore[misc, valid-type]
            # As for modes of torch's own: entering one neither imports torch._dynamo nor keeps it from
            # compiling.
            _should_skip_dynamo = classmethod(lambda _: False)
            is_infra_mode = ignore_compile_internals = classmethod(lambda _: True)
            supports_higher_order_operators = True

            def __torch_dispatch__(
                self,
                func: Operator,
                types: Iterable[type[Any]],
                args: tuple[Any, ...] = (),
                kwargs: Table | None = None,
            ) -> Any:
                if any(map(handles, types)):
                    return NotImplemented
                return dispatch(func, args, kwargs or {})

        return FakeGpuMode

    def _handles(self, kind: type[Any]) -> bool:
        """Report whether a class runs operations itself, on tensors inside it: these come here again."""
        disabled = self._torch._C._disabled_torch_dispatch_impl  # noqa: SLF001 - torch's own name
        return kind is not self.type and getattr(kind, "__torch_dispatch__", disabled) is not disabled

    def _overriding(self, types: Iterable[type[Any]]) -> tuple[Any, ...]:
        """Return the classes that have a `__torch_function__` of their own."""
        torch = self._torch
        usual = (
            self.type.__torch_function__.__func__,
            torch.Tensor.__torch_function__.__func__,
            torch._C._disabled_torch_function_impl,  # noqa: SLF001 - torch's own name
        )
        return tuple(
            kind
            for kind in types
            if getattr(kind.__torch_function__, "__func__", kind.__torch_function__) not in usual
        )

    def _tensor_type(self) -> Any:  # noqa: C901 - a class with its methods
        torch, cuda = self._torch, self._cuda
        plain, without = torch.Tensor, torch._C.DisableTorchFunctionSubclass  # noqa: SLF001 - torch's own name
        dispatch, move, wrap, autocast = self._dispatch, self._moved, self._wrapped, self._autocast
        handles, overriding = self._handles, self._overriding
        retype, copy, reduce = self._retyped, self._copied, self._reduced

        class GpuTensor(plain):  # type: ignore[misc, valid-type]
            device = property(lambda _: cuda)
            is_cuda = property(lambda _: True)
            is_cpu = property(lambda _: False)
            # A program that forgets `.cpu()` fails on a GPU, and must not get further here than there.
            numpy = _no_array

            @classmethod
            def __torch_function__(
                cls,
                func: Operator,
                types: Iterable[type[Any]],
                args: tuple[Any, ...] = (),
                kwargs: Table | None = None,
            ) -> Any:
                args, kwargs = autocast(func, args, kwargs or {})
                others = overriding(types)
                # Other subclasses check the types that they are called with, and this one stands for a plain
                # tensor.
                for kind in others:
                    theirs: Any = kind.__torch_function__(func, others, args, kwargs)
                    if theirs is not NotImplemented:
                        return theirs
                with without():
                    result: Any = func(*args, **kwargs)
                # Scratch tensors that C++ makes for itself pass no dispatch with a device.
                if type(result) is plain and result.grad_fn is None:
                    return wrap(result)
                return result

            @classmethod
            def __torch_dispatch__(
                cls,
                func: Operator,
                types: Iterable[type[Any]],
                args: tuple[Any, ...] = (),
                kwargs: Table | None = None,
            ) -> Any:
                if any(map(handles, types)):
                    return NotImplemented
                return dispatch(func, args, kwargs or {})

            def get_device(self) -> int:
                return 0

            def ptr_range(self) -> int:  # asked by Triton for AMD
                return int(self.untyped_storage().nbytes())

            def to(self, *args: Any, **kwargs: Any) -> Any:
                return move(self, args, kwargs)

            def cpu(self, *args: Any, **kwargs: Any) -> Any:
                return move(self, ("cpu",), {"memory_format": args[0]} if args else kwargs)

            def cuda(self, *_: Any, **__: Any) -> Any:
                return self

            def type(self, dtype: DType = None, *_: Any, **__: Any) -> Any:
                return retype(self, dtype)

            def tolist(self) -> Any:
                return self.cpu().tolist()

            def __coerce_same_metadata_as_tangent__(self, *_: Any) -> Any:  # asked by torch._functorch
                return self

            def __deepcopy__(self, memo: dict[int, Any]) -> Any:
                return copy(self, memo)

            def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
                return reduce(self, protocol)

            def __repr__(self, *_: Any, **__: Any) -> str:
                return f"{self.cpu().detach()!r}"[:-1] + ", device='cuda:0')"

            def __format__(self, text: str) -> str:
                return format(self.item(), text) if self.dim() == 0 else repr(self)

        return GpuTensor

    def _retyped(self, tensor: Tensor, kind: DType | str | type | None) -> Any:
        """Implement `Tensor.type`: return the type's name, or a copy of another type, perhaps on the CPU."""
        torch = self._torch
        if kind is None:
            return f"torch.cuda.{self._inner(tensor).type().rpartition('.')[2]}"
        if isinstance(kind, torch.dtype):
            return tensor.to(dtype=kind)
        # A name such as `torch.cuda.HalfTensor`, or that class.
        name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}"
        device = self._cuda if ".cuda." in name else self._cpu
        return tensor.to(device=device, dtype=getattr(torch, name.rpartition(".")[2]).dtype)

    @staticmethod
    def _copied(tensor: Tensor, memo: dict[int, Any]) -> Any:
        """Copy a tensor for `copy.deepcopy`, by which modules are copied."""
        if id(tensor) not in memo:
            copied = tensor.detach().clone().requires_grad_(tensor.requires_grad)
            if getattr(tensor, "_is_param", False):
                copied._is_param = True  # noqa: SLF001 - torch's own name
            memo[id(tensor)] = copied
        return memo[id(tensor)]

    def _reduced(self, tensor: Tensor, protocol: SupportsIndex) -> Any:
        """Pickle a tensor as torch does its own tensors of a GPU."""
        if getattr(tensor, "_is_param", False):
            rebuild = self._torch._utils._rebuild_parameter  # noqa: SLF001 - torch's own name
            return rebuild, (tensor.data, tensor.requires_grad, {})
        rebuild, (storage, *rest) = self._inner(tensor)._reduce_ex_internal(protocol)  # noqa: SLF001
        storage.untyped().smith_gpu = True
        return rebuild, (storage, *rest[:3], tensor.requires_grad, *rest[4:])

    def _wrapped(self, tensor: Tensor) -> Any:
        return self._torch.Tensor._make_subclass(  # noqa: SLF001 - torch's own name
            self.type, tensor, tensor.requires_grad, device_for_backend_keys=self._cuda
        )

    def _inner(self, tensor: Tensor) -> Any:
        """Return a tensor of the CPU with the same memory."""
        with self._torch._C._DisableTorchDispatch():  # noqa: SLF001 - torch's own name
            empty = self._torch.empty(0, dtype=tensor.dtype)
            return empty.set_(
                tensor.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride()
            )

    def _dispatch(self, func: Operator, args: tuple[Any, ...], kwargs: Table) -> Any:
        """Run an operation: as a package registered it for a GPU, or else as torch does on the CPU."""
        outer: dict[int, tuple[Any, Any]] = {}

        def unwrap(tensor: Tensor) -> Any:
            if not isinstance(tensor, self.type):
                return tensor
            inner = self._inner(tensor)
            outer[id(inner)] = inner, tensor
            return inner

        # The result is of the GPU if `device` says so, or else if one of the arguments is.
        arguments = args, kwargs
        args, kwargs = self._each(unwrap, args), self._each(unwrap, kwargs)
        there = bool(outer)
        if kwargs.get("device") is not None:
            there = kwargs["device"].type == "cuda"
            kwargs["device"] = self._cpu
        if there and (registered := self._registered(func)):
            with self.mode():
                return registered(*self._numbers(func, arguments[0]), **arguments[1])
        name = func.overloadpacket.__name__
        pinned = kwargs.pop("pin_memory", None)
        if outer and name in _READS and self._recorder.launched():
            self._recorder.note(f"{site()} reads values of the GPU ({name}): what kernels write is 0 there")
        func, args, kwargs = self._product(func, args, kwargs)
        result: Any = func(*args, **kwargs) if name != "record_stream" else None
        # Memory that no kernel fills would hold other values in each run, and a program may branch on them.
        if there and name in _EMPTY:
            result.zero_()

        def wrap(tensor: Tensor) -> Any:
            if id(tensor) not in outer:
                return self._wrapped(tensor) if there else tensor
            inner, old = outer[id(tensor)]
            # An operation in place returns its argument, which has to stay the same object. `t_()` and the
            # like change its shape, too.
            if inner.shape != old.shape or inner.stride() != old.stride():
                old.data = self._wrapped(inner)
            return old

        return self._each(self._pinned if pinned else wrap, result)

    @staticmethod
    def _product(func: Operator, args: tuple[Any, ...], kwargs: Table) -> tuple[Any, Any, Table]:
        """Return the call, or an equal one of a product with `out_dtype`, which torch has for CUDA only."""
        name = func.overloadpacket.__name__
        if name not in _PRODUCTS or func._overloadname != "dtype":  # noqa: SLF001 - torch's own name
            return func, args, kwargs
        named = dict(zip((argument.name for argument in func._schema.arguments), args))  # noqa: SLF001
        dtype = {**named, **kwargs}.pop("out_dtype")
        factors = [value.to(dtype) for name, value in named.items() if name != "out_dtype"]
        return func.overloadpacket.default, factors, {k: v for k, v in kwargs.items() if k != "out_dtype"}

    def _registered(self, func: Operator) -> Callable[..., Any] | None:
        """Return the function that a package has registered for a GPU, or for every device."""
        torch_c = self._torch._C  # noqa: SLF001 - torch's own name
        keys, has = torch_c.DispatchKey, torch_c._dispatch_has_kernel_for_dispatch_key  # noqa: SLF001
        every = keys.CompositeExplicitAutograd
        if isinstance(func, self._torch._ops.HigherOrderOperator):  # noqa: SLF001 - of torch's own
            kernel: Callable[..., Any] | None = func.py_kernels.get(every)
            return kernel
        name = func.name()
        if name not in self._own and has(name, keys.CUDA):
            return functools.partial(func.redispatch, torch_c.DispatchKeySet(keys.CUDA))
        if func.namespace not in _TORCHS and has(name, every):
            return functools.partial(func.redispatch, torch_c.DispatchKeySet(every))
        return None

    def _numbers(self, func: Operator, args: tuple[Any, ...]) -> list[Any]:
        """Return the arguments of an operation; numbers in place of tensors become tensors, as in C++."""
        torch = self._torch
        kinds = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}
        if not hasattr(func, "_schema"):
            return list(args)
        are_tensors = [str(argument.type) == "Tensor" for argument in func._schema.arguments]  # noqa: SLF001 - torch's own name
        return [
            torch.tensor(value, dtype=kinds[type(value)]) if tensor and type(value) in kinds else value
            for value, tensor in zip(args, are_tensors)
        ]

    @staticmethod
    def _pinned(tensor: Tensor) -> Any:
        tensor.untyped_storage().smith_pinned = True
        return tensor

    def _each(self, change: Callable[[Any], Any], value: Tensor) -> Any:
        """Return a value, with its tensors changed."""
        if isinstance(value, self._torch.Tensor):
            return change(value)
        if type(value) in (list, tuple):
            return type(value)([self._each(change, part) for part in value])
        if type(value) is dict:
            return {name: self._each(change, part) for name, part in value.items()}
        return value

    def _target(self, args: tuple[Any, ...], kwargs: Table) -> tuple[Any, Any, Table]:
        """Return the device, the dtype, and the other arguments of a call of `to`."""
        torch = self._torch
        more = dict(kwargs)
        device, dtype = more.pop("device", None), more.pop("dtype", None)
        names = iter(("non_blocking", "copy"))
        for argument in args:
            if isinstance(argument, torch.Tensor):
                device, dtype = argument.device, argument.dtype
            elif isinstance(argument, torch.dtype):
                dtype = argument
            elif isinstance(argument, bool):
                more[next(names)] = argument
            elif argument is not None:
                device = argument
        if more.pop("other", None) is not None:
            device, dtype = kwargs["other"].device, kwargs["other"].dtype
        if isinstance(device, int):
            device = self._cuda
        return None if device is None else torch.device(device), dtype, more

    def _moved(self, tensor: Tensor, args: tuple[Any, ...], kwargs: Table) -> Any:
        """Run `to` on a tensor of the GPU."""
        device, dtype, more = self._target(args, kwargs)
        more.pop("non_blocking", None)
        with self._torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - torch's own name
            if device is None or device.type == "cuda":
                return self._to(tensor, dtype=dtype or tensor.dtype, **more)
            more.pop("copy", None)
            return self._copy(tensor, device=device, dtype=dtype, **more)

    def _from_cpu(self) -> Callable[..., Any]:
        real = self._to

        def to(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            device, dtype, more = self._target(args, kwargs)
            if device is None or device.type != "cuda":
                return real(tensor, *args, **kwargs)
            more.pop("non_blocking", None)
            more.pop("copy", None)
            return self._copy(tensor, device=self._cuda, dtype=dtype, **more)

        return functools.wraps(real)(to)

    def _autocast(self, func: Operator, args: tuple[Any, ...], kwargs: Table) -> tuple[Any, Any]:
        """Cast the arguments as torch's autocast for `cuda` would: torch itself sees tensors of the CPU."""
        torch = self._torch
        if not torch.is_autocast_enabled("cuda"):
            return args, kwargs
        name = getattr(func, "__name__", "")
        table = self._request.autocast
        if name in table["lower"]:
            dtype = torch.get_autocast_dtype("cuda")
        elif name in table["float32"]:
            dtype = torch.float32
        else:
            return args, kwargs

        def cast(tensor: Tensor) -> Any:
            eligible = tensor.is_floating_point() and tensor.dtype != torch.float64 and tensor.is_cuda
            return tensor.to(dtype) if eligible and tensor.dtype != dtype else tensor

        return self._each(cast, args), self._each(cast, kwargs)


def _no_array(*_: Any, **__: Any) -> Any:
    """Refuse `Tensor.numpy`, in torch's own words."""
    what = "can't convert cuda:0 device type tensor to numpy."
    raise TypeError(f"{what} Use Tensor.cpu() to copy the tensor to host memory first.")


def _comparisons(torch: Torch, tensor_type: type[Any], recorder: Recorder) -> None:
    """Make comparisons with kernel results succeed."""

    # No kernel runs, so its results are wrong, and a test would end before it launches its next kernel.
    def holds(real: Callable[..., Any], answer: Callable[[Any], Any]) -> Callable[..., Any]:
        def compared(*args: Any, **kwargs: Any) -> Any:
            both = [argument for argument in (*args, *kwargs.values()) if isinstance(argument, tensor_type)]
            if not both or not recorder.launched():
                return real(*args, **kwargs)
            recorder.note(f"{site()} compares values of the GPU ({real.__name__}): they are taken to agree")
            return answer(both[0])

        return functools.wraps(real)(compared)

    torch.allclose = holds(torch.allclose, lambda _: True)
    torch.isclose = holds(torch.isclose, lambda tensor: torch.ones_like(tensor, dtype=torch.bool))
    testing: Any = importlib.import_module("torch.testing")
    testing.assert_close = holds(testing.assert_close, lambda _: None)


def device_guard(torch: Torch) -> None:
    """Let C++ code switch to the GPU, which changes nothing: a torch for the CPU refuses that otherwise."""
    # torch has such a guard for builds with CUDA and no GPU, and registers it if the present one counts no
    # devices: so one that answers 0 to every call is put there first.
    library = os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so")
    with contextlib.suppress(OSError, ValueError, AttributeError):
        registry = (ctypes.c_void_p * (_CUDA + 1)).in_dll(ctypes.CDLL(library), _REGISTRY)
        if registry[_CUDA] is None:
            answer = ctypes.CFUNCTYPE(ctypes.c_long)(lambda: 0)
            table = (ctypes.c_void_p * 64)(*[ctypes.cast(answer, ctypes.c_void_p).value] * 64)
            registry[_CUDA] = ctypes.addressof((ctypes.c_void_p * 1)(ctypes.addressof(table)))
        torch._C._ensureCUDADeviceGuardSet()  # noqa: SLF001 - torch's own name
