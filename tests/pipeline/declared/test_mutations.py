"""A file that was changed anyhow gives a spec or problems inside of it, and never anything else."""

import random
import tempfile
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.pipeline.declared.fields.tables import FIELD_TABLES
from headwater.pipeline.declared.pipeline_file import load_pipeline
from headwater.pipeline.declared.problems import PipelineFileError
from tests.pipeline.declared.test_pipeline_file import WHOLE
from tests.support.tiers import rounds

FIELDS = sorted({field.name for table in FIELD_TABLES for field in table})
PIECES = st.sampled_from(
    [
        *":{}[]&*!|>'\"%@`,#?-<$\n\t ",
        *("\n  ", ": ", "- ", "${", "${topic}", "null", "5", "&a", "*a", "<<: "),
        *FIELDS,
    ]
)


def check_loads_or_tells(text: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "pipe.yaml"
        path.write_text(text)
        try:
            spec = load_pipeline(path, environment={"SECRET": "x"})
        except PipelineFileError as error:
            assert error.problems
            line_count = text.count("\n") + 1
            for place, sentence in error.problems:
                assert 0 <= place.line <= line_count + 1
                assert sentence.endswith((".", "?")) and "\n" not in sentence
        else:
            assert spec.sinks


@settings(max_examples=rounds(30, 1000), deadline=None)
@given(st.integers(0, len(WHOLE)), st.integers(0, 30), st.lists(PIECES, max_size=3).map("".join))
def test_a_piece_of_the_text_is_replaced(start: int, length: int, piece: str) -> None:
    check_loads_or_tells(WHOLE[:start] + piece + WHOLE[start + length :])


@settings(max_examples=rounds(30, 1000), deadline=None)
@given(st.lists(st.sampled_from(range(len(WHOLE.splitlines()))), min_size=1, max_size=4))
def test_lines_are_left_out_or_doubled(numbers: list[int]) -> None:
    lines = WHOLE.splitlines(keepends=True)
    check_loads_or_tells("".join(line for n, line in enumerate(lines) if n not in numbers))
    check_loads_or_tells(
        "".join(line * 2 if n in numbers else line for n, line in enumerate(lines))
    )


ODD_VALUES = [None, 5, -1, 2.5, True, "", " ", "x", "${topic}", "${", [], [1, [2]], {}, {"a": None}]


@settings(max_examples=rounds(40, 2000), deadline=None)
@given(st.randoms(use_true_random=False))
def test_values_are_replaced(chooser: random.Random) -> None:
    document = yaml.safe_load(WHOLE)
    for _ in range(chooser.randint(1, 3)):
        replace_value(document, chooser)
    check_loads_or_tells(yaml.safe_dump(document, sort_keys=False))


def replace_value(document: object, chooser: random.Random) -> None:
    """Put something odd in the place of a value, at any depth, or under a new key."""
    node = document
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))  # type: ignore[arg-type]
        if not keys:
            return
        key = chooser.choice(keys)
        child = node[key]  # type: ignore[index]
        if isinstance(child, dict | list) and child and chooser.random() < 0.8:
            node = child
            continue
        if isinstance(node, dict) and chooser.random() < 0.3:
            key = chooser.choice(FIELDS)
        # A copy, since it may be chosen as the place for the next one.
        node[key] = deepcopy(chooser.choice(ODD_VALUES))  # type: ignore[index]
        return


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_anywhere_with_anything(field: str) -> None:
    chooser = random.Random(field)
    for value in chooser.sample(ODD_VALUES, rounds(1, len(ODD_VALUES))):
        document = yaml.safe_load(WHOLE)
        for section in (document["sources"]["orders"], document["steps"]["sums"]):
            section[field] = value
        document["sinks"]["out"][field] = value
        document[field] = value
        check_loads_or_tells(yaml.safe_dump(document, sort_keys=False))
