"""What training measured of the samplers of a variant, and which of them answers by default."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval, Len

from models.config.ranges import Flag, Json, NotNegative
from models.prediction.options import Sampler

Counted = Annotated[int, Interval(ge=0, lt=10**6)]


@dataclass(frozen=True)
class Candidate:
    """A way to an answer: so many samples, or so many nodes in the place of samples.

    Args:
        samples: 0 of `moments`.
        nodes: of the quadrature over the outputs, for all members together; 0 of other samplers.
        operations: counted, per row.
    """

    sampler: Sampler
    samples: Counted
    nodes: Counted
    operations: NotNegative


@dataclass(frozen=True)
class MeasuredSampler(Candidate):
    """A candidate with its errors on held-out rows.

    Args:
        errors: by output, the root mean square ÷ that of 100 independent samples.
        exact: whether no output's errors are larger than those of 100 independent samples, neither
            in their root mean square nor in their high quantile.
        bias: by output, a bound on the error that is no noise, as a share of the predictive
            standard deviation (of variances: of its square; of entropies: in nats).
    """

    errors: Annotated[dict[str, NotNegative], Len(0, 100)]
    exact: Flag
    bias: Annotated[dict[str, NotNegative], Len(0, 100)]


@dataclass(frozen=True)
class MeasuredSamplers:
    """The candidates, the cheapest first, measured on so many rows.

    Args:
        default_operations: of 100 samples by the model's first sampler, which are drawn if no
            candidate is exact.
    """

    rows: Counted
    default_operations: NotNegative
    candidates: Annotated[tuple[MeasuredSampler, ...], Len(0, 20)]

    def cheapest(self, *, drawing: bool = False) -> MeasuredSampler | None:
        """The cheapest that is as exact as 100 independent samples; None if none is.

        Args:
            drawing: only samplers that draw samples.
        """
        exact = (
            candidate
            for candidate in self.candidates
            if candidate.exact and (candidate.samples or not drawing)
        )
        return next(exact, None)

    def describe(self) -> Json | None:
        """The cheapest candidate; `cost` is relative to 100 samples. None if none is exact."""
        chosen = self.cheapest()
        if chosen is None:
            return None
        names = ("sampler", "samples", "nodes", "errors", "bias")
        told = {name: getattr(chosen, name) for name in names}
        return told | {"cost": chosen.operations / self.default_operations, "rows": self.rows}

    @property
    def nodes(self) -> int | None:
        """The nodes that `moments` needs; None for as many as without a measurement."""
        return next(
            (
                candidate.nodes
                for candidate in self.candidates
                if candidate.exact and candidate.nodes
            ),
            None,
        )

    def bias_of(self, sampler: str, samples: int) -> Mapping[str, float]:
        """The bias of a measured candidate; empty for others."""
        closed = sampler == "moments"
        for candidate in self.candidates:
            if candidate.sampler == sampler and (
                candidate.nodes == self.nodes if closed else candidate.samples == samples
            ):
                return candidate.bias
        return {}
