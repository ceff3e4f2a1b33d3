"""Find circles of files: import contracts see packages only. `make lint` runs it over the kit.

    python tests/import_circles.py kit [FOLDER]     FOLDER: that has the package; default: the current one

An import within a function, or for types alone, counts like any other: a reader follows it, too.
"""

from __future__ import annotations

import sys

import grimp


def circles(package: str) -> list[list[str]]:
    """Return the modules of each circle: the strongly connected parts of the graph of imports (Tarjan, 1972)."""
    graph = grimp.build_graph(package, cache_dir=None)
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_modules: list[str] = []
    known: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        open_modules.append(module)
        for imported in sorted(graph.find_modules_directly_imported_by(module)):
            if imported not in order:
                visit(imported)
            if imported in open_modules:
                lowest[module] = min(lowest[module], lowest[imported])
        if lowest[module] == order[module]:
            at = open_modules.index(module)
            known.append(sorted(open_modules[at:]))
            del open_modules[at:]

    for module in sorted(graph.modules):
        if module not in order:
            visit(module)
    return [circle for circle in known if len(circle) > 1]


def main() -> int:
    """Print each circle; return 1 where there is one."""
    package, *folder = sys.argv[1:]
    sys.path.insert(0, folder[0] if folder else ".")
    listed = circles(package)
    for circle in listed:
        print(f"files that import each other in a circle: {', '.join(circle)}")
    return int(bool(listed))


if __name__ == "__main__":
    sys.exit(main())
