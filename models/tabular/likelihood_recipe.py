"""The likelihood of a number target, with every default filled in."""

from dataclasses import replace
from typing import get_args

from models.config import LikelihoodConfig, LikelihoodName, SupportConfig
from models.config.model import ShapedKind
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile, Load
from models.features.target_shapes import check_support
from models.features.targets import present

SHAPES: tuple[ShapedKind, ...] = get_args(ShapedKind)
_COMPONENTS = {"gaussian": 1, "mixture": 3, "count": 3}


def number_likelihood(
    given: LikelihoodName | LikelihoodConfig | None,
    support: SupportConfig | None,
    target: ColumnProfile,
) -> LikelihoodName | LikelihoodConfig:
    """A Gaussian by default; a mixture if the target has a given support.

    Raises:
        InvalidData: if likelihood, support and target do not fit together.
    """
    if given in (None, "auto"):
        given = "heteroscedastic" if support is None else "mixture"
    if not isinstance(given, LikelihoodConfig):
        if given not in SHAPES:
            if support is not None:
                raise InvalidData(
                    f"likelihood {given!r} has no bounds: leave the target's bounds out, or take "
                    f"one of {', '.join(SHAPES)}",
                    "/likelihood",
                )
            assert given is not None
            return given
        given = LikelihoodConfig(kind=given)
    components = given.components or _COMPONENTS[given.kind]
    if given.kind == "mixture" and components < 2:
        raise InvalidData(
            "a mixture has 2 to 5 components; for 1 take 'gaussian'", "/likelihood/components"
        )
    lower = None if support is None else support.lower
    if given.scale == "log" and lower is None and (target.min or 0) < 0:
        message = f"the scale log needs a lower bound, as the smallest value is {target.min:g}"
        raise InvalidData(f"{message}: give target.lower", "/likelihood/scale")
    return replace(given, components=components)


def check_given_support(
    support: SupportConfig | None, target: ColumnProfile, load: Load | None
) -> None:
    """Refuse bounds that leave nothing, and targets outside.

    Args:
        load: reads the column, to count its rows outside; without it training refuses them.

    Raises:
        InvalidData: with the bounds, or the number of rows outside.
    """
    if support is None:
        return
    lower, upper = support.lower, support.upper
    if lower is not None and upper is not None and lower >= upper:
        message = f"the bounds {lower:g} and {upper:g} leave no values between them"
        raise InvalidData(message, "/target/upper")
    if load is not None and target.type == "number":
        values = load([target.name])[target.name]
        check_support(values[present(values)], support)
