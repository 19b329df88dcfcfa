"""What moments as a control variate gain at most, beside evenly spread samples.

    python -m benchmarks.control_variate [--only NAME …]

The expectation of the first hidden layer's units is known in closed form, and what a mean over S
samples misses of it can be subtracted: m̄ − b·(h̄ − E h). With the best b for every row, found by
least squares over 10,000 samples, the variance of the mean falls by the share R² that the units
explain; no estimate of b from a few samples does better. Sobol's points need no b, and all units
are spread evenly: the last columns are its errors with as many samples. Errors of the predicted
mean are in predictive standard deviations × √S; 1 − R² is what a control variate leaves.
"""

import argparse

import numpy as np
import torch
from torch import Tensor

from benchmarks import results
from benchmarks.cheapest import NUMBERS, fit, tables
from models.prediction.fitted import Fitted
from models.prediction.local import Scratch
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel

ROWS, SAMPLES, SEEDS = 20, 10_000, 16
DRAWN = (16, 32, 64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=NUMBERS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lines = []
    for name, (columns, target) in tables(None, list(arguments.only), 1_000):
        model, _ = fit(columns, target, "plain")
        lines.append(measure(name, model, model.encode(columns)[:ROWS]))
        print(lines[-1], flush=True)
    drawn = [f"sobol {samples}" for samples in DRAWN]
    print(results.markdown(["table", "independent", "with control variate", *drawn], lines))


def measure(name: str, model: TabularModel, x: Tensor) -> list[str]:
    """The errors of the mean × √S, as shares of those of independent samples."""
    left = unexplained(model, x)
    truth = model.predict_rows(x, PredictOptions(samples=SAMPLES, sampler="sobol"))
    epistemic = np.sqrt(truth.variance["epistemic"])
    line = [name, "1", results.figure(left**0.5, 2)]
    for samples in DRAWN:
        runs = [
            model.predict_rows(x, PredictOptions(samples=samples, sampler="sobol", seed=seed))
            for seed in range(SEEDS)
        ]
        errors = np.stack([(run.mean - truth.mean) / epistemic for run in runs])
        line.append(results.figure(float(np.sqrt(samples * np.square(errors).mean())), 2))
    return line


@torch.inference_mode()
def unexplained(model: TabularModel, x: Tensor) -> float:
    """1 − R² of the first output's mean on the first hidden layer's units, mean over the rows."""
    fitted = model.fitted(0.0)
    assert isinstance(fitted, Fitted), "one network: --recipe plain"
    (network,), expand = fitted.groups, model.engine.expand
    inputs = network.inputs(x if expand is None else expand(x))
    noise = network.noise(model.engine.noise[network.widths].draw("monte_carlo", 1, 0, SAMPLES))
    first = network.first(inputs)
    mean, variance = first.units
    units = torch.relu(mean + variance.sqrt() * noise[0].unsqueeze(1))
    scratch = Scratch(SAMPLES * len(x), network.max_width, inputs)
    normals = tuple(block.unsqueeze(0) for block in noise)
    given, spread = (part[0].clone() for part in network.outputs(first, normals, scratch))
    drawn = (given + spread.sqrt() * noise[-1].unsqueeze(1))[..., 0].double()
    left = []
    for row in range(len(x)):
        values = drawn[:, row] - drawn[:, row].mean()
        known = units[:, row].double() - units[:, row].double().mean(0)
        fit_ = known @ torch.linalg.lstsq(known, values.unsqueeze(1), driver="gelsd").solution
        residual = values - fit_.squeeze(1)
        left.append(float(residual.square().mean() / values.square().mean()))
    return float(np.mean(left))


if __name__ == "__main__":
    main()
