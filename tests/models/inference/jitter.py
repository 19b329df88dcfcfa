"""A method that nobody registered: the fit of `map`, and a Gaussian of one width around it.

A whole method in one file: its settings, its state with what is stored of it, and what is done
after the fit. `test_a_new_method` trains, stores, loads, predicts and compares with it.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from models.inference.method import Finished, Fit, Stages, State, check_tensor
from models.inference.point import DrawsState, PointEstimates, repeated
from models.likelihoods import Likelihood
from models.networks import Network


@dataclass(frozen=True, kw_only=True)
class JitterConfig:
    kind: Literal["jitter"] = "jitter"
    prior_sigma: float = 1.0
    width: float = 0.1  # σ of each weight


@dataclass(frozen=True)
class JitterState(State):
    kind = purpose = "jitter"
    estimate: DrawsState
    width: Tensor

    num_weights = num_noise = property(lambda self: self.estimate.num_weights)
    point = property(lambda self: self.estimate.point)

    def draws(self, noise: Tensor) -> DrawsState:
        point = {name: repeated(value[0], len(noise)) for name, value in self.point.items()}
        return DrawsState(self.estimate.weights + self.width * noise, point)

    def parameters(self) -> list[Tensor]:
        return self.estimate.parameters()

    def named(self) -> dict[str, Tensor]:
        return self.estimate.named() | {"width": self.width}

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor], num_weights: int) -> "JitterState":
        return cls(DrawsState.unpack(tensors, num_weights), tensors["width"])

    def check(self, network: Network, likelihood: Likelihood) -> None:
        self.estimate.check(network, likelihood)
        check_tensor("width", self.width, ())


class Jitter(PointEstimates):
    settings, stored = JitterConfig, JitterState

    def finish(self, fit: Fit, stages: Stages) -> Finished:
        return Finished(JitterState(fit.state, torch.tensor(self.config.width)))
