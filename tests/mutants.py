"""Puts faults into the Python core, which the tests have to catch: `make mutants-python`.

`python -m tests.mutants [--seed S] [--count N] [--first F]` changes the files where it runs, so it
is run in a clone. For each fault, chosen by the seed, it runs the tests that cover its file, up to
the first failure, and puts the file right again. A test has caught the fault if it fails a second
time, alone, and passes without the fault: on a busy machine tests fail for other reasons too. The
last lines name the faults that no test caught.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: Seconds after which tests are ended; a fault that makes them hang is caught.
LIMIT = 1200

#: What has caught such a fault, which is counted apart: a busy machine may be the reason.
TIME = "the limit of time"

#: Each operator, and what it becomes.
OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
}


@dataclass(frozen=True)
class Fault:
    """A change of one place: the bytes from `start` to `end` become `new`."""

    file: Path
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        place = f"{self.file.relative_to(ROOT)}:{self.line}"
        return f"{place}: {' '.join(self.old.split())[:60]} -> {' '.join(self.new.split())[:60]}"


class Faults(ast.NodeVisitor):
    """Collects what can be changed in a file, besides annotations and what only types need."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.source = file.read_bytes()
        self.found: list[Fault] = []
        self._lines = [0]
        for line in self.source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self.visit(ast.parse(self.source))

    def _add(self, start: tuple[int, int], end: tuple[int, int], new: str) -> None:
        left, right = (self._lines[line - 1] + column for line, column in (start, end))
        old = self.source[left:right].decode()
        self.found.append(Fault(self.file, start[0], left, right, old, new.replace("{}", old)))

    def _change(self, node: ast.expr | ast.stmt, new: str) -> None:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = (node.lineno, node.col_offset)
        self._add(start, (node.end_lineno, node.end_col_offset), new)

    def _operator(self, operator: ast.AST, left: ast.expr, right: ast.expr) -> None:
        if type(operator) not in OPERATORS:
            return
        assert left.end_lineno is not None
        assert left.end_col_offset is not None
        start = (left.end_lineno, left.end_col_offset)
        old, new = OPERATORS[type(operator)]
        between = self.source[
            self._lines[start[0] - 1] + start[1] : self._lines[right.lineno - 1] + right.col_offset
        ].decode()
        # Parentheses and comments may stand there too.
        self._add(start, (right.lineno, right.col_offset), between.replace(old, new, 1))

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, operator in enumerate(node.ops):
            self._operator(operator, [node.left, *node.comparators][place], node.comparators[place])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        # All operators of one node are equal, and one of three cannot be changed alone.
        if len(node.values) == 2:
            self._operator(node.op, *node.values)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._operator(node.op, node.left, node.right)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            return
        self._change(node.test, "not ({})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._change(node, str(not node.value))
        elif isinstance(node.value, int):
            self._change(node, "({} + 1)")

    def visit_Expr(self, node: ast.Expr) -> None:
        # Not the text of documentation.
        if isinstance(node.value, ast.Call | ast.Await):
            self._change(node, "pass")
            self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not isinstance(node.value, ast.Constant):
            self._change(node, "return None")
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for each in node.body:
            self.visit(each)


def faults() -> Iterator[Fault]:
    """Each fault that can be put into the core."""
    for file in sorted((ROOT / "poorhttp").rglob("*.py")):
        if "plugins" not in file.relative_to(ROOT).parts:
            yield from Faults(file).found


def failed(*words: str) -> str:
    """Run tests; return the first that failed, or else the exit code; empty: all passed.

    Raises TimeoutExpired.
    """
    with subprocess.Popen(
        (sys.executable, "-m", "tests", *words),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            said = running.communicate(timeout=LIMIT)[0]
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.M)
    # Without its parameters, which may have spaces, and the group of pytest-xdist.
    name = re.split(r"[\[@]", found[1])[0] if found else f"exit code {running.returncode}"
    return name if running.returncode else ""


@contextmanager
def faulty(fault: Fault) -> Iterator[None]:
    """Have the fault in its file."""
    original = fault.file.read_bytes()
    changed = original[: fault.start] + fault.new.encode() + original[fault.end :]
    ast.parse(changed)
    fault.file.write_bytes(changed)
    try:
        yield
    finally:
        fault.file.write_bytes(original)


def caught_by(fault: Fault) -> str:
    """Return which test of those that cover the file catches the fault; empty: none."""
    covering = ("--changed", str(fault.file.relative_to(ROOT)))
    left_out = ""
    try:
        while True:
            with faulty(fault):
                test = failed(*covering, f"--options=-x -q{left_out}")
                if not test.startswith("tests/"):
                    return test
                fails_again = failed(test)
            if fails_again and not failed(test):
                return test
            if test in left_out:
                raise SystemExit(f"{test} fails without a fault")
            left_out += f" --deselect={test}"
            print(f"{test} fails for another reason, and is left out", flush=True)
    except SyntaxError:
        return "the compiler"
    except subprocess.TimeoutExpired:
        return TIME


def main() -> None:
    """Try the faults of a seed, and print what each came to."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="which faults")
    parser.add_argument("--count", type=int, default=60, help="how many are chosen")
    parser.add_argument("--first", type=int, default=1, help="number of the first that is tried")
    chosen = parser.parse_args()
    tried = random.Random(chosen.seed).sample(list(faults()), chosen.count)
    verdicts: dict[Fault, str] = {}
    for number, fault in enumerate(tried[chosen.first - 1 :], chosen.first):
        by = verdicts[fault] = caught_by(fault)
        outcome = f"{fault} (caught by {by})" if by else f"MISSED {fault}"
        print(f"{number} of {chosen.count} {outcome}", flush=True)
    missed = [fault for fault, by in verdicts.items() if not by]
    late = [*verdicts.values()].count(TIME)
    print(f"{len(verdicts) - len(missed)} of {len(verdicts)} caught, {late} of them by {TIME}")
    print(*missed, sep="\n")


if __name__ == "__main__":
    main()
