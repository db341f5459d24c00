"""A consumer's interceptors, and what they must not do."""

from typing import Any

import pytest

from headwater.client.consumer.interceptors import Interceptors
from tests.support.fakes.consumer import record


@pytest.mark.parametrize("returned", [None, 5])
def test_one_that_returns_nothing_costs_no_record(
    returned: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Forgetful:
        def on_consume(self, records: object) -> Any:
            return returned

    records = [record(0, 1)]
    assert Interceptors([Forgetful()]).on_consume(records) == records
    assert f"returned {returned} from on_consume" in caplog.text


def test_one_alone_is_no_list() -> None:
    with pytest.raises(TypeError, match="interceptors cannot be 5: give a list"):
        Interceptors(5)  # type: ignore[arg-type]
