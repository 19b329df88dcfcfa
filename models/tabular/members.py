"""The option `members`: a mixture of several networks, by any method."""

from dataclasses import replace
from typing import Any

from models.config import (
    MLPConfig,
    ModelConfig,
    PartConfig,
    Task,
)
from models.exceptions import InvalidData
from models.inference.registry import method_of


def with_members(config: ModelConfig, task: Task) -> ModelConfig:
    """Return the configuration with `members` in the method or in the network.

    Chains and the fits of an ensemble are members by themselves. Other methods fit all members in
    one network with a member axis.

    Raises:
        InvalidData: if the network has other parts already, or no member axis.
    """
    method, network, members = config.method, config.network, config.members
    if members is None:
        return config
    if name := method_of(method).counts_members:
        if members == 1 and method.kind == "ensemble":
            raise InvalidData("an ensemble needs at least 2 members; 1 is 'map'", "/members")
        count: dict[str, Any] = {name: members}
        return replace(config, method=replace(method, **count))
    if members == 1 and not getattr(network, "parts", None):
        return config
    if task == "forecasting" or not isinstance(network, MLPConfig):
        found = "forecasters have" if task == "forecasting" else f"a {network.kind} has"
        raise InvalidData(
            f"{found} no members: use method 'ensemble', or leave members out", "/members"
        )
    if network.parts and (given := sum(part.members for part in network.parts)) != members:
        raise InvalidData(
            f"network.parts have {given} members together, and members is {members}: "
            "leave one of them out",
            "/members",
        )
    parts = network.parts or (PartConfig(members=members, hidden=network.hidden or ()),)
    return replace(config, network=replace(network, parts=parts))
