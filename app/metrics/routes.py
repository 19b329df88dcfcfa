"""The template of a path, such as `/models/{name}`, as a label with few values."""

import re
from collections.abc import Iterable

from fastapi import APIRouter
from fastapi.routing import APIRoute

UNMATCHED = "unmatched"  # paths in requests must not create label values
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RouteTemplates:
    """The templates of all routes of the application.

    Args:
        mounts: paths of folders with files.
    """

    def __init__(self, routers: Iterable[APIRouter], mounts: Iterable[str]) -> None:
        routes = (route for router in routers for route in router.routes)
        self._known: list[tuple[re.Pattern[str], str]] = [
            (route.path_regex, route.path_format) for route in routes if isinstance(route, APIRoute)
        ]
        self._known += [(re.compile(rf"{re.escape(m)}/.+"), f"{m}/{{file}}") for m in mounts]

    def add(self, path: str) -> None:
        """Know a path without parameters that no router has."""
        self._known.append((re.compile(re.escape(path)), path))

    def template(self, path: str) -> str:
        """The template of the first route that takes the path, whatever its method."""
        for pattern, template in self._known:
            if pattern.fullmatch(path):
                return template
        return UNMATCHED


def method_label(method: str) -> str:
    """The method, or `other`."""
    return method if method in METHODS else "other"
