"""Numbers on pages, as people write them."""

from app.ui.format import (
    format_value,
    with_error,
)
from app.ui.scores import clear_best
from models.evaluation.scores import BY_NAME


def test_a_number_is_written_as_people_write_it() -> None:
    written = {
        12_280.4: "12,280",
        -33.592_347: "−33.59",
        0.000_412_34: "0.0004123",
        2.1e-7: "2.1 × 10⁻⁷",
        999.96: "1,000",
        None: "",
    }
    assert {value: format_value(value) for value in written} == written


def test_the_error_decides_the_digits() -> None:
    assert with_error(-4.540_742, 0.103_446) == "−4.54 ± 0.10"
    assert with_error(12_280.4, 1_234.0) == "12,280 ± 1,234"


def test_the_best_is_better_by_more_than_its_error() -> None:
    for values, errors, best in (
        ([-1.0, -1.0004], [0.02, 0.02], None),  # within the error: no value is better
        ([-1.0, -1.3], [0.02, 0.02], -1.0),
        ([-1.0, -1.3, -1.01], [0.02, 0.02, 0.02], None),
        ([-1.0, -1.3], [0.02, None], None),
    ):
        assert clear_best(BY_NAME["log_likelihood"], values, errors) == best
