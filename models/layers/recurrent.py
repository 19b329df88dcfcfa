"""Recurrent layers with a sample axis: all time steps use one weight draw.

With a_t = W x_t + b, computed in one product for all steps, and u_t = U h_{t−1}:

    rnn    h_t = tanh(a + u)
    lstm   i, f, g, o = a + u;  c_t = σ(f) c_{t−1} + σ(i) tanh(g);  h_t = σ(o) tanh(c_t)
    gru    r = σ(a_r + u_r);  z = σ(a_z + u_z);  n = tanh(a_n + r (u_n + d))
           h_t = (1 − z) n + z h_{t−1}

W, U and b hold the gates in the order i f g o and r z n, as in torch.nn.LSTM and torch.nn.GRU.
torch adds two biases; here there is one, because a prior on each would make their sum wider than
all other weights. The GRU's d is multiplied by r and therefore needs its own tensor.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from models.layers.dense import Dense
from models.layers.layer import Layer
from models.posteriors.layout import Weights

State = tuple[Float[Tensor, "*_samples batch _hidden"], ...]
"""(h,), or (h, c) for an LSTM. To truncate the gradient between two calls, detach the tensors."""

Sequences = Float[Tensor, "*_samples batch steps _width"]


@dataclass(frozen=True)
class Cell:
    """One time step (a_t, u_t, state) → state, and the numbers of gates and state tensors."""

    step: Callable[[Tensor, Tensor, State], State]
    gates: int
    states: int


def _rnn(a: Tensor, u: Tensor, state: State) -> State:
    return (torch.tanh(a + u),)


def _lstm(a: Tensor, u: Tensor, state: State) -> State:
    i, f, g, o = (a + u).chunk(4, dim=-1)
    c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru(a: Tensor, u: Tensor, state: State) -> State:
    (a_r, a_z, a_n), (u_r, u_z, u_n) = a.chunk(3, dim=-1), u.chunk(3, dim=-1)
    n = torch.tanh(a_n + (a_r + u_r).sigmoid() * u_n)
    return (torch.lerp(n, state[0], (a_z + u_z).sigmoid()),)


CELLS = {"rnn": Cell(_rnn, 1, 1), "lstm": Cell(_lstm, 4, 2), "gru": Cell(_gru, 3, 1)}


@dataclass(frozen=True)
class Recurrent(Layer):
    """A recurrent layer; the weights of sample s produce sample s of the output."""

    kind: str
    in_features: int
    hidden: int

    @property
    def input(self) -> Dense:
        """W and b, which are applied to the inputs of all steps at once."""
        return Dense(f"{self.name}.input", self.in_features, CELLS[self.kind].gates * self.hidden)

    @property
    def hidden_weight(self) -> str:
        """Name of U."""
        return f"{self.name}.hidden.weight"

    @property
    def hidden_bias(self) -> str:
        """Name of d, which only a GRU has."""
        return f"{self.name}.hidden.bias"

    @property
    def fan_in(self) -> int:
        """Number of inputs of one gate: x and h."""
        return self.in_features + self.hidden

    def shapes(self) -> dict[str, tuple[int, ...]]:
        shapes = self.input.shapes()
        shapes[self.hidden_weight] = (CELLS[self.kind].gates * self.hidden, self.hidden)
        if self.kind == "gru":
            shapes[self.hidden_bias] = (self.hidden,)
        return shapes

    def __call__(
        self, weights: Weights, x: Sequences, state: State | None = None
    ) -> tuple[Sequences, State]:
        """Return the hidden state after every step, and the last state.

        The default initial state is zeros. The sample axis may be on the weights, on `x`, on the
        state or on several of them.
        """
        cell, outputs = CELLS[self.kind], []
        by_step = x.transpose(-3, -2)  # in memory, steps come before rows
        a = self.input(weights, by_step.flatten(-3, -2)).unflatten(-2, by_step.shape[-3:-1])
        state = state or (a.new_zeros(*a[..., 0, :, 0].shape, self.hidden),) * cell.states
        for a_t in a.unbind(-3):
            u = state[0] @ weights[self.hidden_weight].mT
            if self.kind == "gru":  # d is added in the rows of n
                u = u + pad(weights[self.hidden_bias], (2 * self.hidden, 0)).unsqueeze(-2)
            state = cell.step(a_t, u, state)
            outputs.append(state[0])
        return torch.stack(outputs, dim=-3).transpose(-3, -2), state
