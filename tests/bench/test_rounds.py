from bench.rounds import Comparison, Spread, alternate, percentile


def test_sides_take_turns_at_going_first() -> None:
    turns: list[str] = []

    def side(name: str, rate: float) -> float:
        turns.append(name)
        return rate

    comparison = alternate(lambda: side("ours", 3.0), lambda: side("peer", 4.0), 3)
    assert turns == ["ours", "peer", "peer", "ours", "ours", "peer"]
    assert comparison == Comparison([3.0] * 3, [4.0] * 3)


def test_a_ratio_is_taken_within_each_round() -> None:
    # The machine was ten times slower in the second round, which the ratio must not show.
    comparison = Comparison([8.0, 0.8, 8.0], [10.0, 1.0, 10.0])
    assert comparison.ratio == Spread(0.8, 0.8, 0.8)


def test_a_spread_leaves_out_the_ends() -> None:
    values = [float(value) for value in range(21)]
    assert Spread.of([-1000.0, *values, 1000.0]) == Spread(10.0, 1.0, 19.0)
    assert Spread.of([5.0]) == Spread(5.0, 5.0, 5.0)


def test_percentiles_are_values_of_the_series() -> None:
    values = [30.0, 10.0, 20.0]
    assert [percentile(values, share) for share in (0.0, 0.5, 1.0)] == [10.0, 20.0, 30.0]


def test_scaling_keeps_the_ratio() -> None:
    comparison = Comparison([1.0, 2.0], [2.0, 4.0])
    scaled = comparison.scaled(1000)
    assert scaled.ours == [1000.0, 2000.0]
    assert scaled.ratio == comparison.ratio
