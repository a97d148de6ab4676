"""DSNs in every form of a deployment, and their secrets kept out of every text."""

from __future__ import annotations

import json
import os
import shlex
import ssl
from base64 import b64encode
from pathlib import Path
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from opsctl.errors import UsageError
from opsctl.redaction import mask_urls, secrets_in
from opsctl.target import Target, parse_dsn, redact

NASTY = "p@ss:w/o%r#d?{x}'\"& =+é☃\\"
MYSQL_SCHEMES = ("mysql", "mysql+pymysql", "mysql+asyncmy", "mysql+aiomysql", "mysql+mysqldb", "MySQL")
MARIADB_SCHEMES = ("mariadb", "mariadb+pymysql", "mariadb+asyncmy")
POSTGRESQL_SCHEMES = (
    "postgres", "postgresql", "postgresql+asyncpg", "postgresql+psycopg", "postgresql+psycopg2", "postgres+asyncpg"
)  # fmt: skip

passwords = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=16)
secret_texts = st.text(
    st.one_of(
        st.sampled_from("'\"\\%+ /@:é\n\t☃😀"), st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    ),
    min_size=4,
    max_size=10,
)


def parse(dsn: str) -> Target:
    return parse_dsn(dsn, origin="TEST")


def refused(dsn: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        parse(dsn)
    assert caught.value.hint
    assert "TEST" in caught.value.message
    return caught.value


@pytest.mark.parametrize("scheme", MYSQL_SCHEMES + MARIADB_SCHEMES + POSTGRESQL_SCHEMES)
def test_every_scheme_comes_to_the_driver_of_its_family(scheme: str) -> None:
    target = parse(f"  {scheme}://app:s3cret@db.example:4711/jobs\n")
    postgresql = scheme in POSTGRESQL_SCHEMES
    url = target.url
    assert target.family == ("postgresql" if postgresql else "mysql")
    assert url.drivername == ("postgresql+psycopg" if postgresql else "mysql+pymysql")
    assert (url.username, url.password, url.host, url.port, url.database) == (
        "app", "s3cret", "db.example", 4711, "jobs"
    )  # fmt: skip
    assert str(target) == f"{target.family}://app@db.example:4711/jobs"
    assert any("mariadb" in warning for warning in target.warnings) == (scheme in MARIADB_SCHEMES)


@given(passwords, st.sampled_from(["mysql+asyncmy", "postgresql+asyncpg"]))
@example(NASTY, "mysql")
@example(NASTY, "postgres")
@example("?ssl=true", "mysql")
def test_an_encoded_password_comes_back_whole(password: str, scheme: str) -> None:
    target = parse(f"{scheme}://us%40er:{quote(password, safe='')}@h:1/d?application_name=x")
    assert target.url.password == password
    assert (target.url.username, target.url.host, target.url.database) == ("us@er", "h", "d")
    assert password in target.secrets


@pytest.mark.parametrize("scheme", ["mysql", "postgresql"])
@pytest.mark.parametrize("password", ["a:b", "a/b", "a?b", "a#b", "a b", "a%b", "{a}", "a'b\"", "pÄss"])
def test_a_raw_password_comes_back_whole_where_the_url_allows_it(scheme: str, password: str) -> None:
    url = parse(f"{scheme}://u:{password}@h/d").url
    assert (url.password, url.host, url.database) == (password, "h", "d")


@pytest.mark.parametrize(
    ("rest", "host", "port", "database"),
    [
        ("u:pw@[::1]:3307/d", "::1", 3307, "d"),
        ("u@[2001:db8::7]/d", "2001:db8::7", None, "d"),
        ("u:pw@h/d", "h", None, "d"),
        ("h/d", "h", None, "d"),
        ("u@h", "h", None, None),
        ("/d", None, None, "d"),
    ],
)
@pytest.mark.parametrize("family", ["mysql", "postgresql"])
def test_hosts_ports_and_what_is_left_out(
    family: str, rest: str, host: str | None, port: int | None, database: str | None
) -> None:
    target = parse(f"{family}://{rest}")
    assert (target.url.host, target.url.port, target.url.database or None) == (host, port, database)
    assert "pw" not in str(target)


def test_unix_sockets() -> None:
    mysql = parse("mysql://u:pw@/jobs?unix_socket=/run/mysqld/mysqld.sock")
    assert mysql.connect_args == {"unix_socket": "/run/mysqld/mysqld.sock"}
    assert not mysql.url.query
    assert str(mysql) == "mysql://u@/jobs?unix_socket=/run/mysqld/mysqld.sock"
    postgresql = parse("postgresql:///jobs?host=/run/postgresql&port=5433&user=app")
    assert dict(postgresql.url.query) == {"host": "/run/postgresql", "port": "5433"}
    assert postgresql.connect_args == {"user": "app"}
    assert str(postgresql) == "postgresql://app@/jobs?host=/run/postgresql&port=5433"
    # as libpq's own URLs have it
    encoded = parse("postgresql://u@%2Frun%2Fpostgresql/jobs")
    assert (encoded.url.host, encoded.url.query["host"], encoded.url.database) == ("", "/run/postgresql", "jobs")
    assert parse("mysql://u@%2Frun%2Fmy.sock/jobs").connect_args == {"unix_socket": "/run/my.sock"}


def test_several_hosts_of_libpq_stay_several() -> None:
    target = parse("postgresql+asyncpg://u@/jobs?host=a:1&host=b:2&target_session_attrs=read-write")
    assert target.url.query["host"] == ("a:1", "b:2")
    assert target.connect_args == {"target_session_attrs": "read-write"}


# -- options -------------------------------------------------------------------------


def tls(query: str) -> tuple[bool, bool] | str:
    """Whether the certificate and the host name are checked; or that TLS is off, or as the driver likes."""
    args = parse(f"mysql://u@h/d?{query}").connect_args
    if args.get("ssl_disabled"):
        return "off"
    if not args:
        return "as offered"
    context = args["ssl"]
    assert set(args) == {"ssl"}
    assert isinstance(context, ssl.SSLContext)
    return context.verify_mode is ssl.CERT_REQUIRED, context.check_hostname


@pytest.mark.parametrize(
    ("query", "meaning"),
    [
        ("ssl_mode=DISABLED", "off"),
        ("ssl-mode=disabled", "off"),
        ("sslmode=disable", "off"),
        ("ssl_disabled=1", "off"),
        ("ssl=false", "off"),
        ("ssl_ca={ca}&ssl_mode=DISABLED", "off"),
        ("ssl_mode=PREFERRED", "as offered"),
        ("ssl_disabled=false", "as offered"),
        ("ssl_verify_cert=false", "as offered"),
        ("ssl_mode=REQUIRED", (False, False)),
        ("ssl-mode=required", (False, False)),
        ("sslmode=require", (False, False)),
        ("ssl=true", (False, False)),
        ("tls=1", (False, False)),
        # an option that turns a check off must not turn TLS off
        ("ssl_mode=REQUIRED&ssl_check_hostname=false", (False, False)),
        ("ssl_ca={ca}", (True, False)),
        ("ssl_ca={ca}&ssl_check_hostname=true", (True, True)),
        ("ssl_ca={ca}&ssl_verify_identity=yes", (True, True)),
        ("ssl_ca={ca}&ssl_verify_cert=no", (False, False)),
        ("ssl_mode=VERIFY_CA", (True, False)),
        ("ssl_mode=VERIFY_CA&ssl_ca={ca}", (True, False)),
        # without a CA file PyMySQL by itself would check no name
        ("ssl_mode=VERIFY_IDENTITY", (True, True)),
        ("ssl-mode=verify-identity&ssl-ca={ca}", (True, True)),
        ("ssl_verify_server_cert=true", (True, True)),
        ("ssl_capath=/etc/ssl", (True, False)),
        ("ssl_cipher=HIGH", (False, False)),
    ],
)
def test_tls_options_of_mysql(query: str, meaning: object) -> None:
    ca = ssl.get_default_verify_paths().cafile or ""
    if "{ca}" in query and not ca:
        pytest.fail("this Python has no CA file, which the test needs")
    assert tls(query.format(ca=ca)) == meaning


@pytest.mark.parametrize("option", ["ssl_ca", "ssl_cert", "ssl_key"])
def test_a_tls_file_that_cannot_be_used_is_named(option: str, tmp_path: Path) -> None:
    assert option in refused(f"mysql://u:s3cret@h/d?{option}={tmp_path}/none.pem").message
    (tmp_path / "bad.pem").write_text("no certificate")
    assert option in refused(f"mysql://u:s3cret@h/d?{option}={tmp_path}/bad.pem").message


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("sslmode=verify-full&sslrootcert=/ca.pem", {"sslmode": "verify-full", "sslrootcert": "/ca.pem"}),
        ("ssl=true", {"sslmode": "require"}),
        ("ssl=false", {"sslmode": "disable"}),
        ("ssl=verify-ca", {"sslmode": "verify-ca"}),
        ("application_name=ops&connect_timeout=3", {"application_name": "ops", "connect_timeout": "3"}),
        ("options=-csearch_path%3Djobs", {"options": "-csearch_path=jobs"}),
        ("command_timeout=5&prepared_statement_cache_size=0&server_settings=x", {}),
    ],
)
def test_options_of_postgresql(query: str, expected: dict[str, str]) -> None:
    target = parse(f"postgresql+asyncpg://u@h/d?{query}")
    assert target.connect_args == expected
    assert not target.warnings


@pytest.mark.parametrize("dsn", ["mysql://u:pw@h/d?charset=utf8mb4&autocommit=1", "postgresql://u:pw@h/d?timeout=3"])
def test_options_that_change_nothing_pass_in_silence(dsn: str) -> None:
    target = parse(dsn)
    assert not target.warnings
    assert not target.connect_args


@pytest.mark.parametrize("family", ["mysql", "postgresql"])
def test_an_unknown_option_is_named_without_its_value(family: str) -> None:
    (warning,) = parse(f"{family}://u:pw@h/d?frobnicate=s3cret").warnings
    assert "'frobnicate'" in warning
    assert "s3cret" not in warning


# -- wrong forms ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "dsn",
    [
        "",
        "app:S3cret%2Fx@host/jobs",
        "host=db user=app password=S3cret%2Fx",
        "S3cret%2Fx",
        "app:S3cret%2Fx://rest@host/jobs",  # the password, not a scheme, stands before the ://
        "sqlite:///S3cret%2Fx.db",
        "redis://:S3cret%2Fx@host/0",
        "jdbc:mysql://app:S3cret%2Fx@host/jobs",
        "mysql://app:S3cret%2Fx@host:port/jobs",
        "mysql://app:S3cret%2Fx@host:0/jobs",
        "mysql://app:S3cret%2Fx@host:65536/jobs",
        "postgresql://app:S3cret%2Fx@host:99999999999/jobs",
        "mysql://app:a@S3cret%2Fx@host/jobs",
        "postgresql://app:a@S3cret%2Fx?x@host/jobs",
        "postgresql://app:S3cret%2Fx@[::1/jobs",
        "mysql://app:S3cret%2Fx@host/jobs?ssl_mode=maybe",
        "mysql://app:S3cret%2Fx@host/jobs?ssl_disabled=perhaps",
        "mysql://app@host/jobs?password=S3cret%2Fx",
        "mysql://app@host/jobs?passwd=S3cret%2Fx",
        "mysql://app@host/jobs?ssl_mode=S3cret%2Fx",
        "mysql://app:S3cret%00x@host/jobs",
        "postgresql://app@host/jobs?options=S3cret%00x",
    ],
)
def test_a_wrong_dsn_is_refused_without_its_password(dsn: str) -> None:
    error = refused(dsn)
    for text in (error.message, error.hint, str(error), repr(error)):
        assert "S3cret" not in text.replace("s3cret", "S3cret")
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


@given(passwords, st.sampled_from(["mysql://u:{}@h:x/d", "u:{}@h/d", "mysql://u:a@{}@h/d", "oracle://u:{}@h/d"]))
def test_no_wrong_dsn_shows_its_password(password: str, form: str) -> None:
    password = f"Zz9{password}"  # no word of the message itself
    encoded = quote(password, safe="")
    assume(len(encoded) > 5)
    error = refused(form.format(encoded))
    assert encoded not in error.message + error.hint
    assume(len(password) > 5)
    assert password not in error.message + error.hint


# -- redaction -----------------------------------------------------------------------


def spellings(secret: str) -> dict[str, str]:
    sql = secret.replace("\\", "\\\\").replace("'", "''")
    return {
        "raw": secret,
        "quoted": quote(secret, safe=""),
        "quoted, slash kept": quote(secret),
        "quoted, lower case": "".join(f"%{b:02x}" for b in secret.encode()),
        "quote_plus": quote_plus(secret),
        "query": urlencode({"password": secret}),
        "repr": repr(secret),
        "repr in double quotes": repr("'" + secret),
        "repr in single quotes": repr("'\"" + secret),
        "ascii": ascii(secret),
        "json": json.dumps({"dsn": secret}),
        "json, UTF-8": json.dumps(secret, ensure_ascii=False),
        "sql": f"ALTER USER u IDENTIFIED BY '{secret.replace(chr(39), chr(39) * 2)}'",
        "sql with backslashes": "'" + secret.replace("\\", "\\\\").replace("'", "\\'") + "'",
        "sql in repr": repr(f"\"'{sql}'"),
        "sql in json": json.dumps(f"'{sql}'"),
        "shell": shlex.quote(secret),
        "base64": b64encode(secret.encode()).decode().rstrip("="),
    }


@given(secret_texts)
@example(NASTY)
@example('it\'s "q"')
@example("\\\\''\"\"")
@example("a b+c%20d")
def test_no_spelling_of_a_secret_survives(secret: str) -> None:
    assume("*" not in secret)
    for name, spelling in spellings(secret).items():
        cleaned = redact(f"login of <{spelling}> failed", {secret, "another"})
        assert "***" in cleaned, name
        for trace in (secret, quote(secret, safe=""), quote(secret), quote_plus(secret), spelling):
            assert trace not in cleaned, name


@pytest.mark.parametrize("form", [quote, quote_plus, str])
def test_a_secret_known_only_in_its_encoded_form_is_redacted_in_every_form(form: object) -> None:
    assert callable(form)
    assert redact(f"<{form('pa ss/wörd')}>", {quote("pa ss/wörd", safe="")}) == "<***>"


def test_a_short_secret_spares_words_that_contain_it() -> None:
    assert redact("the password is pw: (pw) pwd", {"pw"}) == "the password is ***: (***) pwd"
    assert redact("nothing", {""}) == "nothing"


@pytest.mark.parametrize(
    ("secret", "text", "cleaned"),
    [
        ("table", "tables, a table, mysql://u:table@h, %40table", "tables, a ***, mysql://u:***@h, %40***"),
        ("1234", "12345 rows, 1234 rows", "12345 rows, *** rows"),
        ("Table", "Tables", "***s"),
    ],
)
def test_a_secret_that_is_a_word_or_a_number_is_one_only_as_a_whole(secret: str, text: str, cleaned: str) -> None:
    assert redact(text, {secret}) == cleaned


def test_a_secret_that_is_a_name_too_spares_the_name() -> None:
    target = parse("mysql://app:app@app/app")
    assert str(target) == "mysql://app@app/app"
    said = "Access denied for user 'app'@'h' to app_1 of mysql://app:app@app/app; password=app, \"password\": 'app'"
    assert target.redact(said) == (
        "Access denied for user 'app'@'h' to app_1 of mysql://app:***@app/app; password=***, \"password\": '***'"
    )
    # part of a name
    target = parse("mysql://app_1:app_@h/db_app_")
    assert target.redact("app_1 has app_ on db_app_ by app_1:app_@h") == "app_1 has *** on db_app_ by app_1:***@h"
    # a name inside a secret
    assert parse("mysql://app:x-app-x@h/d").redact("'x-app-x' app") == "'***' app"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mysql://u:p@h/d", {"p"}),
        ("u:S3@x@h/jobs", {"S3@x"}),
        ("mysql://u:a@b@h/d?x=y@z", {"a@b", "a@b@h/d?x=y"}),
        ("redis://:p@h", {"p"}),
        ("host=db user=app password=S3cret%2Fx", {"S3cret%2Fx"}),
        ("postgresql:///d?sslpassword=k&PASSWORD=p", {"k", "p"}),
        ("mysql://u@h:3306/d", set()),
        ("mysql://u:@h/d", set()),
        ("", set()),
    ],
)
def test_the_secrets_of_what_may_be_no_dsn(text: str, found: set[str]) -> None:
    assert secrets_in(text) == found


def test_passwords_of_urls_that_nobody_knew() -> None:
    said = "(mysql://u:p:a@s@h/d) 'redis://:pw@h' is not /x/mysql:/u:pw@h/d, http://h:80/ u@h"
    assert mask_urls(said) == "(mysql://u:***@h/d) 'redis://:***@h' is not /x/mysql:/u:***@h/d, http://h:80/ u@h"


def test_a_secret_inside_another_leaves_no_rest() -> None:
    assert redact("abcdefgh abcd", {"abcd", "abcdefgh"}) == "*** ***"


def test_bytes_of_another_encoding_are_redacted_too() -> None:
    secret = b"p\xe4ssword".decode(errors="surrogateescape")  # how Python hands on such an environment variable
    assert redact(f"<{secret}>", {secret}) == "<***>"


@given(secret_texts, st.sampled_from(["mysql", "postgresql"]))
def test_a_target_shows_neither_password_nor_query(password: str, family: str) -> None:
    password = f"Zz9{password}"  # no word of the text around it
    target = parse(f"{family}://user:{quote(password, safe='')}@host/db?application_name=Qx7&sslpassword=Qx7x")
    for text in (str(target), repr(target)):
        assert password not in text
        assert quote(password, safe="") not in text
        assert "Qx7" not in text
    assert target.redact(f"<{password}>") == "<***>"


def test_passwords_among_the_options_are_secrets() -> None:
    target = parse("postgresql:///d?user=u&password=s3cret&sslpassword=kEyPass")
    assert {"s3cret", "kEyPass"} <= target.secrets
    assert "s3cret" not in str(target) + repr(target)


# -- what the DSN leaves out -----------------------------------------------------------


MY_CNF = """[client]
user = alice
password = "S3cr#t"
host = db.example
port = 3307
database = jobs
"""


def complete(home: Path, dsn: str, text: str = MY_CNF, **environment: str) -> Target:
    (home / ".my.cnf").write_text(text)
    return parse_dsn(dsn, origin="TEST", environment={"HOME": str(home), **environment})


@pytest.mark.parametrize(
    ("dsn", "url", "password", "whence"),
    [
        ("mysql://", "mysql://alice@db.example:3307/jobs", "S3cr#t",
         "from TEST; user, password, host, port and database from ~/.my.cnf [client]"),
        ("mysql://alice@db.example/d", "mysql://alice@db.example:3307/d", "S3cr#t",
         "from TEST; password and port from ~/.my.cnf [client]"),
        # a port belongs to its host, a password to its user
        ("mysql://alice@h/d", "mysql://alice@h/d", "S3cr#t", "from TEST; password from ~/.my.cnf [client]"),
        ("mysql://h/d", "mysql://alice@h/d", "S3cr#t", "from TEST; user and password from ~/.my.cnf [client]"),
        ("mysql://bob@h/d", "mysql://bob@h/d", None,
         "from TEST; the password in ~/.my.cnf [client] is for the user alice"),
        ("mysql://alice:own@h:1/d", "mysql://alice@h:1/d", "own", "from TEST"),
        ("mysql://alice:@h:1/d", "mysql://alice@h:1/d", "", "from TEST"),
        ("mysql://alice@/d?unix_socket=/s", "mysql://alice@/d?unix_socket=/s", "S3cr#t",
         "from TEST; password from ~/.my.cnf [client]"),
    ],
)  # fmt: skip
def test_my_cnf_fills_what_the_dsn_leaves_out(
    tmp_path: Path, dsn: str, url: str, password: str | None, whence: str
) -> None:
    target = complete(tmp_path, dsn)
    assert (str(target), target.url.password, target.whence) == (url, password, whence)
    assert "S3cr#t" in target.secrets
    assert target.tells_secret == (password == "own")
    assert "S3cr#t" not in repr(target)


def test_my_cnf_is_no_business_of_postgresql(tmp_path: Path) -> None:
    assert complete(tmp_path, "postgresql://").url.username is None


def test_a_password_without_a_user_is_for_any(tmp_path: Path) -> None:
    assert complete(tmp_path, "mysql://bob@h/d", "[client]\npassword=p").url.password == "p"


def test_mysql_pwd_comes_last(tmp_path: Path) -> None:
    target = complete(tmp_path, "mysql://bob@h/d", MYSQL_PWD="fromEnv")
    assert (target.url.password, target.whence) == ("fromEnv", "from TEST; password from MYSQL_PWD")
    assert "fromEnv" in target.secrets
    assert complete(tmp_path, "mysql://alice@h/d", MYSQL_PWD="fromEnv").url.password == "S3cr#t"
    assert complete(tmp_path, "mysql://alice:@h/d", MYSQL_PWD="fromEnv").url.password == ""


@pytest.mark.parametrize(
    ("dsn", "text", "expected"),
    [
        ("mysql://", "socket=/s\nport=3307", "mysql:///?unix_socket=/s"),
        ("mysql://", "socket=/s\nhost=localhost", "mysql:///?unix_socket=/s"),
        ("mysql://", "socket=/s\nhost=127.0.0.1\nport=5", "mysql://127.0.0.1:5"),
        ("mysql://", "socket=/s\nprotocol=tcp\nport=5", "mysql://localhost:5"),
        ("mysql://localhost/", "socket=/s", "mysql://localhost/"),  # a deployment's localhost is TCP
        ("mysql://localhost/?read_default_file={file}", "socket=/s", "mysql:///?unix_socket=/s"),
        ("mysql://h/?read_default_file={file}", "socket=/s\nport=5", "mysql://h:5/"),
        ("mysql://h/?read_default_file={file}&read_default_group=x", "port=5\n[x]\nport=6", "mysql://h:6/"),
    ],
)
def test_sockets_and_ports_of_my_cnf(tmp_path: Path, dsn: str, text: str, expected: str) -> None:
    dsn = dsn.format(file=quote(str(tmp_path / ".my.cnf"), safe=""))
    assert str(complete(tmp_path, dsn, f"[client]\n{text}\n")) == expected


def test_a_named_option_file(tmp_path: Path) -> None:
    (tmp_path / "own.cnf").write_text("[client]\nuser=o\npassword=p\n")
    (tmp_path / ".my.cnf").write_text(MY_CNF)
    home = {"HOME": str(tmp_path)}
    target = parse_dsn("mysql:///d?read_default_file=own.cnf", origin="T", environment=home, directory=tmp_path)
    assert str(target) == "mysql://o@localhost/d"
    assert target.whence == f"from T; user and password from {tmp_path}/own.cnf [client]"
    with pytest.raises(UsageError, match=r"none\.cnf cannot be read"):
        parse_dsn("mysql:///d?read_default_file=none.cnf", origin="T", environment=home)


@pytest.mark.parametrize("port", ["x", "0", "65536", "-1", "3306x"])
def test_a_wrong_port_in_my_cnf(tmp_path: Path, port: str) -> None:
    with pytest.raises(UsageError, match=r"~/\.my\.cnf line 2: port"):
        complete(tmp_path, "mysql://", f"[client]\nport={port}\n")


@pytest.mark.parametrize(
    ("query", "text", "meaning"),
    [
        ("", "ssl-mode=DISABLED", "off"),
        ("", "skip-ssl", "off"),
        ("", "ssl", (False, False)),
        ("", "ssl-mode=REQUIRED", (False, False)),
        ("", "ssl-ca={ca}", (True, False)),
        ("", "ssl-ca={ca}\nssl-verify-server-cert", (True, True)),
        ("", "ssl-ca={ca}\nssl-mode=VERIFY_IDENTITY", (True, True)),
        ("", "loose_ssl_mode=VERIFY_CA", (True, False)),
        ("?ssl_mode=DISABLED", "ssl-ca=/nonexistent", "off"),  # the DSN's own come later
        ("?ssl_mode=REQUIRED", "skip-ssl", (False, False)),
        ("?ssl_verify_identity=true", "ssl-ca={ca}", (True, True)),
    ],
)
def test_tls_options_of_my_cnf(tmp_path: Path, query: str, text: str, meaning: object) -> None:
    ca = ssl.get_default_verify_paths().cafile or ""
    args = complete(tmp_path, f"mysql://u@h/d{query}", f"[client]\n{text.format(ca=ca)}\n").connect_args
    if meaning == "off":
        assert args == {"ssl_disabled": True}
    else:
        assert (args["ssl"].verify_mode is ssl.CERT_REQUIRED, args["ssl"].check_hostname) == meaning


def test_tls_of_my_cnf_that_is_wrong_names_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ssl_ca /nonexistent in ~/\.my\.cnf \[client\] cannot be used"):
        complete(tmp_path, "mysql://u@h/d", "[client]\nssl-ca=/nonexistent\n")
    with pytest.raises(UsageError, match=r"ssl-mode in ~/\.my\.cnf \[client\]"):
        complete(tmp_path, "mysql://u@h/d", "[client]\nssl-mode=maybe\n")
    (warning,) = complete(tmp_path, "mysql://u@h/d", "[client]\nssl-crl=/x\n").warnings
    assert "'ssl-crl' in ~/.my.cnf [client]" in warning


def test_what_libpq_takes_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    service_file = tmp_path / "services"
    service_file.write_text("[prod]\nhost=svc.example\nuser=svc\npassword=s3rvice\n")
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    for name, value in (("PGHOST", "pg.example"), ("PGPORT", "5433"), ("PGUSER", "u"), ("PGPASSWORD", "fromEnv")):
        monkeypatch.setenv(name, value)

    def whence(dsn: str) -> tuple[str, str]:
        target = parse_dsn(dsn, origin="T", environment=os.environ)
        return str(target), target.whence

    assert whence("postgresql://") == (
        "postgresql://u@pg.example:5433",
        "from T; user from PGUSER; password from PGPASSWORD; host from PGHOST; port from PGPORT",
    )
    assert whence("postgresql://v:p@h:1/d") == ("postgresql://v@h:1/d", "from T")
    assert whence("postgresql://@/d")[0] == "postgresql://u@pg.example:5433/d"
    assert whence("postgresql:///?service=prod") == ("postgresql:///", "from T; the rest from the service prod")
    assert "fromEnv" in parse_dsn("postgresql://", origin="T", environment=os.environ).secrets
    monkeypatch.setenv("PGSERVICEFILE", str(service_file))
    monkeypatch.setenv("PGSERVICE", "prod")
    assert whence("postgresql:///d") == ("postgresql://svc@svc.example:5433/d", "from T; the rest from PGSERVICE prod")
    assert "s3rvice" in parse_dsn("postgresql://", origin="T", environment=os.environ).secrets


def test_a_connection_tells_what_the_dsn_did_not() -> None:
    target = parse("postgresql:///?service=prod")
    target.learn(username="u", password="s3rvice", host="h", port=5433, database="d")
    assert (str(target), target.redact("<s3rvice>")) == ("postgresql://u@h:5433/d", "<***>")
    target.learn(username="u", password="", host="/run/postgresql", port=5433, database="d")
    assert str(target) == "postgresql://u@/d?host=/run/postgresql&port=5433"
    target.learn(username="u", password="", host="/run/postgresql", port=5432, database="d")
    assert str(target) == "postgresql://u@/d?host=/run/postgresql"
    target = parse("postgresql://u@/d?host=a:1&host=b:2")
    assert str(target) == "postgresql://u@/d?host=a:1&host=b:2"
    target.learn(username="u", password="", host="b", port=2, database="d")
    assert str(target) == "postgresql://u@b:2/d"
    target = parse("postgresql://u@h/d")
    target.learn(username="u", password="", host="h", port=5432, database="d")
    assert str(target) == "postgresql://u@h/d"


def test_relative_paths_start_where_the_dsn_stands(tmp_path: Path) -> None:
    target = parse_dsn("postgresql:///d?sslrootcert=ca.pem&sslcert=~/c.pem", origin="T", directory=tmp_path)
    assert target.connect_args == {"sslrootcert": f"{tmp_path}/ca.pem", "sslcert": str(Path.home() / "c.pem")}
    assert parse("postgresql:///d?sslrootcert=system").connect_args == {"sslrootcert": "system"}
    with pytest.raises(UsageError, match=f"ssl_ca {tmp_path}/ca.pem"):
        parse_dsn("mysql:///d?ssl_ca=ca.pem", origin="T", directory=tmp_path)
