"""Groups of series whose forecasts are summed, as a request names them.

A group is a list of series, or all series with the same value in a column, such as a region. In a
hierarchy that is reconciled, a group with the name of a series is what this series sums up: the
series is then no part of the sum over all.

Reconciliation: forecasts of parts and of their sums that agree, by projecting joint draws.

The nodes of a hierarchy are the bottom series b and sums of them: y = S b with the summing matrix
S. Forecasts ŷ of all nodes rarely agree. With the covariance W of their errors,

    b̃ = (Sᵀ W⁻¹ S)⁻¹ Sᵀ W⁻¹ ŷ,    ỹ = S b̃

has the least total variance of all unbiased and coherent forecasts (MinT: Wickramasuriya,
Athanasopoulos and Hyndman 2019, eq. 9), and with W = I it is the closest coherent point. Applied to
each draw it makes the predictive distribution coherent (Panagiotelis, Gamakumara, Athanasopoulos
and Hyndman 2023, §3). Sums of the bottom draws alone ("bottom up") agree without a projection.

Forecasts of requests take W = diag(Var ŷ) at each step ("variance scaling", §2.4 there): each node
gives way in proportion to its variance. A sum and its parts are forecasts of the same quantity, and
their errors go together: the paths of a sum are put in the order of those of its parts before they
are projected. The projected sum is then no surer than its two forecasts are on average; independent
ones would count the same knowledge twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from models.exceptions import InvalidInput
from models.features.columns import Columns, level_text
from models.features.targets import present
from models.forecasting.totals.sums import Draws as Paths
from models.prediction.options import Totals

PATH = "/totals/groups"
MOST_RECONCILED = 500  # series: each step solves a system with as many unknowns


@dataclass(frozen=True)
class Groups:
    """Sums over series, by the numbers of the series in the request.

    Args:
        names, members: of each group.
        declared: the series that are sums of others, by what they sum up.
    """

    names: tuple[str, ...] = ()
    members: tuple[tuple[int, ...], ...] = ()
    declared: tuple[tuple[int, tuple[int, ...]], ...] = ()

    def bottom(self, count: int) -> list[int]:
        """Those of `count` series that are no sums of others."""
        sums = {series for series, _ in self.declared}
        return [k for k in range(count) if k not in sums]


NO_GROUPS = Groups()


def read_groups(
    totals: Totals, keys: Sequence[str] | None, series: Sequence[Columns], times: np.ndarray
) -> Groups:
    """The groups that a request asks for.

    Args:
        keys: of its series; None if the model has no key.
        series: the columns of each.
        times: of the steps ahead, series after series.

    Raises:
        InvalidInput: a group cannot be formed, or the series have steps ahead at unlike times.
    """
    if not totals.over_series:
        return NO_GROUPS
    _check_times(keys, times)
    if totals.groups is None:
        return NO_GROUPS
    if keys is None:
        raise InvalidInput("this model has no key: it forecasts one series at a time", PATH)
    if isinstance(totals.groups, Mapping):
        return _listed(totals.groups, keys, reconcile=totals.reconcile)
    return _by_columns(totals.groups, keys, series)


def _check_times(keys: Sequence[str] | None, times: np.ndarray) -> None:
    each = times.reshape(len(keys or ("",)), -1)
    apart = (each != each[0]).any(1)
    if keys is not None and apart.any():
        other = int(apart.argmax())
        raise InvalidInput(
            f"the steps ahead of {keys[0]!r} begin at {each[0][0]}, those of {keys[other]!r} at "
            f"{each[other][0]}: sums over series need series that end at the same time",
            "/totals",
        )


def _listed(groups: Mapping[str, Sequence[str]], keys: Sequence[str], *, reconcile: bool) -> Groups:
    at = {key: i for i, key in enumerate(keys)}
    members = {name: _numbers(name, some, at) for name, some in groups.items()}
    found = Groups(tuple(members), tuple(members.values()))
    if not reconcile:
        return found
    declared = {at[name]: some for name, some in members.items() if name in at}
    _check_hierarchy(declared, keys)
    for name, some in members.items():
        if sums := [keys[k] for k in some if k in declared]:
            raise InvalidInput(
                f"{sums[0]!r} is a sum itself: list the series that it sums up", f"{PATH}/{name}"
            )
    return replace(found, declared=tuple(declared.items()))


def _numbers(name: str, members: Sequence[str], at: Mapping[str, int]) -> tuple[int, ...]:
    if absent := [key for key in members if key not in at]:
        raise InvalidInput(f"there is no series {absent[0]!r} in the inputs", f"{PATH}/{name}")
    if len(set(members)) < len(members):
        raise InvalidInput("a series is listed twice", f"{PATH}/{name}")
    return tuple(at[key] for key in members)


def _check_hierarchy(declared: Mapping[int, Sequence[int]], keys: Sequence[str]) -> None:
    path = "/totals/reconcile"
    if not declared:
        raise InvalidInput(
            "no group has the name of a series in the inputs: a series that is the sum of others "
            "needs a group of its name, which lists them",
            path,
        )
    if len(keys) > MOST_RECONCILED:
        raise InvalidInput(f"of at most {MOST_RECONCILED} series, and there are {len(keys)}", path)


def _by_columns(names: Sequence[str], keys: Sequence[str], series: Sequence[Columns]) -> Groups:
    """A group for each value of each column, named as in `region=north`."""
    found: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        for k, columns in enumerate(series):
            value = _value_of(name, keys[k], columns, f"{PATH}/{i}")
            found.setdefault(f"{name}={value}", []).append(k)
    return Groups(tuple(found), tuple(map(tuple, found.values())))


def _value_of(name: str, key: str, columns: Columns, path: str) -> str:
    """The one value of a column of a series, as text."""
    if name not in columns:
        known = ", ".join(columns)
        raise InvalidInput(
            f"the model reads no column {name!r}: it reads {known}. Groups may also be lists of "
            "series by name",
            path,
        )
    values = columns[name]
    if not present(values).all():
        raise InvalidInput(f"the series {key!r} has rows without a {name!r}", path)
    if (other := values != values[0]).any():
        raise InvalidInput(
            f"the series {key!r} has several values of {name!r}, such as {values[0]} and "
            f"{values[int(other.argmax())]}: give a column with one value per series",
            path,
        )
    value = values[0]
    return level_text(value.item() if isinstance(value, np.generic) else value)


Summing = Float64[Tensor, "nodes bottom"]
Covariance = Float64[Tensor, "*steps nodes nodes"]
Projection = Float64[Tensor, "*steps nodes nodes"]

_LEAST = 1e-12  # of the largest variance of a node, so that W can be inverted


def summing_matrix(members: Sequence[Sequence[int]], bottom: int) -> Summing:
    """S: a row for each sum, and below them the identity of the bottom series.

    Args:
        members: the numbers of the bottom series in each sum.
        bottom: how many bottom series there are.

    Raises:
        ValueError: if a sum is empty, or has a number that is no bottom series.
    """
    rows = torch.zeros(len(members), bottom, dtype=torch.float64)
    for row, chosen in zip(rows, members, strict=True):
        if not chosen or not set(chosen) <= set(range(bottom)):
            raise ValueError(f"a sum of the series {list(chosen)}: give some of 0 to {bottom - 1}")
        row[list(chosen)] = 1.0
    return torch.cat([rows, torch.eye(bottom, dtype=torch.float64)])


def projection(summing: Summing, covariance: Covariance | None = None) -> Projection:
    """S (Sᵀ W⁻¹ S)⁻¹ Sᵀ W⁻¹.

    Args:
        covariance: W of the errors, positive definite; None for W = I (ordinary least squares).
    """
    weighted = summing if covariance is None else torch.linalg.solve(covariance, summing)
    return summing @ torch.linalg.solve(weighted.mT @ summing, weighted.mT)


def reconciled(
    paths: Paths, means: Float64[Tensor, "samples series steps"], groups: Groups
) -> tuple[Paths, Float64[Tensor, "samples series steps"]]:
    """Joint paths of series, and means of weight draws, that agree with the declared sums.

    Series that no sum has stay as they are.

    Args:
        paths: joint paths of all series, paths × series × steps.
    """
    bottom = groups.bottom(paths.shape[1])
    order = [*(series for series, _ in groups.declared), *bottom]
    summing = summing_matrix(
        [[bottom.index(k) for k in some] for _, some in groups.declared], len(bottom)
    ).to(paths)
    ordered = _in_order_of_parts(paths, groups)[:, order]
    variances = ordered.var(0, correction=0).T  # steps × nodes
    least = _LEAST * variances.max(1, keepdim=True).values + torch.finfo(torch.float64).tiny
    covariance = torch.diag_embed(variances.maximum(least))
    onto = projection(summing, covariance).mT
    back = torch.tensor(order, device=paths.device).argsort()
    found = [(one.permute(2, 0, 1) @ onto).permute(1, 2, 0) for one in (ordered, means[:, order])]
    return found[0][:, back], found[1][:, back]


def _in_order_of_parts(paths: Paths, groups: Groups) -> Paths:
    """The paths of each declared sum in the order of the sums of its parts over the horizon."""
    found = paths.clone()
    for series, members in groups.declared:
        ranks = paths[:, list(members)].sum((1, 2)).argsort().argsort()
        own = paths[:, series]
        found[:, series] = own[own.sum(1).argsort()[ranks]]
    return found
