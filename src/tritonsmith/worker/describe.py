"""Report facts about a kernel that are known only by running its file: parameters, configs, heuristics."""

from __future__ import annotations

import inspect

from . import parent_death
from .border import RequestRefusedError, refusal_text, request_of, text_of
from .file_context import prepare
from .load import load_for
from .messages import ConfigRow, DescribedRow, DescribeRequest, ParameterRow
from .values import encoded


def describe(request_text: str) -> int:
    """Print the kernel's parameters, configs and heuristics as JSON."""
    parent_death.interrupt()
    try:
        print(text_of(_described(request_of(DescribeRequest, request_text))))
    except RequestRefusedError as error:
        print(refusal_text(error.refusal))
    return 0


def _described(request: DescribeRequest) -> DescribedRow:
    around = prepare(request)
    loaded = load_for(request, around)
    assert loaded is not None  # noqa: S101 - `describe` is never asked about IR
    parameters = []
    for parameter in loaded.fn.params:
        constexpr = bool(parameter.is_constexpr)
        default = inspect.signature(loaded.fn.fn).parameters[parameter.name].default
        has = default is not inspect.Parameter.empty
        if has:
            default = encoded(getattr(default, "value", default))
        parameters.append(ParameterRow(parameter.name, constexpr, has, default if has else None))
    names = {parameter.name for parameter in parameters}
    configs = []
    for config in loaded.configs:
        options = {}
        for name in ("num_warps", "num_stages", "num_ctas", "maxnreg"):
            value = getattr(config, name, None)
            if value is not None:
                options[name] = encoded(value)
        values = {name: encoded(value) for name, value in config.kwargs.items()}
        for name in sorted(set(values) - names):  # options of a backend may stand there, as waves_per_eu does
            options[name] = values.pop(name)
        configs.append(ConfigRow(values, options))
    return DescribedRow(
        tuple(parameters), tuple(configs), tuple(sorted(loaded.heuristics)), bool(around.gpu.asked)
    )
