"""Pictures by plotly."""

from typing import Any

import plotly.graph_objects as go

from credence.client.pictures import UNLIKE_TRAINING, USUAL
from credence.client.plots.picture import Band, Dots, Line, Mark, Picture, Strips

PIXELS_PER_STRIP = 28


def draw(picture: Picture) -> Any:
    """The figure of the picture."""
    figure = go.Figure([trace for mark in picture.marks for trace in _traces(mark)])
    title, x, y = (text.replace("\n", "<br>") for text in (picture.title, picture.x, picture.y))
    figure.update_layout(title=title, xaxis_title=x, yaxis_title=y, template="plotly_white")
    strips = [mark for mark in picture.marks if isinstance(mark, Strips)]
    if strips:
        names = [name for one in strips for name in one.names]
        figure.update_yaxes(autorange="reversed", categoryorder="array", categoryarray=names)
        figure.update_layout(height=160 + PIXELS_PER_STRIP * sum(len(s.names) for s in strips))
    if picture.x_range is not None:
        figure.update_xaxes(range=picture.x_range)
    if picture.percent:
        figure.update_xaxes(tickformat=".0%")
        figure.update_yaxes(tickformat=".0%")
    return figure


def _traces(mark: Mark) -> list[Any]:
    match mark:
        case Line():
            line = {"color": "gray", "dash": "dash"} if mark.dashed else {"color": USUAL}
            named = {"name": mark.label, "showlegend": bool(mark.label)}
            return [go.Scatter(x=mark.x, y=mark.y, mode="lines", line=line, **named)]
        case Band():
            edge: dict[str, Any] = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
            fill = f"rgba(59, 111, 182, {0.45 if mark.strong else 0.2})"  # USUAL
            lower = go.Scatter(x=mark.x, y=mark.low, showlegend=False, **edge)
            upper = go.Scatter(
                x=mark.x, y=mark.high, name=mark.label, fill="tonexty", fillcolor=fill, **edge
            )
            return [lower, upper]
        case Dots():
            error = None if mark.error is None else {"array": mark.error}
            style = {"color": "black", "size": 6, "opacity": 0.6}
            return [
                go.Scatter(
                    x=mark.x, y=mark.y, name=mark.label, mode="markers", marker=style, error_y=error
                )
            ]
        case Strips():
            return _strips(mark)


def _strips(mark: Strips) -> list[Any]:
    marked = list(mark.marked) or [False] * len(mark.names)
    traces = []
    for is_marked in (False, True):
        places = [i for i, one in enumerate(marked) if one is is_marked]
        if places:
            spans = {
                "symmetric": False,
                "array": [mark.high[i] - mark.middle[i] for i in places],
                "arrayminus": [mark.middle[i] - mark.low[i] for i in places],
                "width": 0,
            }
            traces.append(
                go.Scatter(
                    x=[mark.middle[i] for i in places],
                    y=[mark.names[i] for i in places],
                    name=mark.marked_label if is_marked else mark.label,
                    mode="markers",
                    marker={"color": UNLIKE_TRAINING if is_marked else USUAL},
                    error_x=spans,
                )
            )
    return traces
