"""Draws a picture with the library that the caller wants."""

from importlib import import_module
from typing import Any, Literal

from credence.client.plots.picture import Picture

Backend = Literal["matplotlib", "plotly"]
_MODULES = {
    "matplotlib": "credence.client.plots.with_matplotlib",
    "plotly": "credence.client.plots.with_plotly",
}


def draw(picture: Picture, backend: Backend = "matplotlib", ax: Any = None) -> Any:
    """Matplotlib's axes, or plotly's figure.

    Args:
        ax: axes of matplotlib to draw on; by default those of a new figure.

    Raises:
        ModuleNotFoundError: the library is not installed.
        ValueError: there is no such backend, or `ax` is not for it.
    """
    if backend not in _MODULES:
        raise ValueError(f"backend {backend!r} is neither 'matplotlib' nor 'plotly'")
    if ax is not None and backend != "matplotlib":
        raise ValueError("ax is for matplotlib: leave it out with plotly, which makes a figure")
    try:
        library = import_module(_MODULES[backend])
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != backend:
            raise
        other = next(name for name in _MODULES if name != backend)
        message = f"this picture needs {backend}: pip install {backend}, or give backend={other!r}"
        raise ModuleNotFoundError(message, name=backend) from error
    return library.draw(picture) if ax is None else library.draw(picture, ax)
