"""The points of time, log end and high watermark that the audit publishes of a partition."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from headwater.audit.append_times import PUBLISHED_POINTS_MAX, AppendTimes
from headwater.audit.commit_counts import POINTS_STEP_MS, _Commits


def test_what_came_lies_between_two_points_however_quiet_it_was() -> None:
    times = AppendTimes(10)
    times.note(10, 10, 1_000)
    for second in range(2, 60):
        times.note(10, 10, 1_000 * second)
    times.note(12, 10, 60_000)
    times.note(12, 12, 61_000)
    assert times.points_until(12) == [
        [1_000, 10, 10],
        [59_000, 10, 10],
        [60_000, 12, 10],
        [61_000, 12, 12],
    ]


def test_points_end_where_all_of_the_stretch_is_replicated() -> None:
    times = AppendTimes(0)
    for number in range(5):
        times.note(number, number, 1_000 * number)
    assert times.points_until(2)[-1] == [2_000, 2, 2]


def test_the_last_point_in_front_stays_when_a_stretch_is_published() -> None:
    times = AppendTimes(0)
    times.note(0, 0, 1_000)
    times.note(4, 4, 2_000)
    times.drop_before(4)
    times.note(6, 6, 3_000)
    assert times.points_until(6) == [[2_000, 4, 4], [3_000, 6, 6]]


def test_more_points_than_are_published_are_thinned_evenly() -> None:
    times = AppendTimes(0)
    for number in range(600):
        times.note(number, number, 1_000 * number)
    points = times.points_until(599)
    assert len(points) == PUBLISHED_POINTS_MAX
    assert (points[0][0], points[-1][0]) == (0, 599_000)
    gaps = [after[0] - before[0] for before, after in itertools.pairwise(points)]
    assert max(gaps) <= 10_000


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=60))
def test_points_bracket_each_record(steps: list[tuple[int, int]]) -> None:
    times = AppendTimes(0)
    end = watermark = 0
    came: dict[int, int] = {}
    replicated: dict[int, int] = {}
    times.note(0, 0, 0)
    for second, (appended, confirmed) in enumerate(steps, start=1):
        for offset in range(end, end + appended):
            came[offset] = second
        end += appended
        for offset in range(watermark, min(watermark + confirmed, end)):
            replicated[offset] = second
        watermark = min(watermark + confirmed, end)
        times.note(end, watermark, second)
    points = times.points_until(end)
    assert len(points) <= PUBLISHED_POINTS_MAX
    for column, moments in ((1, came), (2, replicated)):
        for offset, moment in moments.items():
            behind = next(point[0] for point in points if point[column] > offset)
            before = [point[0] for point in points if point[column] <= offset]
            assert before[-1] < moment <= behind


def test_commits_of_a_second_are_one_point_unless_they_go_back() -> None:
    commits = _Commits(1, 5_000)
    for time_ms, offset in ((5_000, 1), (5_400, 2), (6_100, 3), (6_200, 1), (6_300, 4)):
        commits.add(offset, time_ms)
    assert commits.points == [(5_400, 2), (6_100, 3), (6_300, 4)]


def test_points_of_commits_are_bounded_and_say_for_how_much_time_they_stand() -> None:
    commits = _Commits(0, 0)
    for number in range(300):
        commits.add(number, 1_000 * number)
    assert len(commits.points) <= 64
    assert commits.points_ms == 8 * POINTS_STEP_MS
    assert commits.points[-1] == (299_000, 299)
    for number in range(300):  # Back and forth within a second: nothing is merged.
        commits.add(number % 2 * 10, 400_000)
    assert len(commits.points) <= 64
