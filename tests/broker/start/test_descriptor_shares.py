"""How the limit of open files is divided."""

import pytest

from headwater.broker.start.descriptor_shares import share_descriptors


@pytest.mark.parametrize("limit", [64, 128, 256, 1024, 4096, 65_536, 1_048_576])
@pytest.mark.parametrize("handles_wanted", [16, 512, 100_000])
def test_all_shares_together_leave_something(limit: int, handles_wanted: int) -> None:
    handles, connections = share_descriptors(limit, handles_wanted)
    assert 16 <= handles <= handles_wanted
    assert connections >= 16
    if limit >= 128:
        assert handles + 2 * connections <= limit - min(160, limit // 3)


def test_with_room_logs_get_what_they_want_and_connections_the_rest() -> None:
    assert share_descriptors(65_536, 512) == (512, 32_432)
    assert share_descriptors(1024, 512) == (288, 288)
