"""Compare an estimator with two of scikit-learn: are its means as good, are its intervals honest?

    python -m examples.diabetes_estimator

442 patients, ten measurements of each, and the progression of the disease after a year. A fifth is
held out. The three models give a mean and a standard deviation per patient, which are scored as
normal densities.
"""

import argparse
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from credence.estimators import BayesianRegressor
from credence.rendering import print_table
from examples.demo_parts.data import diabetes

KERNEL = ConstantKernel() * RBF(length_scale=5.0) + WhiteKernel()


def score(mean: np.ndarray, std: np.ndarray, truth: np.ndarray) -> list[str]:
    """Log likelihood, error, and the fraction of truths inside 90 % intervals."""
    half = norm.ppf(0.95) * std
    inside = np.abs(truth - mean) < half
    return [
        f"{norm.logpdf(truth, mean, std).mean():.3f}",
        f"{np.sqrt(np.mean((truth - mean) ** 2)):.1f}",
        f"{inside.mean():.0%}",
    ]


def main() -> None:
    """Fit each model, and print a line for it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, help="of the network; by default the recipe's")
    epochs = parser.parse_args().epochs
    _, data = diabetes()
    models: dict[str, Any] = {
        "BayesianRegressor": BayesianRegressor(epochs=epochs, pruning=(), random_state=0),
        "BayesianRidge": BayesianRidge(),
        "GaussianProcessRegressor": make_pipeline(
            StandardScaler(), GaussianProcessRegressor(KERNEL, normalize_y=True)
        ),
    }
    lines = []
    for name, model in models.items():
        model.fit(data.train_x, data.train_y)
        mean, std = model.predict(data.test_x, return_std=True)
        lines.append([name, *score(mean, std, data.test_y)])
    print_table(["model", "log likelihood", "rmse", "in 90 % intervals"], lines)


if __name__ == "__main__":
    main()
