"""The columns of intervals: `lower_0.9` and `upper_0.9`, of others `conformal_lower_0.9`."""

from collections.abc import Iterable


def interval_columns(
    names: Iterable[str], prefix: str = ""
) -> dict[tuple[str, str], tuple[str, str]]:
    """The columns of both bounds by kind and level, in the order of the table.

    Args:
        prefix: before the names, as `total_` of sums.
    """
    found = {}
    for name in names:
        kind, is_lower, level = name.removeprefix(prefix).partition("lower_")
        is_own = name.startswith(prefix) and kind in ("", "conformal_")
        if is_own and is_lower and not level.endswith("_mc_error"):
            upper = f"{prefix}{kind}upper_{level}"
            found[kind.rstrip("_") or "credible", level] = name, upper
    return found
