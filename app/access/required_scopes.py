"""Which key a route asks for: one table, read from above; what is not in it is for `admin` alone.

A rule holds for its path and all below; `*` is any one segment.

Health and metrics are open, because what watches a service must see it when keys are lost, and
they tell no caller's data; so are the documentation and what pages are made of (scripts, styles),
which say no more than this repository.
"""

from core.access.keys import Scope

READ = ("GET", "HEAD")
WRITE = ("POST", "PUT", "PATCH", "DELETE")
ANY = READ + WRITE

RULES: tuple[tuple[tuple[str, ...], str, Scope | None], ...] = (
    (ANY, "/predict/batch", Scope.TRAIN),
    (ANY, "/predict", Scope.PREDICT),
    (ANY, "/feedback", Scope.PREDICT),
    (("DELETE",), "/predictions", Scope.PREDICT),
    (READ, "/v2/health", None),
    (ANY, "/v2", Scope.PREDICT),
    (READ, "/models/*/versions/*/card", Scope.TRAIN),  # it tells of the rows themselves
    (READ, "/models/*/versions/*/archive", Scope.TRAIN),  # so does what is in it
    (READ, "/models", Scope.PREDICT),
    (WRITE, "/models", Scope.TRAIN),
    (ANY, "/train", Scope.TRAIN),
    (ANY, "/compare", Scope.TRAIN),
    (ANY, "/jobs", Scope.TRAIN),
    (ANY, "/datasets", Scope.TRAIN),
    (READ, "/audit", Scope.ADMIN),
    (READ, "/health", None),
    (READ, "/metrics", None),
    (READ, "/docs", None),
    (READ, "/", Scope.PREDICT),  # from where a key of this scope is led to the models
    (READ, "/ui/static", None),
    (READ, "/ui/plotly", None),
    (READ, "/ui/sign-in", None),
    (WRITE, "/ui/session", None),  # asks for nothing, and gives nothing but a cookie
    (READ, "/ui/models", Scope.PREDICT),
    (READ, "/ui/predict", Scope.PREDICT),
    (READ, "/ui/system", Scope.PREDICT),
    (READ, "/ui", Scope.TRAIN),
    (READ, "/openapi.json", None),
)


def required(method: str, path: str) -> Scope | None:
    """The scope that a request needs; None for what is open to everybody.

    The patterns of Starlette's routes end in `$`, which a line's end may follow: such a path gets
    to the route, and so has to its rule.
    """
    segments = path.removesuffix("\n").split("/")
    for methods, prefix, scope in RULES:
        if method in methods and _is_within(segments, prefix.split("/")):
            return scope
    return Scope.ADMIN


def _is_within(segments: list[str], prefix: list[str]) -> bool:
    """Whether the path is the prefix or below it: `/models/x` is, `/models-x` is not.

    `/` is itself alone, not all that there is.
    """
    if prefix[-1] == "":
        return segments == prefix
    return len(segments) >= len(prefix) and all(
        wanted in ("*", found) for wanted, found in zip(prefix, segments, strict=False)
    )
