"""Select the statements of a kernel's file to run: the kernel, and those that bind or change its names."""

from __future__ import annotations

import ast


def needed(tree: ast.Module, wanted: str) -> list[ast.stmt] | None:
    """Return the statements of a module that bind or change `wanted` or a name that it needs, in order."""
    facts = [_Statement(node) for node in tree.body]
    data = {name for fact in facts if fact.data for name in fact.binds}
    names: set[str] = {wanted}
    kept: set[int] = set()
    while True:
        more = {
            number
            for number, fact in enumerate(facts)
            if number not in kept and (fact.always or fact.binds & names or fact.changes & names & data)
        }
        if not more:
            break
        kept |= more
        for number in more:
            names |= facts[number].reads
        if names & {"globals", "exec", "eval"}:  # their needs cannot be determined
            return list(tree.body)
    if not any(wanted in facts[number].binds or facts[number].star for number in kept):
        return None
    return [tree.body[number] for number in sorted(kept)]


class _Statement:
    """The names that a statement of a module binds, changes and reads."""

    def __init__(self, node: ast.stmt) -> None:
        self.binds: set[str] = set()
        self.changes: set[str] = set()
        self.reads: set[str] = set()
        self.star = self.always = False
        plain = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
        self.data = not isinstance(node, plain)
        self._look(node)
        if isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign)) and self.reads & {"sys", "os"}:
            self.always = not _ends(node)  # sys.path.insert(...), os.environ[...] = ...
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            self.always = True

    def _look(self, node: ast.AST) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            self._function(node)
            return
        if isinstance(node, ast.ClassDef):
            self.binds.add(node.name)
            inside = _Statement(
                ast.If(ast.Constant(True), [*node.body, *_expressions(node.decorator_list)], [])
            )
            self.reads |= inside.reads
            node = ast.Tuple([*node.bases, *(keyword.value for keyword in node.keywords)], ast.Load())
        elif isinstance(node, ast.Name):
            (self.reads if isinstance(node.ctx, ast.Load) else self.binds).add(node.id)
        elif isinstance(node, ast.alias):
            self.star = self.always = self.always or node.name == "*"
            self.binds.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            self.changes.add(_root(node.func))
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            self.binds.add(_root(node))
        for child in ast.iter_child_nodes(node):
            self._look(child)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        """Add the names of the module that a function reads, without its local names."""
        body = node.body if isinstance(node.body, list) else _expressions([node.body])
        inside = _Statement(ast.If(ast.Constant(True), body, []))
        everywhere = {name for part in ast.walk(node) if isinstance(part, ast.Global) for name in part.names}
        heads = node.args
        own = {arg.arg for arg in [*heads.posonlyargs, *heads.args, *heads.kwonlyargs]}
        own |= {arg.arg for arg in (heads.vararg, heads.kwarg) if arg}
        self.reads |= everywhere | inside.reads - (own | inside.binds)
        outer = [*heads.defaults, *filter(None, heads.kw_defaults), *getattr(node, "decorator_list", [])]
        outer += [
            arg.annotation for arg in [*heads.posonlyargs, *heads.args, *heads.kwonlyargs] if arg.annotation
        ]
        returns = getattr(node, "returns", None)
        outer += [returns] if returns else []
        for part in outer:
            self._look(part)
        if not isinstance(node, ast.Lambda):
            self.binds.add(node.name)


def _ends(node: ast.stmt) -> bool:
    """Report whether a statement only ends the program."""
    call = node.value if isinstance(node, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr in ("exit", "_exit", "abort")


def _expressions(nodes: list[ast.expr]) -> list[ast.stmt]:
    return [ast.Expr(node) for node in nodes]


def _root(node: ast.AST) -> str:
    """Return the first name of an expression: `configs` for `configs.all[0].append`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def candidates(tree: ast.Module) -> list[str]:
    """Return the names of the functions that look like kernels; nested functions cannot be named."""
    found = []
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            waiting = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)] + waiting
        if isinstance(node, ast.FunctionDef):
            words = [ast.dump(decorator) for decorator in node.decorator_list]
            if any(f"'{word}'" in text for text in words for word in ("jit", "autotune", "heuristics")):
                found.append(node.name)
    return found
