"""Plain torch: one deterministic forward pass for any number of samples."""

import torch
from torch import Tensor, nn

from benchmarks.peers.child import Predict, moments, network, serve


def build(widths: list[int]) -> Predict:
    model = network(widths, nn.Linear)

    @torch.inference_mode()
    def predict(x: Tensor, _num_samples: int) -> object:
        return moments(model(x)[None])

    return predict


if __name__ == "__main__":
    serve("torch", build)
