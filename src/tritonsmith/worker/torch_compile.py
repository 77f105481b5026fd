"""Support `torch.compile` for the fake GPU: TorchInductor generates kernels for it, and launches them.

torch._dynamo traces tensors of the GPU as torch's own, with the device `cuda:0`. TorchInductor's code then
runs unchanged, and its launches are counted. All names that are changed here are private to torch.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .launches import Recorder, site
from .messages import CaptureRequest
from .stubs import ImportWatcher
from .torch_accelerator import TorchAccelerator

if TYPE_CHECKING:
    from .border import Table
    from .foreign import DType, Inductor, Tensor, Torch

_TIME = 1.0  # milliseconds


def watch(torch: Torch, tensor_type: type, recorder: Recorder, request: CaptureRequest) -> None:
    """Change torch's modules as far as needed, once they are imported."""
    accelerator = TorchAccelerator(torch, request, recorder.note)
    changes: dict[str, Callable[[Any], None]] = {
        "torch._dynamo.trace_rules": _skip,
        "torch._dynamo.variables.builder": functools.partial(_plain, torch, tensor_type, accelerator),
        "torch._dynamo.variables.streams": functools.partial(_streams, torch),
        "torch._subclasses.fake_tensor": _fake_tensors,
        "torch._inductor.config": functools.partial(_settings, request),
        "torch._inductor.fx_passes.joint_graph": _constants,
        "torch._inductor.select_algorithm": functools.partial(_choices, recorder),
        "torch._inductor.compile_fx": functools.partial(_failures, torch, recorder),
        "torch._inductor.codegen.triton": _fusions,
        "torch._inductor.runtime.triton_helpers": _drivers,
        "torch._inductor.runtime.triton_heuristics": functools.partial(_heuristics, recorder),
    }

    def changed(change: Callable[[Any], None]) -> Callable[..., None]:
        def after(run: Callable[[], None], module: Inductor) -> None:
            run()
            change(module)

        return after

    # Importing torch._dynamo and torch._inductor takes seconds, and most programs never do: their modules are
    # changed when the program imports them, or now if torch has.
    _allocations(torch, tensor_type)
    _without_graphs(torch)
    compile_if_captured(torch, accelerator)
    for name in set(changes) & set(sys.modules):
        changes.pop(name)(sys.modules[name])
    sys.meta_path.insert(0, ImportWatcher({name: changed(change) for name, change in changes.items()}))


def compile_if_captured(torch: Torch, accelerator: TorchAccelerator) -> None:
    """Let `torch.compile` return a function as it is, where the accelerator does not work with this torch."""
    real = torch.compile

    def compile_(model: Callable[..., Any] | None = None, **options: Any) -> Any:
        if options.get("disable") or accelerator.works():
            return real(model, **options)
        return model if model is not None else lambda decorated: decorated

    torch.compile = functools.wraps(real)(compile_)


def _without_graphs(torch: Torch) -> None:
    """Turn off CUDA graphs, which `mode="reduce-overhead"` requests: their launches cannot be recorded."""
    real = torch._TorchCompileInductorWrapper.apply_options  # noqa: SLF001 - torch's own name

    def apply_options(self: Inductor, options: Table) -> None:
        real(self, options)
        if "triton.cudagraphs" in self.config:
            self.config["triton.cudagraphs"] = False

    torch._TorchCompileInductorWrapper.apply_options = apply_options  # noqa: SLF001


def _skip(trace_rules: Inductor) -> None:
    """Exclude this tool's own functions from traces."""
    here = os.path.dirname(__file__)
    trace_rules.FORCE_SKIP_FILES.update(os.path.join(here, name) for name in os.listdir(here))


def _plain(torch: Torch, tensor_type: type, accelerator: TorchAccelerator, builder: Inductor) -> None:
    """Make a trace treat tensors of the fake GPU as torch's own."""
    torch._dynamo.config.traceable_tensor_subclasses.add(tensor_type)  # noqa: SLF001 - torch's own name
    infer, dispatch = builder.infer_subclass_type, builder.VariableBuilder._type_dispatch  # noqa: SLF001

    def infer_subclass_type(value: object) -> Any:
        return None if type(value) is tensor_type else infer(value)

    def type_dispatch(_cls: object = None) -> Table:
        accelerator.works()  # a trace may begin without `torch.compile`: by torch._dynamo.optimize
        return {**dispatch(), tensor_type: builder.VariableBuilder.wrap_tensor}

    builder.infer_subclass_type = infer_subclass_type
    builder.VariableBuilder._type_dispatch = classmethod(type_dispatch)  # noqa: SLF001


def _streams(torch: Torch, streams: Inductor) -> None:
    """Hide the accelerator while a trace looks for the current stream."""
    # It does so only if there is an accelerator, and by C++ functions that a torch for the CPU lacks.
    real = streams.SymbolicStreamState.__init__

    def without(self: Inductor, *args: Any) -> None:
        before = torch.accelerator.is_available
        torch.accelerator.is_available = lambda: False
        try:
            real(self, *args)
        finally:
            torch.accelerator.is_available = before

    streams.SymbolicStreamState.__init__ = without


def _fake_tensors(fake_tensor: Inductor) -> None:
    """Make a trace compute constants as it does without a GPU."""
    # With a GPU, the mode would first initialize CUDA.
    fake_tensor.FakeTensorMode.avoid_device_init = property(lambda _: True)


def _settings(request: CaptureRequest, config: Inductor) -> None:
    for name, value in request.inductor.items():
        with contextlib.suppress(AttributeError):  # releases of torch differ
            setattr(config, name, value)


def _constants(module: Inductor) -> None:
    """Compute constants of the GPU on the CPU."""
    # TorchInductor folds constants with all modes off, also the one by which tensors of the fake GPU are
    # made.
    base = sys.modules["torch.utils._python_dispatch"].TorchDispatchMode
    folder = module.UniformValueConstantFolder
    real = folder.run

    class OnCpu(base):  # type: ignore[misc, valid-type]
        def __torch_dispatch__(
            self,
            func: Callable[..., Any],
            _types: object,
            args: tuple[Any, ...] = (),
            kwargs: Table | None = None,
        ) -> Any:
            more = dict(kwargs or {})
            if more.get("device") is not None:
                more["device"] = "cpu"
            return func(*args, **more)

    def run(self: Inductor, *args: Any, **kwargs: Any) -> Any:
        with OnCpu():
            return real(self, *args, **kwargs)

    folder.run = run


def _failures(torch: Torch, recorder: Recorder, module: Inductor) -> None:
    """Run a model that TorchInductor cannot compile here as it is, and note that its kernels are missing."""
    real = module.compile_fx

    def compile_fx(model: Inductor, *args: Any, **kwargs: Any) -> Any:
        errors = torch._dynamo.exc  # noqa: SLF001 - torch's own name
        try:
            return real(model, *args, **kwargs)
        except Exception as error:  # whatever it is, the program goes on
            # torch._dynamo restarts a trace by an exception of its own, which has to reach it.
            if isinstance(error, errors.TorchDynamoException) and not isinstance(
                error, errors.BackendCompilerFailed
            ):
                raise
            what = str(error).partition("\n")[0]
            recorder.note(f"{site()}: TorchInductor's kernels are missing: {type(error).__name__}: {what}")
            return model

    module.compile_fx = functools.wraps(real)(compile_fx)


def _allocations(torch: Torch, tensor_type: type) -> None:
    """Replace the C++ functions by which generated code makes tensors."""
    functions = torch._C._dynamo.guards  # noqa: SLF001 - torch's own name
    real = getattr(functions, "_reinterpret_tensor", None) or torch.ops.inductor._reinterpret_tensor  # noqa: SLF001

    def empty(size: tuple[int, ...], stride: tuple[int, ...], dtype: DType) -> Any:
        return torch.empty_strided(size, stride, dtype=dtype, device="cuda")

    def reinterpret(tensor: Tensor, size: tuple[int, ...], stride: tuple[int, ...], offset: int = 0) -> Any:
        if tensor_type is type(tensor):
            return torch.as_strided(tensor, size, stride, torch.Tensor.storage_offset(tensor) + offset)
        return real(tensor, size, stride, offset)

    functions._empty_strided_cuda, functions._reinterpret_tensor = empty, reinterpret  # noqa: SLF001


def _drivers(helpers: Inductor) -> None:
    """Do nothing where a driver would be set: Triton's driver is that of the fake GPU already."""
    helpers.set_driver_to_gpu = lambda: None


def _heuristics(recorder: Recorder, heuristics: Inductor) -> None:
    """Keep kernels of generated code from being measured, and list all configs of each."""
    tuner, result = heuristics.CachingAutotuner, heuristics.TritonCompileResult
    run, make_launchers, make_launcher = tuner.run, tuner._make_launchers, result.make_launcher  # noqa: SLF001

    def watched_run(self: Inductor, *args: Any, **kwargs: Any) -> Any:
        with recorder.configs_of(lambda: getattr(self, "smith_configs", [])):
            return run(self, *args, **kwargs)

    def listed(self: Inductor) -> None:
        make_launchers(self)
        every = [launcher.config for launcher in self.launchers]
        self.smith_configs = [_values(config) for config in every] if len(every) > 1 else []

    def unread(self: Inductor) -> Any:
        # The launcher's generated code reads these attributes, and reading one that a recorded kernel lacks
        # would compile it.
        facts = {"shared": 0, "num_warps": self.config.num_warps, "num_ctas": 1, "cluster_dims": (1, 1, 1)}
        vars(self.kernel).update(facts, _init_handles=lambda: None)
        return make_launcher(self)

    tuner.run, tuner._make_launchers, result.make_launcher = watched_run, listed, unread  # noqa: SLF001
    tuner.bench = lambda *_, **__: _TIME


def _values(config: Inductor) -> Table:
    return {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}


def _choices(recorder: Recorder, algorithms: Inductor) -> None:
    """Take the first of Triton's templates, where `max_autotune` would measure them."""

    def benchmark(_cls: object, choices: Inductor, *_: Any, **__: Any) -> dict[Any, float]:
        ours = [choice for choice in choices if isinstance(choice, algorithms.TritonTemplateCaller)]
        if ours:
            others = f"{len(choices) - 1} others are not recorded"
            recorder.note(
                f"{site()}: TorchInductor would measure templates: it takes the first, and {others}"
            )
        # The others are calls of cuBLAS and the like: a launch of those is not Triton's, and would not be
        # seen.
        return {choice: _TIME if choice in ours else 2 * _TIME for choice in choices}

    for name in ("benchmark_in_current_process", "benchmark_in_sub_process"):
        setattr(algorithms.AlgorithmSelectorCache, name, classmethod(benchmark))


def _fusions(triton: Inductor) -> None:
    """Skip the measurement of whether a fusion pays."""
    triton.TritonScheduling.benchmark_codegened_module = lambda _self, module, *_, **__: (
        _TIME,
        module.__file__,
    )
