"""The standard error of a mean over samples of fixed members, against repetition."""

import pytest
import torch

from models.prediction.standard_error import standard_error


def test_without_members_it_is_the_deviation_by_the_root_of_the_number() -> None:
    values = torch.randn(20, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(standard_error(values), values.std(0) / 20**0.5)


@pytest.mark.parametrize("counts", [(5, 5, 5), (7, 6, 6)])
def test_differences_between_members_are_no_error(counts: tuple[int, ...]) -> None:
    """4,000 repetitions: the error's square is within 4 % of the truth, about 5 standard errors.

    Members with means 0, 10 and 20 and deviations 1, 2 and 3 give Var = Σ n σ² / S².
    """
    random, repetitions = torch.Generator().manual_seed(1), 4_000
    member = torch.arange(3).repeat_interleave(torch.tensor(counts))
    means, scales = 10.0 * member, 1.0 + member
    noise = torch.randn(repetitions, len(member), generator=random, dtype=torch.float64)
    values = (means + scales * noise).T
    found = standard_error(values, member).square().mean()
    exact = scales.square().sum() / len(member) ** 2
    assert found.item() == pytest.approx(exact.item(), rel=0.04)
    assert found < 0.2 * standard_error(values).square().mean()


def test_members_of_one_sample_count_as_samples() -> None:
    values = torch.randn(4, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    member = torch.tensor([0, 0, 1, 2])
    torch.testing.assert_close(standard_error(values, member), standard_error(values))
