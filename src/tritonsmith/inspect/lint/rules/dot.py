"""Find matrix products that no matrix unit computes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tritonsmith.core import configs
from tritonsmith.inspect.lint.compiled import CompiledPoint
from tritonsmith.inspect.lint.finding import LintFinding, rules

_FMA = re.compile(r"^(?:fma\.rn|mad\.lo|dp4a|v_(?:pk_|dual_)?(?:fma|fmac|mac|mad|dot)\w*)\b")
_BLOCKED = re.compile(r"#(?:ttg|triton_gpu)\.blocked<")


def without_tensor_core(one: CompiledPoint) -> Iterator[LintFinding]:
    """Yield each `tt.dot` with a blocked result layout: it is computed by scalar multiplications."""
    if not one.point.arch.startswith(tuple(configs.load("lint")["matrix-units"][one.point.backend])):
        return
    origins = set()
    for dot in one.ttgir.named("tt.dot"):
        line = one.ttgir_line(dot.number)
        result = one.ttgir.tensor(dot)
        if result is None or not _BLOCKED.match(one.ttgir.layout(result)) or line.origin in origins:
            continue
        lines = (text for text in one.lines(one.assembly) if line.origin and text.origin == line.origin)
        products = [text for text in lines if _FMA.match(text.text)]
        if not products:
            continue
        origins.add(line.origin)
        taken = one.ttgir.tensor(dot, 0)
        kind = taken.element if taken else "?"
        shape = "x".join(map(str, result.shape))
        layout = one.ttgir_line(one.ttgir.alias_lines[result.layout])
        what = f"a dot of {kind} to {shape}x{result.element} runs on {len(products)} scalar multiply-adds"
        yield LintFinding(rules()["dot-without-tensor-core"], what, (line, layout, products[0]))
