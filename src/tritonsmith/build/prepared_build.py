"""The result of planning a build: the plan, its warnings, and its receipt."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.core.plan import Plan
from tritonsmith.facts.checkout import TritonCheckout

if TYPE_CHECKING:  # a build that has nothing to do needs no store
    from tritonsmith.build.llvm.store_entry import StoreEntryUpdate
    from tritonsmith.build.triton.recipe import Inputs


@dataclass(frozen=True)
class PreparedBuild:
    """A plan that is ready to be shown or run.

    Attributes:
        plan: the plan.
        warnings: problems that may occur later.
        receipt: inputs of the build, for the receipt.
        beside: folder that gets a copy of the receipt, if any.
        llvm_in_words: description of the LLVM if it is known not to be the pin; empty otherwise.
        pin_in_words: description of the pin.
        checkout: Triton's checkout, if Triton is built.
        inputs: facts and settings of a build of Triton.
        store_update: changes to the store of LLVMs; None for none.
    """

    plan: Plan
    warnings: tuple[str, ...]
    receipt: dict[str, Any]
    beside: Path | None = None
    llvm_in_words: str = ""
    pin_in_words: str = ""
    store_update: StoreEntryUpdate | None = None
    checkout: TritonCheckout | None = None
    inputs: Inputs | None = None
