from pathlib import Path

import pytest

from headwater.pipeline.compiled.compile_error import PipelineCompileError
from headwater.pipeline.compiled.sinks.table_formats import fetch_sentences, session_configs
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.sink import SinkSpec

DELTA = SinkSpec("table", "orders", delta="/tables/orders", line=12)
ICEBERG = SinkSpec("ice", "orders", iceberg="lake.orders", line=20)


def _spec(*sinks: SinkSpec, spark: dict[str, str] | None = None) -> PipelineSpec:
    return PipelineSpec(
        name="shop",
        bootstrap_servers="b:1",
        sources=(),
        steps=(),
        sinks=sinks,
        state_directory=Path("state"),
        spark=spark or {},
        path=Path("shop.yaml"),
    )


def test_nothing_is_set_where_nothing_is_needed(tmp_path: Path) -> None:
    assert session_configs(_spec(SinkSpec("lake", "orders", lake="lake")), jars=tmp_path) == {}


def test_the_release_for_this_spark_is_fetched(tmp_path: Path) -> None:
    configs = session_configs(
        _spec(DELTA, ICEBERG), spark_version="4.1.3", jars=tmp_path, cache=tmp_path / "cache"
    )
    assert configs["spark.jars.packages"] == (
        "io.delta:delta-spark_4.1_2.13:4.4.0,"
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
    )
    assert configs["spark.sql.extensions"].count(",") == 1
    assert "spark.sql.catalog.spark_catalog" in configs
    assert "central" in Path(configs["spark.jars.ivySettings"]).read_text()


def test_without_a_release_the_sink_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(PipelineCompileError) as refusal:
        session_configs(_spec(DELTA), spark_version="4.3.0", jars=tmp_path)
    assert str(refusal.value).startswith(
        "shop.yaml:12: sink 'table' needs Delta Lake, of which no release for this Spark is known "
        "(io.delta:delta-spark_4.3_2.13); write to a lake table instead"
    )


def test_jars_that_are_given_are_taken(tmp_path: Path) -> None:
    named = {"spark.jars.packages": "io.delta:delta-spark_4.2_2.13:4.4.0"}
    configs = session_configs(_spec(DELTA, spark=named), jars=tmp_path)
    assert "spark.jars.packages" not in configs
    assert "spark.sql.extensions" in configs
    (tmp_path / "delta-spark_4.3_2.13-5.0.0.jar").touch()
    assert "spark.jars.packages" not in session_configs(_spec(DELTA), jars=tmp_path)


def test_what_will_be_fetched_is_told_until_it_is_there(tmp_path: Path) -> None:
    home = tmp_path / "ivy"
    package = "io.delta:delta-spark_4.2_2.13:4.4.0"
    configs = {"spark.jars.packages": f"some:other:1,{package}", "spark.jars.ivy": str(home)}
    assert fetch_sentences(configs) == [f"Fetching Delta Lake ({package}) once, into {home}."]
    (home / "jars").mkdir(parents=True)
    (home / "jars" / "io.delta_delta-spark_4.2_2.13-4.4.0.jar").touch()
    assert fetch_sentences(configs) == []
    assert fetch_sentences({}) == []
