"""An archive of loaded classes, from which Java starts in two thirds of the time.

A Java process spends most of its first second finding, checking and linking classes. Java can keep
the outcome in a file that later processes map (class data sharing). The archive here holds what is
in the jars that a program uses; it is made once, which takes some ten seconds.

It is an optimisation and nothing else: an archive that does not fit, because Java was updated or a
jar was touched, is ignored by Java, and where it cannot be made an empty file says so.
"""

import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path


def class_archive_flags(archive: Path) -> tuple[str, ...]:
    """What makes Java use `archive`, if there is one."""
    if not archive.exists() or archive.stat().st_size == 0:
        return ()
    # Auto: run without it rather than fail. Off: and do not mention that on standard output.
    return (
        f"-XX:SharedArchiveFile={archive}",
        "-Xshare:auto",
        "-Xlog:cds=off",
        "-Xlog:class+path=off",
    )


def make_class_archive(java: str, libs: Path, jars: tuple[str, ...], archive: Path) -> None:
    """Have `java` write `archive` for the jars in `libs`, which must stay where they are.

    It holds the classes of those whose names begin with one of `jars`.
    """
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        class_list = Path(scratch) / "classes"
        class_list.write_text("".join(f"{name}\n" for name in _class_names(java, libs, jars)))
        fresh = Path(scratch) / "archive"
        options = [f"-XX:SharedClassListFile={class_list}", f"-XX:SharedArchiveFile={fresh}"]
        subprocess.run(
            [java, "-Xshare:dump", *options, "-cp", str(libs / "*")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        fresh.touch()
        fresh.rename(archive)


def _class_names(java: str, libs: Path, jars: tuple[str, ...]) -> Iterator[str]:
    """First those that every program uses, which a Java installation lists, then the jars'."""
    default_list = Path(java).resolve().parent.parent / "lib" / "classlist"
    if default_list.exists():
        lines = default_list.read_text().splitlines()
        yield from (line for line in lines if not line.startswith(("#", "@")))
    for jar in sorted(libs.glob("*.jar")):
        if jar.name.startswith(jars):
            with zipfile.ZipFile(jar) as content:
                for name in content.namelist():
                    if name.endswith(".class") and not name.startswith(
                        ("META-INF/", "module-info")
                    ):
                        yield name.removesuffix(".class")
