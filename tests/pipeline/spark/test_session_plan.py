"""What a new session is given, by what somebody has said already."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.pipeline.spark.session_plan import (
    GENERAL_SETTINGS,
    JAVA_OPTIONS,
    LOCAL_SETTINGS,
    SHUFFLE_PARTITIONS,
    SessionPlan,
    Surroundings,
    is_local,
    parse_defaults,
    plan_session,
)

QUIET = "-Dlog4j2.configurationFile=/cache/log4j2.properties"


def _plan(
    master: str | None = None,
    configs: Mapping[str, str] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    defaults: Mapping[str, str] | None = None,
    core_count: int = 4,
) -> SessionPlan:
    surroundings = Surroundings(
        environment=environment or {},
        defaults=defaults or {},
        interpreter="/venv/python",
        quick_interpreter="/cache/python",
        core_count=core_count,
        log_configuration="/cache/log4j2.properties",
    )
    return plan_session(master, configs or {}, surroundings)


def test_one_who_says_nothing_gets_all_cores_of_this_machine_and_loopback() -> None:
    plan = _plan()
    assert plan.master == "local[*]"
    assert plan.configs == {
        **GENERAL_SETTINGS,
        **LOCAL_SETTINGS,
        SHUFFLE_PARTITIONS: "4",
        JAVA_OPTIONS: f"{QUIET} -Xss16m",
    }
    assert plan.environment == {"PYSPARK_PYTHON": "/cache/python", "SPARK_LOCAL_IP": "127.0.0.1"}


@pytest.mark.parametrize(("core_count", "expected"), [(1, "2"), (2, "2"), (7, "7"), (96, "16")])
def test_a_local_session_shuffles_by_its_cores(core_count: int, expected: str) -> None:
    assert _plan("local[2]", core_count=core_count).configs[SHUFFLE_PARTITIONS] == expected


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "local-cluster[2,1,1024]"])
def test_a_cluster_keeps_its_addresses_and_its_shuffles(master: str) -> None:
    plan = _plan(master)
    assert plan.master == master
    assert not plan.configs.keys() & {*LOCAL_SETTINGS, SHUFFLE_PARTITIONS}
    assert plan.environment == {"PYSPARK_PYTHON": "/venv/python"}


def test_the_master_is_the_argument_else_a_setting_else_a_default() -> None:
    named = {"spark.master": "yarn"}
    assert _plan("local[1]", named, defaults=named).master == "local[1]"
    assert _plan(None, {"spark.master": "local[3]"}, defaults=named).master == "local[3]"
    assert _plan(defaults=named).master == "yarn"
    assert "spark.master" not in _plan(None, named).configs


@pytest.mark.parametrize("name", ["PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE"])
def test_who_submits_or_connects_elsewhere_decides_about_the_master(name: str) -> None:
    plan = _plan(environment={name: "something"})
    assert plan.master is None
    assert not plan.configs.keys() & LOCAL_SETTINGS.keys()


def test_a_java_that_runs_already_is_not_told_what_to_log() -> None:
    assert JAVA_OPTIONS not in _plan(environment={"PYSPARK_GATEWAY_PORT": "1"}).configs
    assert JAVA_OPTIONS in _plan(environment={"PYSPARK_SUBMIT_ARGS": "x"}).configs


def test_options_for_java_are_added_to_and_those_that_are_there_are_kept() -> None:
    own = "-Dlog4j2.configurationFile=mine"
    for option, expected in (
        ("-Dx=y", f"-Dx=y {QUIET} -Xss16m"),
        ("-Xss4m", f"-Xss4m {QUIET}"),
        (own, f"{own} -Xss16m"),
    ):
        assert _plan(None, {JAVA_OPTIONS: option}).configs[JAVA_OPTIONS] == expected
        assert _plan(defaults={JAVA_OPTIONS: option}).configs[JAVA_OPTIONS] == expected
    assert JAVA_OPTIONS not in _plan(defaults={JAVA_OPTIONS: f"{own} -Xss4m"}).configs


def test_variables_that_are_set_stay() -> None:
    environment = {"PYSPARK_PYTHON": "/other/python", "SPARK_LOCAL_IP": "10.0.0.1"}
    assert _plan(environment=environment).environment == {}


names = st.sampled_from(
    [*GENERAL_SETTINGS, *LOCAL_SETTINGS, SHUFFLE_PARTITIONS, "spark.executor.memory"]
)
settings = st.dictionaries(names, st.text(min_size=1, max_size=3))


@given(settings, settings, st.sampled_from([None, "local[2]", "yarn"]))
def test_what_was_said_is_never_replaced(
    configs: dict[str, str], defaults: dict[str, str], master: str | None
) -> None:
    planned = dict(_plan(master, configs, defaults=defaults).configs)
    del planned[JAVA_OPTIONS]
    effective = {**defaults, **planned}
    assert {name: effective[name] for name in configs} == configs
    for name in defaults.keys() - configs.keys():
        assert effective[name] == defaults[name]
    assert planned.keys() <= configs.keys() | {
        *GENERAL_SETTINGS, *LOCAL_SETTINGS, SHUFFLE_PARTITIONS
    }  # fmt: skip


def test_a_local_master_is_one_process() -> None:
    assert all(map(is_local, ["local", "local[*]", "local[4]", "local[2,3]"]))
    assert not any(map(is_local, ["local-cluster[1,1,1024]", "yarn", "spark://localhost:7077"]))


def test_defaults_are_read_as_spark_reads_them() -> None:
    text = (
        "# spark.master yarn\n\n"
        "spark.master            spark://host:7077\n"
        "spark.one=1\n  spark.two : 2\nspark.three\t3 and more  \n"
        "spark.options -Da=b -Dc=d\n"
    )
    assert parse_defaults(text) == {
        "spark.master": "spark://host:7077",
        "spark.one": "1",
        "spark.two": "2",
        "spark.three": "3 and more",
        "spark.options": "-Da=b -Dc=d",
    }
