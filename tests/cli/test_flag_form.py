import pytest

from headwater.cli.flag_form import in_words, with_empty_values

ACTIONS = ("create", "list", "describe", "alter", "delete")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("--create --topic orders", "create --topic orders"),
        ("--topic orders --create --partitions 3", "create --topic orders --partitions 3"),
        ("--bootstrap-server h:1 --list", "list --bootstrap-server h:1"),
        ("create orders", "create orders"),
        ("create --list", "create --list"),
        ("-b h:1 create orders", "create -b h:1 orders"),
        ("--bootstrap-server h:1 describe", "describe --bootstrap-server h:1"),
        ("--bootstrap-server=h:1 describe orders", "describe --bootstrap-server=h:1 orders"),
        ("--describe --help", "describe --help"),
        ("--help", "--help"),
        ("", ""),
        ("--topic orders", "--topic orders"),
        ("-b h:1", "-b h:1"),
        ("--created", "--created"),
        ("-- --create", "-- --create"),
    ],
)
def test_an_action_comes_first(given: str, words: str) -> None:
    assert in_words(given.split(), ACTIONS) == words.split()


def test_without_actions_nothing_changes() -> None:
    assert in_words(["--create", "x"], ()) == ["--create", "x"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("members g", "members g"),
        ("-b h:1 members g", "members -b h:1 g"),
        ("--describe --members", "describe --members"),
        ("--members --describe", "describe --members"),
        ("--members", "--members"),
    ],
)
def test_a_word_that_no_flag_stands_for(given: str, words: str) -> None:
    assert in_words(given.split(), ACTIONS, ("members",)) == words.split()


@pytest.mark.parametrize(
    ("given", "complete"),
    [
        ("list --state", "list --state="),
        ("list --state --type -b h:1", "list --state= --type= -b h:1"),
        ("list --state stable,empty --type", "list --state stable,empty --type="),
        ("list --state=stable", "list --state=stable"),
        ("", ""),
    ],
)
def test_options_that_may_come_without_a_value(given: str, complete: str) -> None:
    assert with_empty_values(given.split(), ("--state", "--type")) == complete.split()
