"""Watch the launches of a program: record them without a GPU, or measure them with Proton.

`sitecustomize.py` of a scratch folder on PYTHONPATH calls `start_capture` or `start_profile` in every Python
of the program's process tree. A recorded program sees a GPU, and its kernels are counted, not run. Proton is
Triton's own profiler.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import json
import os
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .border import encoded, read_request, text_of
from .fake_gpu import FakeDriver, FakeGpu
from .foreign import where
from .launches import RecordedKernel, Recorder, site
from .messages import CaptureRequest, ProfiledRow, ProfileRequest, ProfileSession
from .stubs import AbsentFinder, ImportWatcher

if TYPE_CHECKING:
    from .border import Table
    from .foreign import AstSource, Autotuner, GpuTarget

ALWAYS = ("num_warps", "num_stages")  # options that are written even where they are the defaults
_TIME = 1.0  # milliseconds that every kernel takes, for a program that measures


class UnknownFactError(RuntimeError):
    """A fact about the GPU that the request does not contain."""


class RecordedDriver(FakeDriver):
    """Triton's driver for a program: every kernel takes the same time."""

    def __init__(self, gpu: FakeGpu, recorder: Recorder) -> None:
        super().__init__(gpu)
        self._recorder = recorder

    def get_benchmarker(self) -> Callable[..., Any]:
        """Return a function that runs a kernel once, and measures nothing."""
        return functools.partial(measured, self._recorder)

    def get_empty_cache_for_benchmark(self) -> None:
        """Do nothing: there is no cache to clear."""

    def clear_cache(self, _cache: object = None) -> None:
        """Do nothing."""


def start_capture(request_path: str) -> int:
    """Wait for Triton and torch to be imported, and make them report the GPU of the request."""
    # Importing them here would cost seconds in each Python of the process tree, of which most need neither.
    request = read_request(CaptureRequest, request_path)
    recorder = Recorder(request.results)
    gpu = FakeGpu(lambda text: recorder.note(f"{where()}: {text}"), UnknownFactError, request.gpus)
    backend, arch, warp_size = request.target
    # Of the form of Triton's GPUTarget, which is not imported yet: torch may be asked first.
    gpu.become(types.SimpleNamespace(backend=backend, arch=arch, warp_size=warp_size))
    around: dict[str, Any] = {
        "triton": functools.partial(_with_triton, request, recorder, gpu),
        "torch": functools.partial(_with_torch, request, recorder, gpu),
    }
    sys.meta_path.insert(0, ImportWatcher(around))
    sys.meta_path.append(AbsentFinder(request.stand_ins, recorder.note))
    return 0


def _with_torch(
    request: CaptureRequest,
    recorder: Recorder,
    gpu: FakeGpu,
    run: Callable[[], None],
    torch: types.ModuleType,
) -> None:
    run()
    from . import gpu_tensors

    recorder.version("torch", torch.__version__)
    gpu_tensors.install(torch, gpu, recorder, request)


def _with_triton(
    request: CaptureRequest,
    recorder: Recorder,
    gpu: FakeGpu,
    run: Callable[[], None],
    triton: types.ModuleType,
) -> None:
    run()
    from triton import testing
    from triton.backends.compiler import GPUTarget
    from triton.compiler import compiler
    from triton.runtime import autotuner, cache

    recorder.version("triton", triton.__version__)
    gpu.become(GPUTarget(*request.target))
    triton.runtime.driver.set_active(RecordedDriver(gpu, recorder))
    replacement = functools.partial(_compile, recorder, compiler.compile)
    for module in (triton, triton.compiler, compiler):
        vars(module)["compile"] = replacement
    for module in (compiler, cache, autotuner):
        # The digest of libtriton.so takes seconds, and no other Triton uses this run's cache.
        if "triton_key" in vars(module):
            vars(module)["triton_key"] = lambda: "tritonsmith"
    for module in (testing, autotuner):
        for name in {"do_bench", "do_bench_cudagraph"} & set(vars(module)):
            vars(module)[name] = functools.partial(measured, recorder)
    _watch_tuning(recorder, autotuner.Autotuner)


def _compile(
    recorder: Recorder,
    real: Callable[..., Any],
    src: AstSource,
    target: GpuTarget | None = None,
    options: Table | None = None,
    **more: Any,
) -> Any:
    """Replace Triton's `compile`: record the request instead, and compile on demand."""
    # Programs may compile a file of IR as well; there is no signature of such a kernel to record.
    if not hasattr(src, "fn"):
        recorder.note(f"{site()} compiles {src}, which is no kernel's source: it is compiled, not recorded")
        return real(src, target=target, options=options, **more)
    import triton

    target = target or triton.runtime.driver.active.get_current_target()
    requested = dict(options or {})
    key = recorder.requested(src, target, chosen_options(target, requested))
    compiled = functools.partial(real, src, target=target, options=requested, **more)
    return RecordedKernel(recorder, key, compiled, src)


def chosen_options(target: GpuTarget | None, options: Table) -> Table:
    """Return options that differ from the backend's defaults; warps and stages always."""
    from triton.compiler.compiler import make_backend

    usual = vars(make_backend(target).parse_options({}))
    chosen: Table = {}
    for name, value in options.items():
        if name in usual and (name in ALWAYS or usual[name] != value) and value is not None:
            chosen[name] = value if isinstance(value, (bool, int, float, str)) else encoded(value)
    return chosen


def _watch_tuning(recorder: Recorder, tuner: Autotuner) -> None:
    """Make autotuners record their configs: Triton's, and those of packages that override its methods."""

    # The methods are private to Triton, but the same from 3.0 to main: `run` chooses a config and launches,
    # `_bench` measures one, `prune_configs` returns those that are left.
    def run(real: Callable[..., Any]) -> Callable[..., Any]:
        def watched(self: Autotuner, *args: Any, **kwargs: Any) -> Any:
            with recorder.configs_of(functools.partial(_configs, recorder, self)):
                return real(self, *args, **kwargs)

        return watched

    def bench(real: Callable[..., Any]) -> Callable[..., Any]:
        def watched(self: Autotuner, *args: Any, config: object, **kwargs: Any) -> Any:
            with recorder.trial() as launches:
                measurement = real(self, *args, config=config, **kwargs)
            self.__dict__.setdefault("smith_trials", []).append((config, launches))
            return measurement

        return watched

    def prune(real: Callable[..., Any]) -> Callable[..., Any]:
        def watched(self: Autotuner, *args: Any, **kwargs: Any) -> Any:
            self.smith_trials = []
            self.smith_pruned = list(real(self, *args, **kwargs))
            return self.smith_pruned

        return watched

    changes = {"run": run, "_bench": bench, "prune_configs": prune}

    def watch(kind: type[Any]) -> None:
        for name in set(changes) & set(vars(kind)):
            setattr(kind, name, functools.wraps(vars(kind)[name])(changes[name](vars(kind)[name])))

    # A subclass that overrides a method would bypass the patched one of its base.
    def created(kind: type[Any], /, **more: Any) -> None:
        super(tuner, kind).__init_subclass__(**more)
        watch(kind)

    watch(tuner)
    tuner.__init_subclass__ = classmethod(created)


def _configs(recorder: Recorder, tuner: Autotuner) -> list[Table]:
    """Return the configs of an autotuner after pruning: values, options, and results of heuristics."""
    trials = getattr(tuner, "smith_trials", [])
    constexprs = {id(config): kernels[0].constexprs for config, kernels in trials if kernels}
    # Constants that all configs have are the launch's own; the others come from the config, or a heuristic.
    common = {
        key
        for key, value in next(iter(constexprs.values()), {}).items()
        if all(other.get(key) == value for other in constexprs.values())
    }
    name = getattr(tuner.base_fn, "__name__", "a kernel")
    tables = []
    for config in getattr(tuner, "smith_pruned", tuner.configs):
        # A new config has the defaults of this release; an option that was not chosen stays unwritten.
        usual = type(config)({}).all_kwargs()
        chosen = {
            key: value
            for key, value in config.all_kwargs().items()
            if key in ALWAYS or key not in usual or value != usual[key]
        }
        try:
            values = {key: encoded(value) for key, value in chosen.items()}
        except TypeError as error:
            recorder.note(f"a config of {name} is left out: {error}")
            continue
        more = {key: value for key, value in constexprs.get(id(config), {}).items() if key not in common}
        tables.append({**more, **values})
    kinds = {json.dumps([kernel.signature, kernel.hints]) for _, kernels in trials for kernel in kernels}
    if len(kinds) > 1:
        recorder.note(
            f"types of {name} depend on its configs: with the others, the types here are the first's"
        )
    return tables


def measured(recorder: Recorder, kernel: Callable[[], Any], *_: Any, **more: Any) -> Any:
    """Replace Triton's `do_bench`: call the kernel once."""
    if getattr(recorder.tuning, "trial", None) is None:
        recorder.note(f"{site()} measures a kernel: it gets {_TIME} ms")
    kernel()
    quantiles = more.get("quantiles")
    if quantiles:
        return [_TIME] * len(quantiles)
    return [_TIME] if more.get("return_mode") == "all" else _TIME


def start_profile(request_path: str) -> int:
    """Start a session as soon as Triton is imported; it ends with the process."""
    request = read_request(ProfileRequest, request_path)
    if request.sessions:
        sys.meta_path.insert(0, ImportWatcher({"triton": functools.partial(_with_proton, request)}))
    return 0


def _with_proton(request: ProfileRequest, run: Callable[[], None], _triton: types.ModuleType) -> None:
    """Start the first of the sessions that this machine can run, and write which one it is."""
    run()
    place = os.path.join(request.results, str(os.getpid()))
    session: ProfileSession | None = None
    refused = []
    try:
        import triton.profiler.flags
        from triton import profiler
    except ImportError as error:
        refused.append(f"{type(error).__name__}: {error}")
    else:
        module = triton.profiler.flags
        for candidate in filter(functools.partial(_supports, profiler), request.sessions):
            try:
                mode = {"mode": candidate.mode} if candidate.mode else {}
                profiler.start(place, backend=candidate.backend, **mode)
            except Exception as error:  # noqa: BLE001 - libproton raises what CUPTI and ROCm say
                name = " ".join(filter(None, (candidate.backend, candidate.mode)))
                refused.append(f"{name}: {error}")
                continue
            session = candidate
            # With this flag Proton ignores the program's own `start` and `finalize`, which would end this
            # session; it is what `proton SCRIPT` sets. Older releases have it in the module itself.
            getattr(module, "flags", module).command_line = True
            atexit.register(profiler.finalize)
            break
    with open(f"{place}.json", "w", encoding="utf-8") as file:
        file.write(text_of(ProfiledRow(session, tuple(refused))) + "\n")


def _supports(profiler: types.ModuleType, session: ProfileSession) -> bool:
    """Report whether this Proton has the session's backend."""
    # A Proton with modes would start `cupti_pcsampling`, but measure nothing.
    modes = "mode" in inspect.signature(profiler.start).parameters
    return not session.mode if not modes else session.backend != "cupti_pcsampling"
