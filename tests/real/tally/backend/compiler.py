"""The stages of a backend for no device: Triton's IR, and how many operations of each kind that has.

No `from __future__ import annotations`: Triton loads this file without an entry in `sys.modules`, where
`dataclass` looks annotations up that are texts.
"""

import hashlib
import json
from dataclasses import dataclass, fields
from types import ModuleType
from typing import Any

from triton._C.libtriton import ir, passes, tally
from triton.backends.compiler import BaseBackend, GPUTarget


@dataclass(frozen=True)
class TallyOptions:
    """What a compile may ask for; the names are those that Triton's front end reads."""

    num_warps: int = 1
    num_ctas: int = 1
    num_stages: int = 1
    cluster_dims: tuple[int, ...] = (1, 1, 1)
    debug: bool = False
    sanitize_overflow: bool = False
    arch: str = ""
    backend_name: str = "tally"
    extern_libs: Any = None
    supported_fp8_dtypes: tuple[str, ...] = ()
    deprecated_fp8_dtypes: tuple[str, ...] = ()
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee",)
    default_dot_input_precision: str = "ieee"
    max_num_imprecise_acc_default: int = 0

    def hash(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()


class TallyBackend(BaseBackend):  # type: ignore[misc] # Triton lives in another interpreter
    binary_ext = "tally"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return bool(target.backend == "tally")

    def hash(self) -> str:
        return "1"

    def parse_options(self, opts: dict[str, Any]) -> TallyOptions:
        known = {field.name for field in fields(TallyOptions)}
        return TallyOptions(**{name: value for name, value in opts.items() if name in known})

    def get_codegen_implementation(self, *_: Any) -> dict[str, Any]:
        return {"min_dot_size": lambda *_: (1, 1, 1)}

    def get_module_map(self) -> dict[str, ModuleType]:
        return {}

    def load_dialects(self, context: Any) -> None:
        """Triton's own are enough."""

    def pack_metadata(self, metadata: Any) -> tuple[int, ...]:
        return (metadata.num_warps,)

    @staticmethod
    def make_ttir(module: Any, _: dict[str, Any]) -> Any:
        manager = ir.pass_manager(module.context)
        passes.common.add_inliner(manager)
        passes.common.add_canonicalizer(manager)
        passes.common.add_cse(manager)
        manager.run(module)
        return module

    @staticmethod
    def make_tally(module: Any, metadata: dict[str, Any]) -> str:
        metadata["shared"], metadata["name"] = 0, "tally"
        return json.dumps(tally.operations(module), indent=2)

    def add_stages(self, stages: dict[str, Any], *_: Any) -> None:
        stages["ttir"] = self.make_ttir
        stages["tally"] = self.make_tally
