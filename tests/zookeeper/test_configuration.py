from pathlib import Path

from headwater.zookeeper.configuration import Member, write_configuration


def _lines(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


def test_a_server_that_stands_alone_names_no_others(tmp_path: Path) -> None:
    lines = _lines(write_configuration(tmp_path / "zk", "127.0.0.1", 2181, 1, ()))
    assert (lines["clientPortAddress"], lines["clientPort"]) == ("127.0.0.1", "2181")
    assert lines["dataDir"] == str(tmp_path / "zk" / "data")
    assert not any(name.startswith("server.") for name in lines)
    assert not (tmp_path / "zk" / "data" / "myid").exists()
    # Sessions of a second are possible, and no web server is opened beside the store.
    assert int(lines["minSessionTimeout"]) <= 1_000 <= int(lines["maxSessionTimeout"])
    assert lines["admin.enableServer"] == "false"


def test_a_member_knows_itself_and_all_others(tmp_path: Path) -> None:
    members = [Member(1, "127.0.0.1", 3001, 3002), Member(2, "127.0.0.1", 3003, 3004)]
    lines = _lines(write_configuration(tmp_path, "0.0.0.0", 2182, 2, members))
    assert lines["server.1"] == "127.0.0.1:3001:3002"
    assert lines["server.2"] == "127.0.0.1:3003:3004"
    assert (tmp_path / "data" / "myid").read_text().strip() == "2"
