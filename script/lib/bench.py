"""`script/bench`: lists the measurements of `bench/` and runs them."""

import ast
import importlib
import sys
from collections.abc import Callable, Sequence

from script.lib.bootstrap import ROOT

HELP = """usage: script/bench [NAME [option]...]

Without a NAME: lists the measurements. With one: runs it on a private instance of the product, and
prints ratios within the one run first, for they mean the same on any machine. Exit 0: within its
bound, 1: not, or not measured. Let nothing else run meanwhile."""


def main(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in {"-h", "--help"}:
        print(HELP + "\n")
        for name, what in measurements().items():
            print(f"  {name:<12} {what}")
        return 0
    name, *rest = arguments
    if name not in measurements():
        print(
            f"script/bench: there is no {name}; there are {', '.join(measurements())}",
            file=sys.stderr,
        )
        return 2
    run: Callable[[Sequence[str]], int] = importlib.import_module(f"bench.{name}").main
    try:
        return run(rest)
    except KeyboardInterrupt:
        return 130


def measurements() -> dict[str, str]:
    """The name of each module of `bench/` that can be run, and the first line of what it says."""
    found = {}
    for path in sorted((ROOT / "bench").glob("*.py")):
        tree = ast.parse(path.read_text())
        if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body):
            found[path.stem] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return found
