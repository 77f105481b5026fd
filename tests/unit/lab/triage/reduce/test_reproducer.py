"""The file that is written: what stands above the kernel, and what compiles it."""

from __future__ import annotations

import ast
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tritonsmith.compiler import targets
from tritonsmith.compiler.interpreter import choose_interpreter
from tritonsmith.compiler.request import CompileRequest, Surgery
from tritonsmith.compiler.run import WarmCompiler
from tritonsmith.core.errors import FactError
from tritonsmith.lab import terms as language
from tritonsmith.lab.triage.kernel import KernelSubject
from tritonsmith.lab.triage.reduce import testers
from tritonsmith.lab.triage.reduce.testers import Symptom

pytestmark = pytest.mark.unit

TEXT = (
    "import triton\nimport triton.language as tl\n\n"
    "@triton.jit\ndef k(a, n, b, B: tl.constexpr):\n    tl.store(a, n)\n"
)
SYMPTOM = Symptom("3.6.0", "error: it\nbroke", 99, "big.py")


def asked(signature: str = "*fp16:16,i32:1,*fp32:16:r32,B=64", *, target: str = "gfx942") -> CompileRequest:
    return CompileRequest(
        Path("/somewhere/small k.py"), "k", signature, (targets.parse(target),), {"num_stages": 4}
    )


def head(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("#")]


def test_the_head_says_what_to_expect_and_how_to_see_it() -> None:
    text = testers.render(TEXT, SYMPTOM, asked())
    assert "/somewhere" not in text
    (command,) = (line for line in head(text) if "invoke" in line)
    assert shlex.split(command.removeprefix("#"))[1:4] == ["kernel.compile", "small k.py:k", "--signature"]
    assert "# Triton 3.6.0, hip:gfx942:64, num_stages=4; no GPU is needed." in text
    assert ast.unparse(ast.parse(text)) == ast.unparse(ast.parse(TEXT))


@pytest.mark.parametrize(
    ("when", "task"),
    [
        ("spills>0", ["kernel.compile"]),
        ("ptx contains mma", ["kernel.show"]),
        ("registers>9,spills>0", ["kernel.compile"]),
    ],
)
def test_each_symptom_has_the_command_that_shows_it(when: str, task: list[str]) -> None:
    symptom = Symptom("3.6.0", when, 99, "big.py", language.parse([when], "--when"))
    text = testers.render(TEXT, symptom, asked())
    assert [line.split()[2] for line in head(text) if "invoke" in line] == task


def test_the_main_program_compiles_as_was_asked() -> None:
    made = testers.main_program(TEXT, SYMPTOM, asked())
    assert "signature={'a': '*fp16', 'n': 'constexpr', 'b': '*fp32', 'B': 'constexpr'}" in made
    assert "constexprs={(3,): 64, (1,): 1}" in made
    assert "(2,): [['tt.divisibility', 16], ['tt.pointer_range', 32]]" in made
    assert "GPUTarget('hip', 'gfx942', 64)" in made
    assert "options={'num_stages': 4}" in made
    text = testers.render(TEXT, SYMPTOM, asked(), made)
    compile(text, "made", "exec")
    assert "#   python 'small k.py'" in text


def test_a_text_is_looked_for() -> None:
    symptom = Symptom(
        "3.6.0", "", 9, "big.py", language.parse(["ptx contains a", "llir not contains 'b"], "--when")
    )
    made = testers.main_program(TEXT, symptom, asked(target="sm_90"))
    assert "print('a' in compiled.asm['ptx'])" in made
    assert "print('b' not in compiled.asm['llir'])" in made
    assert "pointer_range" not in made


def test_no_main_program_where_none_is_known_to_do() -> None:
    old = Symptom("3.2.0", "", 9, "big.py")
    assert testers.main_program(TEXT, old, asked()) == ""
    assert testers.main_program(TEXT, SYMPTOM, None) == ""
    assert testers.main_program(TEXT, SYMPTOM, asked("*fp16,(i32,i32),*fp32,B=64")) == ""


@pytest.mark.parametrize(
    ("when", "stages"),
    [
        (["ttgir contains tt.dot"], ("ttgir",)),
        (["ttgir contains tt.dot", "ptx not contains wgmma"], ("ptx",)),
        (["ttgir contains tt.dot", "spills>0"], ()),
        (["sass contains HMMA"], ()),
        ([], ()),
    ],
)
def test_stages_after_the_symptom_are_left_out(when: list[str], stages: tuple[str, ...]) -> None:
    where = choose_interpreter("", sys.executable)
    subject = KernelSubject(asked(), where, language.parse(when, "--when"), Path())
    assert testers.last_stage(subject) == stages
    operated = replace(subject.request, surgery=Surgery(skip=("cse",)))
    assert testers.last_stage(replace(subject, request=operated)) == ()


def test_a_compiler_that_was_stopped_starts_no_process(tmp_path: Path) -> None:
    """^C stops it while another thread is about to ask it."""
    file = tmp_path / "k.py"
    file.write_text(TEXT)
    compiler = WarmCompiler(choose_interpreter("", sys.executable), tmp_path)
    compiler.close()
    request = replace(asked("*fp32,i32,*fp32,64"), file=file)
    with pytest.raises(FactError, match="was stopped"):
        compiler.compile(request, tmp_path / "out")


def test_a_command_with_the_variables_that_were_set() -> None:
    symptom = Symptom("", "", 9, "big.py", argv=("python", "a b.py"), variables=(("TRITON_INTERPRET", "1"),))
    text = testers.render(TEXT, symptom, None)
    assert "#   TRITON_INTERPRET=1 python 'a b.py'" in text
