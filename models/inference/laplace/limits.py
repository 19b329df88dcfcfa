"""The networks that have a Laplace approximation, and how large it may be."""

from collections.abc import Mapping

from models.config import LaplaceConfig
from models.config.taken_out import LAST_RELEASE
from models.exceptions import InvalidData
from models.inference.laplace.layers import Place, split
from models.networks import MLP, Network

MAX_FULL = 3_000  # weights: 72 MB as a matrix of float64, and seconds for its eigenvectors
MAX_SIDE = 4_096  # of a Kronecker factor: 134 MB, and half a minute


def check_size(config: LaplaceConfig, network: Network) -> None:
    """Refuse networks without an approximation, and those whose curvature is too large.

    Raises:
        InvalidData: saying what to take instead.
    """
    if config.over == "all" and config.hessian == "full":
        raise InvalidData(
            f"the full curvature of all layers was taken out after release {LAST_RELEASE}: "
            "take hessian 'kron' or 'diagonal', or over 'last_layer'",
            "/method/hessian",
        )
    for member in split(network):
        if config.over == "all" and not isinstance(member.network, MLP):
            raise InvalidData(
                "a Laplace approximation over all layers is for mlps alone: take over 'last_layer'",
                "/method/over",
            )
        _check(config, member.places(config.over))


def _check(config: LaplaceConfig, places: Mapping[str, Place]) -> None:
    total = sum(place.stop - place.start for place in places.values())  # of one layer if full
    if config.hessian == "full" and total > MAX_FULL:
        raise InvalidData(
            f"the full curvature of {total} weights is too large: at most {MAX_FULL} are allowed; "
            "take hessian 'kron'",
            "/method/hessian",
        )
    side, name = max((max(place.shape), name) for name, place in places.items())
    if config.hessian == "kron" and side > MAX_SIDE:
        raise InvalidData(
            f"layer {name} has {side} inputs or outputs, and a Kronecker factor at most "
            f"{MAX_SIDE}: take hessian 'diagonal'"
            + (", or over 'last_layer'" if config.over == "all" else ""),
            "/method/hessian",
        )
