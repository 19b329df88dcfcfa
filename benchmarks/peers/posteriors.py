"""posteriors as in its documentation: stacked weight draws, and one `vmap` over them."""

import posteriors
import torch
import torchopt
from torch import Tensor, nn

from benchmarks.peers.child import Predict, moments, network, serve

DRAWS = 100  # at a time: 1000 of the large network take 9.6 GB, and the noise as much


def build(widths: list[int]) -> Predict:
    model = network(widths, nn.Linear)
    forward = posteriors.model_to_function(model)
    batched = torch.vmap(forward, in_dims=(0, None))
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    state = posteriors.vi.diag.init(parameters, torchopt.adam(), init_log_sds=-3.0)

    @torch.no_grad()
    def predict(x: Tensor, num_samples: int) -> object:
        outputs = []
        for start in range(0, num_samples, DRAWS):
            draws = torch.Size([min(DRAWS, num_samples - start)])
            outputs.append(batched(posteriors.vi.diag.sample(state, draws), x))
        return moments(torch.cat(outputs))

    return predict


if __name__ == "__main__":
    serve("posteriors", build)
