"""What can go wrong with a lake table; each is told to people in one sentence."""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError


class LakeError(KafkaError):
    """A lake table cannot do what was asked of it."""

    code = ErrorCode.INVALID_REQUEST


class LakeMissingError(LakeError):
    """There is no table, or no such version of it."""


class LakeDamagedError(LakeError):
    """A manifest cannot be read, or does not fit the one before it."""


class LakeSchemaError(LakeError):
    """Rows do not fit the table's columns."""


class LakeConflictError(LakeError):
    """The table changed meanwhile, so that what was worked out for it holds no more.

    Nothing was written; do the work again on the newest version.
    """


class LakeOverlapError(LakeError):
    """Records of these offsets are in the table already."""
