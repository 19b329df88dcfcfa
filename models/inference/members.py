"""States of several members: joined from parts that were fitted apart, and cut to some members."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor

from models.inference.bbb import BBBState
from models.inference.point import DrawsState
from models.posteriors.layout import StackedLayout
from models.posteriors.mean_field import MeanFieldNormal

MemberState = TypeVar("MemberState", BBBState, DrawsState)


def concatenate(states: Sequence[MemberState]) -> MemberState:
    """Return the state of a stack whose parts are those of the states' stacks, in this order.

    Raises:
        ValueError: for draws of different numbers, or no states.
    """
    if not states:
        raise ValueError("no states to join: give at least one")
    first = states[0]
    point = {
        name: torch.cat([state.point[name] for state in states], dim=-2) for name in first.point
    }
    if isinstance(first, DrawsState):
        counts = [len(state.weights) for state in states if isinstance(state, DrawsState)]
        if len(set(counts)) > 1:
            raise ValueError(f"the states have {counts} draws: all need the same number")
        weights = torch.cat([state.weights for state in states], dim=1)
        members = sum(state.members for state in states)
        return replace(first, weights=weights, point=point, members=members)
    posteriors = [state.posterior for state in states]
    mask = None
    if any(q.mask is not None for q in posteriors):  # a mask of one of them becomes a mask of all
        masks = [
            torch.ones_like(q.loc, dtype=torch.bool) if q.mask is None else q.mask
            for q in posteriors
        ]
        mask = torch.cat(masks)
    loc, rho = (torch.cat([getattr(q, name) for q in posteriors]) for name in ("loc", "rho"))
    return replace(first, posterior=MeanFieldNormal(loc, rho, mask), point=point)


def select(state: MemberState, layout: StackedLayout, members: Sequence[int]) -> MemberState:
    """Return the state of `Stack.select(members)`.

    Args:
        layout: that of the whole stack.
        members: numbers of the members to keep, ascending.
    """
    point = {name: value[..., list(members), :] for name, value in state.point.items()}
    if isinstance(state, DrawsState):
        weights = _pick(state.weights, layout, members)
        return replace(state, weights=weights, point=point, members=len(members))
    q = state.posterior
    mask = None if q.mask is None else _pick(q.mask, layout, members)
    posterior = MeanFieldNormal(_pick(q.loc, layout, members), _pick(q.rho, layout, members), mask)
    return replace(state, posterior=posterior, point=point)


def split_members(state: BBBState, layout: StackedLayout) -> list[BBBState]:
    """Return the state of each member alone, on the same memory."""
    q = state.posterior
    locs, rhos = (_members(layout, vector) for vector in (q.loc, q.rho))
    masks = [None] * len(locs) if q.mask is None else _members(layout, q.mask)
    posteriors = map(MeanFieldNormal, locs, rhos, masks)
    return [
        BBBState(posterior, {name: value[i, 0] for name, value in state.point.items()})
        for i, posterior in enumerate(posteriors)
    ]


def _pick(vector: Tensor, layout: StackedLayout, members: Sequence[int]) -> Tensor:
    """The weights of some members, one after the other."""
    pieces = _members(layout, vector)
    return torch.cat([pieces[member] for member in members], dim=-1)


def _members(layout: StackedLayout, vector: Tensor) -> list[Tensor]:
    """The weights of each member."""
    return [piece for block in layout.blocks(vector) for piece in block.unbind(-2)]
