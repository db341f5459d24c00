"""Every section of a pipeline's file with its fields: validation and the reference use it."""

from __future__ import annotations

from typing import Final

from headwater.pipeline.declared.fields.pipeline import (
    PIPELINE_FIELDS,
    STEP_FIELDS,
    WATERMARK_FIELDS,
)
from headwater.pipeline.declared.fields.sink import SINK_FIELDS
from headwater.pipeline.declared.fields.source import SOURCE_FIELDS

FIELD_TABLES: Final = (
    PIPELINE_FIELDS,
    SOURCE_FIELDS,
    WATERMARK_FIELDS,
    STEP_FIELDS,
    SINK_FIELDS,
)
