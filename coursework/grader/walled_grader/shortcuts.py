"""A question may forbid functions of a library: what it asks for is to be written by the student.

The rule is read from the code that was handed in, not from what it computes. It follows the names
from an answer to whatever in the notebook it uses, as Python resolves them: a local variable is not
the global of its name, an attribute counts on an imported module only, and of two definitions of a
name the later one counts. A program cannot decide such a question for good, so each verdict waits
for a person.

Reading runs nothing, but a hostile program can make it long. So it is done in a process of its own,
which has limits, and which this file is the program of.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import resource
import subprocess
import symtable
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from otter.test_files import GradingResults

SECONDS = 20
MEMORY = 2 * 2**30

#: Of what stands in a function's head, this can be computed for certain.
PLAIN = ast.arguments | ast.arg | ast.Attribute | ast.Subscript | ast.Tuple | ast.Constant
PLAIN_NAMES = {"torch", "int", "float", "bool", "str", "list", "tuple", "dict", "None"}


def apply(
    results: GradingResults,
    answers: Mapping[str, tuple[str, ...]],
    rules: Mapping[str, list[str]],
    cells: list[str],
) -> dict[str, dict[str, Any]]:
    """Take the points of questions whose answers use what they forbid, and say what a person reads.

    Args:
        answers: of each question.
        rules: for each question that has one, the names that it forbids.

    Returns for each question found: the `names` used (none: the code could not be read, and nothing
    was taken), and the `score` that the tests gave.
    """
    if not rules:
        return {}
    from .text import told  # not above, because this file is a program, too

    found = read(cells, {name: (answers[name], forbidden) for name, forbidden in rules.items()})
    verdicts = {}
    for question, names in found.items():
        tests = results.results[question]
        verdicts[question] = {"names": names, "score": round(tests.score, 5)}
        if names:
            sentence = told(f"The answer uses {names[0]}, but the task is to write it yourself.")
            tests.test_case_results = [
                dataclasses.replace(case, passed=False, message=f"❌ Test case failed\n{sentence}")
                for case in tests.test_case_results
            ]
    return verdicts


def read(
    cells: list[str], asked: Mapping[str, tuple[Iterable[str], Iterable[str]]]
) -> dict[str, list[str]]:
    """For each question whose answers use forbidden names, these; where reading failed, none.

    Args:
        asked: for each question its answers, and the names that it forbids.
    """
    job = json.dumps([cells, {question: [*map(list, one)] for question, one in asked.items()}])
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-B", __file__],
            input=job.encode(errors="replace"),
            capture_output=True,
            timeout=10 * SECONDS,
            check=True,
        )
        return json.loads(done.stdout)
    except (subprocess.SubprocessError, ValueError):
        return {question: [] for question in asked}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    cells, asked = json.load(sys.stdin)
    found = {question: used(cells, *one) for question, one in asked.items()}
    json.dump({question: names for question, names in found.items() if names}, sys.stdout)


def used(cells: list[str], answers: Iterable[str], names: Iterable[str]) -> list[str]:
    """The forbidden names that the answers use, themselves or by way of the notebook's names."""
    if __package__:
        from .replay import parse_cell
    else:
        from replay import parse_cell

    trees = []
    for cell in cells:
        try:
            trees.append(parse_cell(cell))
        except (MemoryError, RecursionError):
            raise
        except Exception:
            continue  # it cannot be run as it stands, so it defines nothing
    notebook = _Notebook(set(names))
    for _ in range(2):  # a function may stand before what it uses is imported
        notebook.uses.clear()
        for statement in (statement for tree in trees for statement in tree.body):
            notebook.note(statement)
    return notebook.reached(answers)


class _Notebook:
    """What each global name of a notebook uses: global names, and `.attribute` if it is forbidden.

    A name is looked up when it is called, so its own uses count as they are in the end.
    """

    def __init__(self, forbidden: set[str]) -> None:
        self.forbidden = forbidden
        self.uses: dict[str, set[str]] = {}
        self.imported: set[str] = set()  # names of modules, and of what is taken from them

    def note(self, statement: ast.stmt, sure: bool = True) -> None:
        """Take in a statement; where it may not be executed, what was there before counts, too."""
        match statement:
            case ast.Import() | ast.ImportFrom():
                for bound, there in _imports([statement]):
                    for name in self.forbidden if bound == "*" else (bound,):
                        self.imported.add(name)
                        there = name if bound == "*" else there
                        self.uses[name] = {f".{there}"} if there in self.forbidden else set()
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if sure and _cannot_fail(statement):
                    self.uses[statement.name] = set()
                self.uses.setdefault(statement.name, set()).update(self._uses(statement))
                return
            case ast.For(target=target, iter=value):
                self._assign(ast.Assign([target], value, lineno=1))
            case ast.With(items=items):
                for item in items:
                    to = [item.optional_vars] if item.optional_vars else []
                    self._assign(ast.Assign(to, item.context_expr, lineno=1))
            case ast.If() | ast.While() | ast.Try() | ast.Match():
                pass
            case _:
                self._assign(statement)
        for child in _inner(statement):
            self.note(child, sure=False)

    def _assign(self, statement: ast.stmt) -> None:
        """What happens at once: the uses are those that the names have now."""
        uses = self._uses(statement)
        later = any(isinstance(node, ast.Lambda) for node in ast.walk(statement))
        now = uses if later else set()
        now = now.union(*(self.uses.get(use, {use}) for use in uses))
        targets = _targets(statement)
        for name in targets:
            self.uses.setdefault(name, set()).update(now - {name})
        if isinstance(statement, ast.Assign) and _root(statement.value) in self.imported:
            self.imported |= targets  # functional = torch.nn.functional

    def _uses(self, statement: ast.stmt) -> set[str]:
        names = set(_globals(symtable.symtable(ast.unparse(statement), "cell", "exec")))
        nodes = list(ast.walk(statement))
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        own = dict(_imports(imports))
        attributes = set(own.values())
        modules = own.keys() | names & self.imported
        for node in nodes:
            match node:
                case ast.Attribute(attr=attribute):
                    root = _root(node)
                case ast.Call(
                    func=ast.Name(id="getattr"), args=[of, ast.Constant(value=str(attribute)), *_]
                ):
                    root = _root(of)
                case _:
                    continue
            if root in modules:
                attributes.add(attribute)
        return names | {f".{one}" for one in attributes & self.forbidden}

    def reached(self, answers: Iterable[str]) -> list[str]:
        """The forbidden names that these names come to use."""
        found, seen, waiting = [], set(), list(answers)
        while waiting:
            name = waiting.pop()
            if name.startswith("."):
                found.append(name[1:])
            elif name not in seen:
                seen.add(name)
                waiting += sorted(self.uses.get(name, ()))
        return list(dict.fromkeys(found))


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    """The global names that a program reads, in whatever function."""
    outside = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (outside or symbol.is_global()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _globals(child)


def _imports(statements: Iterable[ast.Import | ast.ImportFrom]) -> Iterator[tuple[str, str]]:
    """What is bound by imports: the name here, and the last part of the name there."""
    for statement in statements:
        for one in statement.names:
            first, *_, last = [*one.name.split("."), one.name.rpartition(".")[2]]
            yield one.asname or first, last if one.asname else first


def _targets(statement: ast.stmt) -> set[str]:
    """The global names that a statement at top level stores in, or in a part of."""
    stored = {
        _root(node)
        for node in ast.walk(statement)
        if isinstance(getattr(node, "ctx", None), ast.Store)
    }
    return {name for name in stored if name}


def _root(value: ast.expr) -> str:
    """The name at the beginning of `name.attribute[0].attribute`, if that is what it is."""
    while isinstance(value, ast.Attribute | ast.Subscript | ast.Starred):
        value = value.value
    return value.id if isinstance(value, ast.Name) else ""


def _inner(block: ast.AST) -> Iterator[ast.stmt]:
    """The statements inside an `if`, a loop, a `try` and the like."""
    for child in ast.iter_child_nodes(block):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.excepthandler | ast.match_case):
            yield from _inner(child)


def _cannot_fail(definition: ast.stmt) -> bool:
    """Whether to define this function always succeeds, so that it takes another one's place."""
    if not isinstance(definition, ast.FunctionDef) or definition.decorator_list:
        return False
    returns = ast.walk(definition.returns) if definition.returns else ()
    return all(
        node.id in PLAIN_NAMES
        if isinstance(node, ast.Name)
        else isinstance(node, PLAIN | ast.expr_context)
        for node in (*ast.walk(definition.args), *returns)
    )


if __name__ == "__main__":
    main()
