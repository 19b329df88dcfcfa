"""Mixed precision: products of bfloat16 numbers, all else in float32, and the same answer."""

import pytest
import torch

from models.config import (
    BBBConfig,
    DropoutConfig,
    EnsembleConfig,
    MethodConfig,
    MLPConfig,
)
from models.features.rows import Rows
from models.fitting.distributed import Part
from models.inference.precision import EXACT, Products
from models.inference.registry import build_method
from models.likelihoods import HeteroscedasticGaussian
from models.networks import MLP
from models.randomness import generator

ROUNDED = Products("cpu", rounded=True)
METHODS: dict[str, MethodConfig] = {
    "local": BBBConfig(estimator="local"),
    "weight": BBBConfig(estimator="weight"),
    "ensemble": EnsembleConfig(kind="ensemble", members=2),
    "dropout": DropoutConfig(kind="mc_dropout"),
}
UNIT = 2.0**-8  # distance of neighbouring bfloat16 numbers around 1


def rows(count: int = 64, width: int = 6) -> Rows:
    x = torch.randn(count, width, generator=generator(0, "x"))
    return Rows(x, x[:, 0] - x[:, 1].square())


@pytest.mark.parametrize("name", METHODS)
def test_products_alone_are_rounded(name: str) -> None:
    """The second term is that of float32 bit for bit; the likelihood moves by a rounding."""
    data, network = rows(), MLP.build(MLPConfig(hidden=(32,)), 6, 2)
    losses = {}
    for products in (EXACT, ROUNDED):
        method = build_method(METHODS[name], network, HeteroscedasticGaussian(), 64, products)
        state = method.init(generator(0, "init"))
        for parameter in state.parameters():
            parameter.requires_grad_()
        losses[products] = method.loss(
            state, data, 1.0, generator(0, "step"), Part.whole(len(data))
        )
        losses[products].nelbo.backward()
        assert all(p.grad.dtype == torch.float32 for p in state.parameters() if p.grad is not None)
    exact, rounded = losses[EXACT], losses[ROUNDED]
    assert rounded.nll.dtype == torch.float32
    assert torch.equal(exact.kl, rounded.kl)
    assert exact.nll.item() != rounded.nll.item(), "the products were not rounded"
    assert rounded.nll.item() == pytest.approx(exact.nll.item(), rel=4 * UNIT, abs=4 * UNIT)


def test_a_product_has_the_error_of_rounded_factors() -> None:
    """Each factor is off by half a unit at most, and so is the sum: 3/2 units of Σ |x w|."""
    random = generator(0, "product")
    x, w = (torch.randn(50, 40, generator=random) for _ in range(2))
    bound = 1.5 * UNIT * (x.abs() @ w.abs().mT)
    error = (ROUNDED(torch.nn.functional.linear, x, w) - x.double() @ w.double().mT).abs()
    assert (error <= bound).all()
    assert error.max() > 1e-4, "float32 products would be exact to 1e-5"
