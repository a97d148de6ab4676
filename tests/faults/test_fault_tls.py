"""TLS that is demanded and not there, and certificates of another authority."""

from __future__ import annotations

import datetime
import ipaddress
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from faults.harness import COMMANDS, Account, Opsctl, account_on, assert_secret, run_all
from servers import Server


def authority(directory: Path, name: str) -> Path:
    """A certificate of its own making, for 127.0.0.1, good as an authority and as a server's; its key beside it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(addresses, critical=False)
        .sign(key, hashes.SHA256())
    )
    path = directory / f"{name}.pem"
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    path.with_suffix(".key").write_bytes(key.private_bytes(serialization.Encoding.PEM, *secret))
    return path


def verifying(family: str, file: Path) -> str:
    if family == "postgresql":
        return f"sslmode=verify-full&sslrootcert={file}"
    return f"ssl_mode=VERIFY_IDENTITY&ssl_ca={file}"


def demanding(family: str) -> str:
    return "sslmode=require" if family == "postgresql" else "ssl_mode=REQUIRED"


@pytest.mark.servers("mariadb", "postgresql-newest")
def test_server_without_tls(account: Account, opsctl: Opsctl) -> None:
    if account.server.name == "mariadb" and account.database.execute("SELECT @@have_ssl") == [("YES",)]:
        pytest.fail("this MariaDB has TLS: from 11.4 on it makes its own certificate; give the test another option")
    dsn = account.dsn(demanding(account.server.family))
    for end in run_all([lambda c=c: opsctl(dsn, *c) for c in COMMANDS]):
        end.failed(3, "SSL|TLS", "TLS|sslmode", within_s=5)
        assert_secret(account.password, end.err)
    assert account.tables() == set()


@pytest.mark.servers("mysql")
def test_certificate_of_another_authority(account: Account, opsctl: Opsctl, tmp_path: Path) -> None:
    other = authority(tmp_path, "other")
    assert opsctl(account.dsn(demanding("mysql")), "init-tables", "--yes").code == 0
    end = opsctl(account.dsn(verifying("mysql", other)), "verify-schema")
    end.failed(3, "certificate", "TLS", within_s=5)
    missing = opsctl(account.dsn(verifying("mysql", tmp_path / "nosuch.pem")), "verify-schema")
    assert missing.code in (2, 3), missing
    assert len(missing.lines()) == 2, missing


@pytest.mark.slow
@pytest.mark.servers("mysql", "mariadb", "postgresql-newest")
def test_certificate_is_checked(
    server: Server, opsctl: Opsctl, private_server: Callable[..., Server], tmp_path: Path
) -> None:
    own, other = authority(tmp_path, "own"), authority(tmp_path, "other")
    assert server.directory is not None
    place = server.directory / "tls"  # where the user that the server runs as can reach it
    place.mkdir()
    owner = (server.directory / "data").stat()
    try:
        for file in (own, own.with_suffix(".key")):
            shutil.copy(file, place)
            (place / file.name).chmod(0o600)
            shutil.chown(place / file.name, owner.st_uid, owner.st_gid)
        files = place / "own.pem", place / "own.key"
        if server.family == "postgresql":
            options = ["-cssl=on", f"-cssl_cert_file={files[0]}", f"-cssl_key_file={files[1]}"]
        else:
            options = [f"--ssl-cert={files[0]}", f"--ssl-key={files[1]}", f"--ssl-ca={files[0]}"]
        with account_on(private_server(server.name, *options)) as account:
            family = server.family
            for good in (demanding(family), verifying(family, own)):
                end = opsctl(account.dsn(good), "init-tables", "--yes")
                assert end.code == 0, end
            end = opsctl(account.dsn(verifying(family, other)), "verify-schema")
            end.failed(3, "certificate", "TLS|sslmode", within_s=5)
            assert_secret(account.password, end.err)
    finally:
        shutil.rmtree(place)
