"""Report facts about a kernel that are known only by running its file: parameters, configs, heuristics."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING

from . import parent_death
from .file_context import prepare
from .load import load_for
from .refusal import RequestRefusedError
from .values import encoded

if TYPE_CHECKING:
    from .json_types import Table


def describe(request_text: str) -> int:
    """Print the kernel's parameters, configs and heuristics as JSON."""
    parent_death.interrupt()
    try:
        answer = _described(json.loads(request_text))
    except RequestRefusedError as error:
        answer = {"refused": error.about}
    print(json.dumps(answer))
    return 0


def _described(request: Table) -> Table:
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
        parameters.append(
            {
                "name": parameter.name,
                "constexpr": constexpr,
                "has_default": has,
                "default": default if has else None,
            }
        )
    configs = []
    for config in loaded.configs:
        options = {}
        for name in ("num_warps", "num_stages", "num_ctas", "maxnreg"):
            value = getattr(config, name, None)
            if value is not None:
                options[name] = encoded(value)
        configs.append(
            {"values": {name: encoded(value) for name, value in config.kwargs.items()}, "options": options}
        )
    names = {parameter["name"] for parameter in parameters}
    for config in configs:  # an option of a backend may stand among the values, such as waves_per_eu
        for name in sorted(set(config["values"]) - names):
            config["options"][name] = config["values"].pop(name)
    found = {"parameters": parameters, "configs": configs, "heuristics": sorted(loaded.heuristics)}
    return {**found, "asked": around.gpu.asked}
