"""Graphs of what imports what: circles, what can be reached, arrows between rooms."""

from __future__ import annotations

from collections.abc import Callable, Mapping

#: Each node, and the nodes to which its arrows lead.
Graph = Mapping[str, set[str]]


def circles(graph: Graph) -> list[list[str]]:
    """The circles of a graph: sets of nodes that reach each other (Tarjan), the largest first."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_nodes: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        numbers[node] = lowest[node] = len(numbers)
        open_nodes.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in numbers:
                visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in open_nodes:
                lowest[node] = min(lowest[node], numbers[other])
        if lowest[node] == numbers[node]:
            place = open_nodes.index(node)
            circle = sorted(open_nodes[place:])
            del open_nodes[place:]
            if len(circle) > 1:
                found.append(circle)

    for node in sorted(graph):
        if node not in numbers:
            visit(node)
    return sorted(found, key=len, reverse=True)


def reachable(graph: Graph, start: str) -> set[str]:
    """All nodes to which arrows lead from a node."""
    found: set[str] = set()
    open_nodes = [start]
    while open_nodes:
        new = set(graph.get(open_nodes.pop(), ())) - found
        found |= new
        open_nodes += new
    return found


def between(graph: Graph, room: Callable[[str], str]) -> dict[str, set[str]]:
    """The arrows between rooms, where `room` names the room of a node."""
    arrows: dict[str, set[str]] = {room(name): set() for name in graph}
    for name, targets in graph.items():
        arrows[room(name)] |= {room(target) for target in targets} - {room(name)}
    return arrows


def reduced(graph: Graph) -> dict[str, set[str]]:
    """The arrows of a graph without circles that do not follow from others."""
    far = {name: {each for to in graph[name] for each in reachable(graph, to)} for name in graph}
    return {name: set(targets) - far[name] for name, targets in graph.items()}
