"""The figure of the benchmarks by size: a panel per metric, a line per library."""

from __future__ import annotations

from typing import Any

Lines = dict[str, list[tuple[int, float]]]


def draw(panels: dict[str, Lines], path: str) -> None:
    """Draw seconds against n on logarithmic scales; ours is the thick line."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 9), layout="constrained")
    axes = figure.subplots(-(-len(panels) // 2), 2).ravel()
    looks = _looks(dict.fromkeys(library for lines in panels.values() for library in lines))
    handles = {}
    for ax, (name, lines) in zip(axes, panels.items(), strict=True):
        for library, points in lines.items():
            if points:
                n, seconds = zip(*points, strict=True)
                (handles[library],) = ax.loglog(n, seconds, **looks[library])
        ax.set(title=name, xlabel="Items", ylabel="Seconds")
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=150)


def _looks(libraries: dict[str, None]) -> dict[str, dict[str, Any]]:
    """Ours share one colour without markers; each rival has its own colour and marker."""
    from jaxmetrics.plots import COLOURS

    ours = [library for library in libraries if library.startswith("ours")]
    others = [library for library in libraries if library not in ours]
    looks: dict[str, dict[str, Any]] = {}
    for i, library in enumerate(ours):
        style = (
            {"linewidth": 4} if i == 0 else {"linewidth": 2, "linestyle": ("--", ":", "-.")[i % 3]}
        )
        looks[library] = {"color": COLOURS[0], "zorder": 3, **style}
    colours, marks = COLOURS[1:], "os^Dv"
    for i, library in enumerate(others):
        mark = {"marker": marks[i % len(marks)], "markersize": 5, "linewidth": 1.2}
        looks[library] = {"color": colours[i % len(colours)], **mark}
    return looks
