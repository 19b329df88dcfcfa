"""The scope that each route needs, in one table. The first matching rule applies.

A rule applies to its path and all paths below it; `*` is any one segment. Routes without a rule
need `admin`. Health and metrics need no key: monitoring must work when keys are lost, and they show
no caller's data. Documentation, scripts and styles need none: they are public in this repository.
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
    (ANY, "/mcp", Scope.PREDICT),  # its tools send requests with the same key
    (READ, "/models/*/versions/*/card", Scope.TRAIN),  # it shows statistics of the rows
    (READ, "/models/*/versions/*/archive", Scope.TRAIN),  # it contains the card
    (READ, "/models/*/expected", Scope.TRAIN),  # it tells of a data set
    (READ, "/models", Scope.PREDICT),
    (WRITE, "/models", Scope.TRAIN),
    (ANY, "/train", Scope.TRAIN),
    (ANY, "/compare", Scope.TRAIN),
    (ANY, "/jobs", Scope.TRAIN),
    (ANY, "/schedules", Scope.TRAIN),
    (ANY, "/datasets", Scope.TRAIN),
    (ANY, "/webhooks", Scope.TRAIN),
    (READ, "/audit", Scope.ADMIN),
    (READ, "/health", None),
    (READ, "/metrics", None),
    (READ, "/docs", None),
    (READ, "/", Scope.PREDICT),  # it redirects a key of this scope to the models
    (READ, "/ui/static", None),
    (READ, "/ui/plotly", None),
    (READ, "/ui/sign-in", None),
    (WRITE, "/ui/session", None),  # it only sets or deletes a cookie
    (READ, "/ui/models/*/versions/*/expected", Scope.TRAIN),  # it tells of a data set
    (READ, "/ui/models", Scope.PREDICT),
    (READ, "/ui/predict", Scope.PREDICT),
    (READ, "/ui/help", Scope.PREDICT),
    (READ, "/ui/search", Scope.PREDICT),  # such a key finds only models
    (READ, "/ui/system", Scope.PREDICT),
    (READ, "/ui", Scope.TRAIN),
    (READ, "/openapi.json", None),
)


def required(method: str, path: str) -> Scope | None:
    """The scope that a request needs; None if it needs no key.

    The patterns of Starlette's routes end in `$`, which also matches before a final newline. Such a
    path reaches the route, so it must match the rule, too.
    """
    segments = path.removesuffix("\n").split("/")
    for methods, prefix, scope in RULES:
        if method in methods and _is_within(segments, prefix.split("/")):
            return scope
    return Scope.ADMIN


def _is_within(segments: list[str], prefix: list[str]) -> bool:
    """Whether the path is the prefix or below it: `/models/x` is, `/models-x` is not.

    `/` matches only itself.
    """
    if prefix[-1] == "":
        return segments == prefix
    return len(segments) >= len(prefix) and all(
        wanted in ("*", found) for wanted, found in zip(prefix, segments, strict=False)
    )
