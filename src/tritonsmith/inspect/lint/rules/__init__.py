"""The rules: one function each, which yields the findings of a compiled point."""

from tritonsmith.inspect.lint.rules import access, async_copy, dot, occupancy, remarks, spill

ALL = {
    "spill-in-loop": spill.in_loop,
    "wgmma-serialized": remarks.serialized,
    "setmaxnreg-ignored": remarks.setmaxnreg,
    "dot-without-tensor-core": dot.without_tensor_core,
    "no-async-copy": async_copy.missing,
    "uncoalesced-access": access.uncoalesced,
    "scalar-access": access.scalar,
    "registers-near-block": occupancy.near_next_block,
}

__all__ = ["ALL"]
