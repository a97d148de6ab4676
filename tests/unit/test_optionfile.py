"""Option files as the clients of MySQL and MariaDB read them, and what a login takes from them."""

from __future__ import annotations

import string
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from servers import Server, ServerError

from opsctl.errors import UsageError
from opsctl.optionfile import GROUPS, Login, Option, find_login, read_option_file

#: Every rule once; my_print_defaults of both products prints exactly this (see the last tests).
RULES = r"""
# comment
; comment
[client]
user = alice # mid comment
p1 = "p@ss#w'ord"
p2 = 'a\'b\\c\sd\te\x\n\b\r'
p3 = "a\"b"
p4 = a\"b"c
p5 = 'unterminated
p6 = "a" b
p7 = abc\
p8 = abc\s
p9 =
p10 = ""
p11 = "abc" # c
p12 = a;b
p14 = a#b
p15 = "a # b" c # d
p16 = 'a"b'
p17 = "a'b # c"
p18 = a'b # c' d
p19 = a\#b
p20 = "
p21 = "abc\"
p22 = a=b = c
p23=\t=x
  host_name=x
skip-ssl
loose_foo
port = · 3306 ·
key with space = 3
[mysql]
database=zz
[client]
user=bob
flag # comment
[CLIENT]
user=upper
[client ] after the bracket
user=spaced
[ client]
user=not this
[other]
!include nosuch.cnf
!frobnicate
user=other
""".replace("·", "\t")
MEANING = [
    ("user", "alice"), ("p1", "p@ss#w'ord"), ("p2", "a'b\\c d\te\\x\n\b\r"), ("p3", 'a"b'), ("p4", 'a"b"c'),
    ("p5", "'unterminated"), ("p6", '"a" b'), ("p7", "abc\\"), ("p8", "abc "), ("p9", ""), ("p10", ""), ("p11", "abc"),
    ("p12", "a;b"), ("p14", "a"), ("p15", '"a # b" c'), ("p16", 'a"b'), ("p17", "a'b # c"), ("p18", "a'b # c' d"),
    ("p19", "a\\"), ("p20", '"'), ("p21", "abc\\"), ("p22", "a=b = c"), ("p23", "\t=x"), ("host_name", "x"),
    ("skip-ssl", None), ("loose_foo", None), ("port", "3306"), ("key with space", "3"), ("user", "bob"), ("flag", None),
    ("user", "upper"), ("user", "spaced"),
]  # fmt: skip


def write(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_bytes(text.encode(errors="surrogateescape"))
    path.chmod(mode)
    return str(path)


def pairs(path: str, *groups: str) -> list[tuple[str, str | None]]:
    return [(option.name, option.value) for option in read_option_file(path, groups or ("client",)).options]


def refused(path: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read_option_file(path, ("client",))
    assert caught.value.hint
    assert caught.value.__cause__ is None
    return caught.value


# -- the parser ------------------------------------------------------------------------------------------------------


def test_every_rule(tmp_path: Path) -> None:
    assert pairs(write(tmp_path / "my.cnf", RULES)) == MEANING


def test_ends_of_lines_and_what_is_no_text(tmp_path: Path) -> None:
    raw = b"\xef\xbb\xbf[client]\r\nuser = a\r\npassword = p\xe4\xff\r\nhost = h\x0b\nport=1\0 2\nlast=x\xc3\xa0"
    (tmp_path / "my.cnf").write_bytes(raw)
    found = dict(pairs(str(tmp_path / "my.cnf")))
    assert found.pop("password").encode(errors="surrogateescape") == b"p\xe4\xff"  # type: ignore[union-attr]
    assert found == {"user": "a", "host": "h", "port": "1", "last": "xà"}


def test_an_option_knows_where_it_stands(tmp_path: Path) -> None:
    path = write(tmp_path / "my.cnf", "\n[opsctl]\nuser=a\n")
    (option,) = read_option_file(path, ("opsctl",), label="~/.my.cnf").options
    assert option == Option("user", "a", "opsctl", "~/.my.cnf", 3)
    assert option.origin == "~/.my.cnf [opsctl]"


def test_includes(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    write(tmp_path / "d" / "b.cnf", "[client]\nuser=b\n")
    write(tmp_path / "d" / "a.cnf", "[client]\nuser=a\n")
    write(tmp_path / "d" / "z.ini", "[client]\nuser=ini\n")
    write(tmp_path / "one.cnf", "[client]\nuser=one\n[mysql]\n")
    write(tmp_path / "open.cnf", "[client]\nuser=open\n", 0o666)
    path = write(
        tmp_path / "my.cnf",
        f"!include {tmp_path}/one.cnf\n[client]\nuser=first\n!includedir {tmp_path}/d \n! include {tmp_path}/one.cnf\n"
        f"!include {tmp_path}/nosuch.cnf\n!include {tmp_path}/open.cnf\nuser=last",
    )
    assert [value for _, value in pairs(path)] == ["one", "first", "a", "b", "one", "last"]
    (warning,) = read_option_file(path, ("client",)).warnings
    assert "open.cnf" in warning


def test_a_file_that_includes_itself_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "my.cnf", f"[client]\nuser=a\n!include {tmp_path}/my.cnf\n")
    found = read_option_file(path, ("client",))
    assert len(found.options) == 11
    assert "10 files deep" in found.warnings[0]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("password=S3cret\n[client]\n", 1, "before the first group"),
        ("[client]\nuser=a\n[S3cret\n", 3, "]"),
        ("[client]\n!include\n", 2, "!include"),
        ("[client]\n!includedir  \n", 2, "!includedir"),
        ("[client]\n!includedir /nonexistent/S3\n", 2, "/nonexistent"),
    ],
)
def test_what_the_clients_refuse_is_refused_without_a_quote(tmp_path: Path, text: str, line: int, said: str) -> None:
    error = refused(write(tmp_path / "my.cnf", text))
    assert f"my.cnf line {line}" in error.message
    assert said in error.message
    assert "S3cret" not in error.message + error.hint


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "No such file" in refused(str(tmp_path / "none")).message
    assert "directory" in refused(str(tmp_path)).message
    assert not read_option_file(str(tmp_path / "none"), ("client",), required=False).warnings
    assert "directory" in read_option_file(str(tmp_path), ("client",), required=False).warnings[0]

    path = write(tmp_path / "my.cnf", "[client]\nuser=a\n")

    def denied(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)  # root may read everything
    assert "Permission denied" in refused(path).message
    assert "Permission denied" in read_option_file(path, ("client",), required=False).warnings[0]


@pytest.mark.parametrize(
    ("mode", "read"), [(0o600, True), (0o644, True), (0o664, True), (0o602, False), (0o666, False)]
)
def test_a_file_that_everybody_may_write_is_ignored(tmp_path: Path, mode: int, read: bool) -> None:
    found = read_option_file(write(tmp_path / "my.cnf", "[client]\nuser=a\n", mode), ("client",))
    assert bool(found.options) == read
    assert bool(found.warnings) != read


# -- what a login takes ----------------------------------------------------------------------------------------------


def login(tmp_path: Path, text: str, **environment: str) -> Login:
    write(tmp_path / ".my.cnf", text)
    return find_login({"HOME": str(tmp_path), **environment})


def test_the_groups_that_are_read_and_their_order(tmp_path: Path) -> None:
    text = "".join(f"[{group}]\nuser={group}\n{group}=1\n" for group in reversed((*GROUPS, "mysql", "mysqld")))
    found = login(tmp_path, text)
    assert found.get("user") == "client"  # the last one in the file, whatever the group
    assert {name for name in found.options if name != "user"} == set(GROUPS)
    assert found.options["user"].origin == "~/.my.cnf [client]"


def test_a_named_file_and_group(tmp_path: Path) -> None:
    path = write(tmp_path / "own.cnf", "[client]\nuser=a\nport=1\n[prod]\nuser=p\n")
    write(tmp_path / ".my.cnf", "[client]\nuser=home\n[prod]\nuser=home-prod\n")
    home = {"HOME": str(tmp_path)}
    assert find_login(home, path=path).get("user") == "a"
    assert find_login(home, path=path, group="prod").get("user") == "p"
    assert find_login(home, path=path, group="prod").get("port") is None  # as PyMySQL: that group alone
    assert find_login(home, group="prod").get("user") == "home-prod"
    assert find_login({"MYSQL_GROUP_SUFFIX": "_x"}, path=write(tmp_path / "s", "[client]\nuser=a\n[client_x]\nuser=x")).get("user") == "x"  # fmt: skip
    assert find_login({}) == find_login({"HOME": ""}) == find_login({"HOME": "/nonexistent"}) == Login()
    with pytest.raises(UsageError):
        find_login(home, path=str(tmp_path / "none"))


def test_spellings(tmp_path: Path) -> None:
    found = login(
        tmp_path,
        "[client]\nloose_ssl_ca=/ca\nLoose-SSL-mode=REQUIRED\nskip_ssl\nssl-verify_server_cert\npass=x\n",
    )
    values = {name: option.value for name, option in found.options.items()}
    assert values == {
        "ssl-ca": "/ca", "ssl-mode": "REQUIRED", "ssl": "0", "ssl-verify-server-cert": "1", "password": "x"
    }  # fmt: skip
    for text, value in (
        ("disable-ssl", "0"),
        ("enable-ssl", "1"),
        ("ssl", "1"),
        ("ssl=0", "0"),
        ("loose-skip-ssl", "0"),
    ):
        assert login(tmp_path, f"[client]\n{text}\n").get("ssl") == value


def test_passwords(tmp_path: Path) -> None:
    assert login(tmp_path, "[client]\npassword=a\npassword\n").get("password") is None  # "ask me"
    assert login(tmp_path, "[client]\npassword=a\nskip-password\n").get("password") == ""
    found = login(tmp_path, "[client]\npassword=first\nssl-passphrase=kEy\n[opsctl]\npassword=second\n")
    assert found.get("password") == "second"
    assert found.secrets == {"first", "second", "kEy"}
    assert "second" not in repr(found)


def test_an_option_without_its_value(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"~/.my.cnf line 2: socket has no value"):
        login(tmp_path, "[client]\nsocket\n")


# -- held against the clients ----------------------------------------------------------------------------------------


def printed(server: Server, path: Path, *groups: str) -> bytes:
    try:
        program = server.bin("my_print_defaults")
    except ServerError as error:  # a server that was given comes without its programs
        pytest.skip(str(error))
    show = ["--show"] if server.product == "MySQL" else []
    argv = [*program, f"--defaults-file={path}", *show, *groups]
    return subprocess.run(argv, capture_output=True, check=True, env={"HOME": str(path.parent)}).stdout


def as_printed(path: Path, *groups: str) -> bytes:
    lines = [f"--{name}" if value is None else f"--{name}={value}" for name, value in pairs(str(path), *groups)]
    return "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")


@pytest.mark.servers("mysql", "mariadb")
def test_the_rules_are_the_clients(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "my.cnf"
    write(path, RULES)
    assert as_printed(path, "client", "other") == printed(server, path, "client", "other")
    write(path, RULES.replace("\n", "\r\n"))
    assert as_printed(path, "client", "other") == printed(server, path, "client", "other")
    (tmp_path / "d").mkdir()
    for name in ("b.cnf", "a.cnf", "c.ini", "d.cnf.bak"):
        write(tmp_path / "d" / name, f"[client]\nuser={name}\n[mysql]\n")
    write(path, f"[client]\nuser=1\n!includedir {tmp_path}/d\n! include {tmp_path}/d/c.ini\nuser=2\n!nosuch x\n")
    assert as_printed(path, "client") == printed(server, path, "client")


texts = st.text(st.one_of(st.sampled_from("\"'\\#;=[]! \tnbts"), st.characters(codec="utf-8", exclude_characters="\0\n\r")), max_size=12)  # fmt: skip
#: Bytes that are spaces of Latin-1 at an end are the client's own business (see the module's docstring).
lines = st.builds(lambda name, between, value: f"{name}{between}{value}", st.text(string.ascii_lowercase, min_size=1, max_size=3), st.sampled_from(["=", " = ", " ", ""]), texts)  # fmt: skip


@pytest.mark.servers("mysql", "mariadb")
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=st.lists(lines.filter(lambda line: b"\xa0" not in line.encode()), min_size=40, max_size=60))
@example(found=["a='\\'", 'a="\\"', "a='x\\\\'", "a = '#\\'#' #", "a=\\\\#", "a'=b'#c", 'a="\'"', 'a=\\"#'])
def test_whatever_is_written_means_what_it_means_to_the_clients(
    server: Server, tmp_path: Path, found: list[str]
) -> None:
    path = tmp_path / "my.cnf"
    write(path, "[client]\n" + "".join(f"{line}\n" for line in found))
    assert as_printed(path, "client") == printed(server, path, "client")
