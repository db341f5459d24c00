"""SetConfigs (private API 10001, version 0): a broker has the controller write settings.

The broker that a client asks knows what a resource's settings are to be: it has merged the change
into what was set, and checked it. The controller writes them if the resource still has the version
that this was made from, and otherwise answers INVALID_UPDATE_VERSION.
"""

from headwater.wire.schema import NEW, Field, Message, Struct, VersionRange

_V0 = (0, 0)


class ConfigEntry(Struct):
    __slots__ = ("name", "value")

    def __init__(self, *, name: str = "", value: str = "") -> None:
        self.name = name
        self.value = value

    FIELDS = (
        Field("name", "string", _V0),
        Field("value", "string", _V0),
    )


class SetConfigsRequest(Message):
    __slots__ = ("entries", "kind", "resource_name", "version")

    def __init__(
        self,
        *,
        kind: int = 0,
        resource_name: str = "",
        version: int = -1,
        entries: list[ConfigEntry] = NEW,
    ) -> None:
        self.kind = kind
        self.resource_name = resource_name
        self.version = version
        self.entries = [] if entries is NEW else entries

    API_KEY = 10_001
    VERSIONS = VersionRange(0, 0)
    FLEXIBLE_SINCE = 0

    FIELDS = (
        Field("kind", "int8", _V0),
        Field("resource_name", "string", _V0),
        Field("version", "int32", _V0),
        Field("entries", ConfigEntry, _V0, array=True),
    )


class SetConfigsResponse(Message):
    __slots__ = ("error_code", "error_message", "version")

    def __init__(
        self, *, error_code: int = 0, error_message: str | None = None, version: int = -1
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.version = version

    API_KEY = 10_001
    VERSIONS = VersionRange(0, 0)
    FLEXIBLE_SINCE = 0

    FIELDS = (
        Field("error_code", "int16", _V0),
        Field("error_message", "string", _V0, nullable=_V0),
        Field("version", "int32", _V0),
    )
