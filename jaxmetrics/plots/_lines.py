"""Lines that pass their colour on to other artists. This module imports matplotlib."""

from __future__ import annotations

from typing import Any

from matplotlib.artist import Artist
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D


class ModelLine(Line2D):
    """A line that stands for a model, or for a part of its marks.

    Attributes:
      tied: the other artists of the model, such as its band. They and their legend entries take
        the colour when it is set, and keep their opacity.
    """

    tied: tuple[Artist, ...] = ()

    def set_color(self, color: Any) -> None:
        super().set_color(color)
        for artist in (self, *self.tied):
            _recolour(artist, color)
            for entry in _legend_entries(artist):
                _recolour(entry, color)


def _recolour(artist: Any, color: Any) -> None:
    if isinstance(artist, Line2D):
        Line2D.set_color(artist, color)  # without artists that are tied to it
        return
    artist.set_edgecolor(_with_opacity_of(artist.get_edgecolor(), color))
    artist.set_facecolor(_with_opacity_of(artist.get_facecolor(), color))


def _with_opacity_of(earlier: Any, color: Any) -> Any:
    """The colour with the opacity of an earlier colour, or of the first of several earlier ones."""
    return to_rgba(color, to_rgba(earlier if isinstance(earlier, tuple) else earlier[0])[3])


def _legend_entries(artist: Artist) -> list[Any]:
    """The entries of the artist in the legend of its axes, which keep its label."""
    legend = None if artist.axes is None else artist.axes.get_legend()
    handles = [] if legend is None else legend.legend_handles
    return [x for x in handles if x is not None and x.get_label() == artist.get_label()]
