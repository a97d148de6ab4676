"""DSNs in every form of a deployment, and their secrets kept out of every text."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from opsctl.errors import UsageError
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
    postgresql = parse("postgresql:///jobs?host=/run/postgresql&port=5433&user=app")
    assert dict(postgresql.url.query) == {"host": "/run/postgresql", "port": "5433"}
    assert postgresql.connect_args == {"user": "app"}


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
