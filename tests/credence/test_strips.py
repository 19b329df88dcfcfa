from credence.strips import CELLS, strips


def test_all_rows_are_drawn_on_the_axis_of_the_usual_ones() -> None:
    axis, (first, second, unlike) = strips(
        [0.0, 11.5, -50.0], [5.0, 17.0, 11.5], [10.0, 23.0, 90.0], [False, False, True]
    )
    assert axis == "0" + " " * (CELLS - 3) + "23"
    assert first == "─" * 5 + "●" + "─" * 5 + " " * 13
    assert second == " " * 12 + "─" * 5 + "●" + "─" * 6
    assert unlike == "‹" + "─" * 11 + "●" + "─" * 10 + "›"


def test_a_row_without_bounds_has_no_strip() -> None:
    assert strips([None, 1.0], [0.5, 1.0], [1.0, 1.0], [False, False]) == (
        "1" + " " * (CELLS - 2) + "1",
        ["", "●" + " " * (CELLS - 1)],
    )
    assert strips([None], [0.0], [1.0], [False]) == ("", [""])
