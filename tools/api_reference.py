"""The reference of APIs: `docs/apis.md`, written from the cards that the broker serves by.

`make docs` writes the page; a test fails when it is out of date. What an API is for is the first
sentence of its handler's module.
"""

from collections.abc import Iterator
from typing import Final

from headwater.broker.access.operations import Access
from headwater.broker.handlers.api_versions import served_versions
from headwater.broker.handlers.cards.all_cards import AREAS, CARDS
from headwater.broker.handlers.cards.api_card import ApiCard
from headwater.wire.api_keys import VersionRange, request_class
from tools.file_map import SOURCE, first_sentence

HEADING: Final = """# APIs

Written by `make docs` from the cards in the source (`broker/handlers/cards`). The versions are
those of Kafka 4; what Kafka 4 no longer speaks (clients older than 0.11 for producing and fetching)
is refused here too.

A version that is not named below is served like the one before it. "Flexible" is the encoding with
compact lengths and tagged fields (KIP-482). What an API needs is what Kafka's authorizer is asked
for. There is no authorizer here so far: everybody may do everything but what is for brokers, see
[security.md](security.md).

## What clients are told

ApiVersions tells clients of these. Produce is announced from version 0, as Kafka does, because
older librdkafka would otherwise not compress; versions 0 to 2 are refused. Kafka does not have the
APIs with keys from 10000 on. Clients that do not know a key pass over it.
"""


def apis_page() -> str:
    """The whole page."""
    sections = [HEADING, _overview()]
    for area, cards in AREAS.items():
        sections.append(f"## {area}\n")
        sections += ["\n".join(_section(card)) for card in cards]
    return "\n".join(sections)


def _overview() -> str:
    lines = ["| API | Key | Versions |", "|---|---|---|"]
    for told in served_versions(CARDS.values()):
        versions = _range(VersionRange(told.min_version, told.max_version))
        lines.append(f"| {_name(told.api_key)} | {int(told.api_key)} | {versions} |")
    return "\n".join(lines) + "\n"


def _section(card: ApiCard) -> Iterator[str]:
    yield f"### {_name(card.api_key)}\n"
    yield f"{_purpose(card)}. Key {int(card.api_key)}, {_versions(card.versions)}.\n"
    needs = f"Needs {'; '.join(map(_shown, card.access)) or 'no access'}."
    yield f"{needs} For brokers only.\n" if card.brokers_only else f"{needs}\n"
    news = [f"- v{version}: {text}" for version, text in _news(card)]
    if news:
        yield "\n".join(news) + "\n"


def _news(card: ApiCard) -> Iterator[tuple[int, str]]:
    for version in range(card.versions.lowest, card.versions.highest + 1):
        news = [card.notes.get(version, "")]
        if version == card.api_key.flexible_since:
            news.insert(0, "flexible")
        if any(news):
            yield version, "; ".join(filter(None, news))


def _purpose(card: ApiCard) -> str:
    path = SOURCE / "broker" / "handlers" / f"{card.api_key.name.lower()}.py"
    _, _, purpose = first_sentence(path).partition(": ")
    return purpose[:1].upper() + purpose[1:]


def _shown(access: Access) -> str:
    when = f" ({access.when})" if access.when else ""
    return f"{access.operation.name} on {access.resource.name}{when}"


def _name(api_key: int) -> str:
    """An API as Kafka writes it: `Produce`, `ListOffsets`."""
    return request_class(api_key).__name__.removesuffix("Request")


def _versions(versions: VersionRange) -> str:
    return f"version{'s' if versions.highest > versions.lowest else ''} {_range(versions)}"


def _range(versions: VersionRange) -> str:
    lowest, highest = versions
    return f"{lowest} to {highest}" if highest > lowest else str(lowest)


if __name__ == "__main__":
    print(apis_page(), end="")
