"""A throw-away certificate authority, made in memory for one test run."""

import datetime as dt
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_NOW = dt.datetime.now(dt.UTC)
_DAY = dt.timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Authority:
    """A self-signed root; `ca_file` is its PEM file."""

    folder: Path
    key: ec.EllipticCurvePrivateKey
    root: x509.Certificate
    ca_file: str

    def server(self, name: str, *, ends: dt.datetime = _NOW + _DAY) -> ssl.SSLContext:
        """A server context with a certificate for this DNS name."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(name, self.root.subject, key, ends)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        path = self.folder / f"{name}-{certificate.serial_number}.pem"
        path.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


def make_authority(folder: Path) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name("Throw-away root")
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    root = (
        _builder("Throw-away root", subject, key, _NOW + _DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    ca_file = folder / "root.pem"
    ca_file.write_bytes(root.public_bytes(serialization.Encoding.PEM))
    return Authority(folder=folder, key=key, root=root, ca_file=str(ca_file))


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    name: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, ends: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(ends - 10 * _DAY)
        .not_valid_after(ends)
    )
