"""The ways to an answer, and what each of them costs, in counted operations.

Counted, not measured: a training that is repeated makes the same model. The weights of what is no
product come from `benchmarks/cheapest.py`: the time of a ReLU, of a draw and of a summary beside
that of a product. They decide only between candidates that are exact, and rarely: evenly spread
samples cost more the more there are, and moments less than the samples that they replace.
"""

from collections.abc import Iterator, Sequence

from models.prediction.cheapest.record import Candidate
from models.prediction.engine import Engine, Ready
from models.prediction.weight_draws import FittedDraws

_WORTH = 0.75  # of the default's operations: less of a gain is not worth the measurement
# Numbers for each member of a network, two or more: fewer do not show their own error.
_SAMPLES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
_NODES = (2, 4, 8, 16, 32, 64, 128)
_FEWEST, _FEWEST_NODES = 8, 16  # in all
_UNIT = 60  # operations of a draw and an activation: memory and square roots, no products
_OUTPUT = 8_000  # of the summaries of a sample's output: its quantiles, entropies and moments
_MOMENTS = 4  # the propagation of moments relative to a sample


def candidates(engine: Engine, fitted: Ready) -> list[Candidate]:
    """Those that cost clearly less than `default_operations`, the cheapest first."""
    if isinstance(fitted, FittedDraws):
        return []
    most = _WORTH * default_operations(engine, fitted)
    found = [*_moments(engine, fitted), *_sobol(engine, fitted)]
    return sorted((one for one in found if one.operations < most), key=lambda one: one.operations)


def default_operations(engine: Engine, fitted: Ready, samples: int = 100) -> float:
    """Of so many samples of a row, with their summary."""
    return samples * (pass_operations(fitted) + summary_operations(engine))


def pass_operations(fitted: Ready) -> float:
    """Of one sample of a row through one network."""
    if isinstance(fitted, FittedDraws):
        return fitted.operations
    units = [sum(member.local.widths[:-1]) for member in fitted.members]
    return fitted.operations + _UNIT * sum(units) / len(units)


def summary_operations(engine: Engine) -> float:
    """Of one sample of a row in the summary."""
    return _OUTPUT * engine.likelihood.num_outputs


def _moments(engine: Engine, fitted: Ready) -> Iterator[Candidate]:
    if "moments" not in engine.samplers:
        return
    members = engine.network.layout.members
    propagation = _MOMENTS * members * pass_operations(fitted)
    for nodes in _numbers(_NODES, members, _FEWEST_NODES, len(engine.nodes)):
        yield Candidate("moments", 0, nodes, propagation + nodes * summary_operations(engine))


def _sobol(engine: Engine, fitted: Ready) -> Iterator[Candidate]:
    if "sobol" not in engine.samplers:
        return
    each = pass_operations(fitted) + summary_operations(engine)
    members = engine.network.layout.members
    for samples in _numbers(_SAMPLES, members, _FEWEST, 100):
        yield Candidate("sobol", samples, 0, samples * each)


def _numbers(each: Sequence[int], members: int, fewest: int, most: int) -> Iterator[int]:
    """Numbers for all members together, from `fewest` to `most`."""
    yield from (n * members for n in each if fewest <= n * members <= most)
