"""configs/triton-variables.toml against the text of upstream's commits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tritonsmith.core import configs
from tritonsmith.core.text import version_key
from tritonsmith.facts import checkout, variables
from tritonsmith.facts.variables import TritonVariable

from .test_eras import LINES, LINES_IN_ORDER

Tree = Callable[[str], Path]
Names = dict[str, set[str]]  # variable to the places that read it: build, run, script, test

each_line = pytest.mark.parametrize("line", LINES_IN_ORDER)

# Of every program's, or of other software's: Triton reads them too, and they do not begin like its own.
_COMMON = {
    *("HOME", "USERPROFILE", "HOMEPATH", "PATH", "LD_LIBRARY_PATH", "CC", "CXX", "MAKEFLAGS", "CMAKE_ARGS"),
    *("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "HIP_PATH", "ROCM_PATH", "PYTORCH_CUDA_ALLOC_CONF"),
    *("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "NUM_GPUS", "NUM_PROCS", "WARMUP_PROCS"),
}
_SUFFIXES = {".py", ".cc", ".cpp", ".h", ".hpp", ".cmake", ".sh"}
_NOT_TRITON = re.compile(  # its tests and benchmarks, its documentation, and headers of CUDA and ROCm
    r"(^|/)(tests?|unittest|docs|examples|tutorials|bench|regression|\.\w+)/|conftest\.py$"
    r"|third_party/cuda/include/|backend/include/|third_party/proton/scripts/"
)
_TEST_HELPER = re.compile(r"_internal_testing|_test_runner|_compile_warmup|triton_kernels/testing")
_GETTER = (
    r"\b(?:getenv\w*|get_bool_env_var|get(?:Bool|Str|Int)Env|check_env_flag"
    r"|environ\.(?:get|setdefault)|env_\w+)"
)
_READS = tuple(
    map(
        re.compile,
        (
            _GETTER + r"""\(\s*["']([A-Z]\w+)["']""",
            r"""environ\[\s*["'](\w+)["']\s*\](?!\s*=[^=])""",
            r"""["'](\w+)["'] (?:not )?in os\.environ""",
            r"""get_env_with_keys\(\[["'](\w+)["']""",
            r"""\bvariable\s*=\s*["'](\w+)["']""",  # what replaces a download, setup.py
            r"""Package\(.*["'](\w+_SYSPATH)["']""",
            r'pathEnv = "(\w+)"',
            r"\$ENV\{(\w+)\}",
            r"\$\{([A-Z_]+):-",  # shell
            r'\[ -[nz] "\$([A-Z_]+)" \]',
        ),
    )
)
_BODIES = (
    re.compile(r"passthrough_args = \[(.*?)\]", re.DOTALL),
    re.compile(r"getenv\(var\) for var in \((.*?)\)"),
)
_TOOL = re.compile(
    r"""(?:path_to_binary|env_nvidia_tool)\(["']([\w-]+)["']\)|name = "(ptxas-blackwell)" if arch"""
)
_LISTS = re.compile(r"(CACHE_INVALIDATING_|CACHE_NEUTRAL_|\b)ENV_VARS = \{(.*?)\}", re.DOTALL)


def _place(file: str) -> str:
    if file in ("setup.py", "python/setup.py", "python/build_helpers.py"):
        return "build"
    if file.startswith("scripts/"):
        return "script"
    return "test" if _TEST_HELPER.search(file) else "run"


def _names(text: str) -> Iterator[str]:
    for pattern in _READS:
        yield from pattern.findall(text)
    for pattern in _BODIES:
        for body in pattern.findall(text):
            yield from re.findall(r"""["'](\w+)["']""", body)
    for found in _TOOL.findall(text):  # f"TRITON_{binary.upper()}_PATH"
        name = "".join(found).upper()
        yield f"TRITON_{name.replace('-', '_') if '''replace('-', '_')''' in text else name}_PATH"


@cache
def _reads(root: Path) -> Names:
    """What a tree reads, by its text without comments."""
    seen: Names = {}
    for path in sorted(root.rglob("*")):
        file = path.relative_to(root).as_posix()
        wanted = path.suffix in _SUFFIXES or path.name == "CMakeLists.txt"
        if not wanted or _NOT_TRITON.search(file) or not path.is_file():
            continue
        text = re.sub(
            r"^\s*(#|//).*$", "", path.read_text(encoding="utf-8", errors="replace"), flags=re.MULTILINE
        )
        for name in _names(text):
            seen.setdefault(name, set()).add(_place(file))
    return seen


@cache
def _listed(root: Path) -> dict[str, str]:
    """Name to `invalidates` or `neutral`, by the lists that the cache's key is made from."""
    found = {}
    for path in root.glob("include/triton/Tools/Sys/GetEnv.h*"):
        for kind, body in _LISTS.findall(path.read_text(encoding="utf-8")):
            for name in re.findall(r'"(\w+)"', body):
                found[name] = "neutral" if "NEUTRAL" in kind else "invalidates"
    return found


def _row(name: str) -> dict[str, Any]:
    row: dict[str, Any] = configs.load("triton-variables")["variable"][name]
    return row


def _reads_it(row: TritonVariable, line: str) -> bool:
    """What the table says of the commit that stands for a line; the wheels may say something else."""
    lines = _row(row.name).get("seen")
    return line in lines if lines is not None else row.exists(line) and not row.is_inert(line)


@each_line
def test_the_table_has_what_the_tree_reads_and_nothing_else(line: str, tree: Tree) -> None:
    read = set(_reads(tree(LINES[line]))) - _COMMON
    patterns = {name for name in variables.table() if "*" in name}
    table = {name for name, row in variables.table().items() if _reads_it(row, line)} - patterns
    assert sorted(table - read) == []
    assert sorted(read - table) == []


@each_line
def test_no_name_with_the_usual_prefixes_is_overlooked(line: str, tree: Tree) -> None:
    """A cruder look: any quoted word with such a prefix near a reader of the environment."""
    crude = re.compile(
        r"(?:env|environ|Env)\w*\W{1,3}[\"']((?:TRITON|MLIR|LLVM|AMDGCN|NVPTX|DISABLE|PTXAS)_\w+)[\"']",
        re.ASCII,
    )
    root = tree(LINES[line])
    files = [path for path in root.rglob("*") if path.suffix in _SUFFIXES and path.is_file()]
    inside = [path for path in files if not _NOT_TRITON.search(path.relative_to(root).as_posix())]
    found = {
        name for path in inside for name in crude.findall(path.read_text(encoding="utf-8", errors="replace"))
    }
    assert sorted(name for name in found if variables.find(name) is None) == []


@each_line
def test_what_is_inert_is_named_and_not_read(line: str, tree: Tree) -> None:
    root = tree(LINES[line])
    rows = [row for row in variables.table().values() if row.is_inert(line) and "seen" not in _row(row.name)]
    files = [path for path in root.rglob("*") if path.suffix in {*_SUFFIXES, ".txt"} and path.is_file()]
    words = {word for path in files for word in re.findall(r"\w+", path.read_text("utf-8", "replace"))}
    assert [row.name for row in rows if row.name not in words] == []
    assert [row.name for row in rows if row.name in _reads(root)] == []


@each_line
def test_the_cache_column(line: str, tree: Tree) -> None:
    listed = _listed(tree(LINES[line]))
    said = {}
    for row in variables.table().values():
        since = _row(row.name).get("cache-since", row.since)
        if row.cache and variables.covers(line, since, row.until):
            said[row.name] = row.cache
    assert said == listed


@pytest.mark.parametrize("place", ["build", "run", "script", "test"])
def test_who_reads_it(place: str, tree: Tree) -> None:
    """`import` is a moment of `run`; a helper of the tests counts where nothing else reads the variable."""
    places: Names = {}
    for line in LINES_IN_ORDER:
        for name, seen in _reads(tree(LINES[line])).items():
            places.setdefault(name, set()).update(seen)
    derived = {name: seen if seen == {"test"} else seen - {"test"} for name, seen in places.items()}
    table = {
        name: {"run" if at == "import" else at for at in row.at} for name, row in variables.table().items()
    }
    wrong = {name for name in table if name in derived and (place in table[name]) != (place in derived[name])}
    assert wrong == set()


@each_line
def test_flags_that_cpp_reads(line: str, tree: Tree) -> None:
    root = tree(LINES[line])
    calls = re.compile(r'getBoolEnv\(\s*"(\w+)"')
    sources = [path for path in root.rglob("*") if path.suffix in {".cc", ".cpp", ".h", ".hpp"}]
    read = {name for path in sources for name in calls.findall(path.read_text("utf-8", "replace"))}
    flags = {name for name, row in variables.table().items() if row.kind == "flag" and row.by != "c++"}
    assert sorted(read & flags) == []


@each_line
def test_what_sticks(line: str, tree: Tree) -> None:
    """`passthrough_args` of setup.py."""
    root = tree(LINES[line])
    setup = next(path for path in (root / "setup.py", root / "python" / "setup.py") if path.is_file())
    bodies = _BODIES[0].findall(setup.read_text(encoding="utf-8"))
    passed = {name for body in bodies for name in re.findall(r'"(\w+)"', body)}
    rows = configs.load("triton-variables")["sticky"]
    fits = {
        name
        for name, row in rows.items()
        if variables.covers(line, row["since"], variables.table()[name].until)
    }
    assert fits == passed


@each_line
def test_what_is_true(line: str, tree: Tree) -> None:
    """The three parsers, as they stand in the sources."""
    root = tree(LINES[line])
    truth = configs.load("triton-variables")["truth"]
    build = "".join(
        path.read_text(encoding="utf-8")
        for path in (root / "setup.py", root / "python" / "setup.py", root / "python" / "build_helpers.py")
        if path.is_file()
    )
    (setup,) = re.findall(r"def check_env_flag.*?\[(.*?)\]", build, re.DOTALL)
    assert {value.lower() for value in re.findall(r'"(\w+)"', setup)} == set(truth["setup"])
    (header,) = root.glob("include/triton/Tools/Sys/GetEnv.h*")
    body = re.search(r"getBoolEnv.*?\n\}", header.read_text(encoding="utf-8"), re.DOTALL)
    assert body
    assert set(re.findall(r'== "(\w+)"', body[0])) == set(truth["c++"])
    knobs = root / "python" / "triton" / "knobs.py"
    assert knobs.is_file() is variables.covers(line, truth["knobs-since"])
    if not knobs.is_file():
        return
    python = re.search(r"val\.lower\(\) in \((.*?)\)", knobs.read_text(encoding="utf-8"))
    source = (root / "python" / "src" / "ir.cc").read_text(encoding="utf-8")
    is_truthy = re.search(r"bool is_truthy.*?\n\}", source, re.DOTALL)
    if python:
        assert set(re.findall(r'"(\w+)"', python[1])) == set(truth["python"])
    else:
        assert is_truthy
        letters = set(re.findall(r"'(\w)'", is_truthy[0]))
        assert letters | set(re.findall(r'"(\w+)"', is_truthy[0])) == set(truth["python"])


def test_every_source_names_a_commit_a_pull_request_or_a_wheel() -> None:
    commits = {row.commit[:10] for row in checkout.triton_releases()}
    for name in variables.table():
        source = _row(name)["source"]
        assert re.search(r"[0-9a-f]{10}|#\d+|wheel \d\.\d", source), name
        for commit in re.findall(r" at ([0-9a-f]{10})", source):
            assert any(commit.startswith(known) or known.startswith(commit) for known in commits), (
                name,
                source,
            )


@each_line
def test_files_that_sources_name_mention_the_variable(line: str, tree: Tree) -> None:
    root, commit = tree(LINES[line]), checkout.triton_release(line).commit
    for name in variables.table():
        word = "ptxas" if name.endswith(("PTXAS_PATH", "BLACKWELL_PATH")) else name.rstrip("*")
        tool = re.fullmatch(r"TRITON_(NVDISASM|CUOBJDUMP)_PATH", name)
        for file, at in re.findall(r"([\w/.-]+) at ([0-9a-f]{10})", _row(name)["source"]):
            if at.startswith(commit) or commit.startswith(at):
                text = (root / file).read_text(encoding="utf-8")
                assert word in text or (tool and tool[1].lower() in text), (name, file)


def test_foreign_names_are_not_triton_s() -> None:
    owners = configs.load("triton-variables")["foreign"]
    both = [name for name in variables.table() for pattern in owners if fnmatchcase(name, pattern)]
    assert both == []
    assert [name for name in variables.table() if not version_key(_row(name)["since"])] == []
