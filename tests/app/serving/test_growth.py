"""From the times of a few sizes, known here, to the rows that a batch grows to."""

from app.serving.growth import measure, rows_worth_joining


def machine(start: float, per_row: float, at_once: int = 1) -> dict[int, float]:
    """A device that starts in some seconds and computes so many rows at once.

    Returns the sizes that are measured, with their seconds.
    """
    return measure(lambda rows: start + per_row * -(-rows // at_once))


def test_a_device_that_computes_many_rows_at_once_gets_them() -> None:
    """A card that takes as long for 512 rows as for one; then twice as long for twice the rows."""
    curve = machine(0.0, 0.0003, 512)
    assert list(curve) == [1, 8, 64, 512, 4096]
    assert rows_worth_joining(curve) == 512


def test_a_processor_gets_as_many_as_share_its_start() -> None:
    """0.2 ms to start, 50 µs a row: with 8 rows the start is a third of the time."""
    curve = machine(0.0002, 0.00005)
    assert list(curve) == [1, 8, 64], "512 rows may take 27 ms"
    assert rows_worth_joining(curve) == 64


def test_where_rows_do_not_become_cheaper_none_waits_for_another() -> None:
    assert rows_worth_joining(machine(0.0, 0.02)) == 1
    assert rows_worth_joining(machine(0.0, 1e-6)) == 1
