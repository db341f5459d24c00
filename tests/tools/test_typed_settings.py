"""The types of clients' settings are those that the tables give."""

from tools.typed_settings import MODULE, typed_settings_module


def test_the_module_is_up_to_date() -> None:
    assert MODULE.read_text() == typed_settings_module(), "run `make docs`"
