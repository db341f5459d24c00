"""The card of an API: all that is known about it without its handler.

Dispatch, ApiVersions and `docs/apis.md` go by it. A card names the versions only where those that
have a schema are not all served. Its notes tell what a version added; what is in `ApiKey` already,
which version is the first flexible one, they do not repeat.

The access is what Kafka's authorizer is asked for. Nobody is asked here yet, but for
`brokers_only`: that the dispatcher refuses to all who have not proven to be brokers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from headwater.broker.access.operations import Access
from headwater.wire.api_keys import ApiKey, VersionRange

#: Stands on a card for all versions that have a schema.
_ALL_VERSIONS: Final = VersionRange(-1, -1)


@dataclass(frozen=True, slots=True)
class ApiCard:
    api_key: ApiKey
    #: Of several a request needs all that apply to it; an API that is open to everybody has none.
    access: tuple[Access, ...] = ()
    #: What a version added, by version.
    notes: Mapping[int, str] = field(default_factory=dict)
    versions: VersionRange = _ALL_VERSIONS
    #: Whether it is for those alone who have proven to be brokers of this cluster.
    brokers_only: bool = False

    def __post_init__(self) -> None:
        if self.versions is _ALL_VERSIONS:
            object.__setattr__(self, "versions", self.api_key.schema_versions)
