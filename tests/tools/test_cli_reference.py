from pathlib import Path

from headwater.cli.app import SUBCOMMANDS
from tools.cli_reference import cli_page

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_page_is_what_the_commands_say() -> None:
    """`make docs` writes it."""
    assert PAGE.read_text() == cli_page()


def test_every_command_and_its_actions_are_there() -> None:
    page = cli_page()
    for name, entry in SUBCOMMANDS.items():
        assert f"\n## headwater {name}\n" in page
        for action in (*entry.actions, *entry.words):
            assert f"\n### headwater {name} {action}\n" in page


def test_options_have_their_values_and_defaults() -> None:
    page = cli_page()
    assert "| `--partitions`, `-p` `N` | How many partitions. Default: num.partitions. |" in page
    assert "| `--acks`, `--request-required-acks` `all\\|1\\|0` |" in page
    assert "--bootstrap-server HOST" in page and "| `--bootstrap-server`" not in page
