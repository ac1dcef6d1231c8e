"""`make rds-roots`: brings the authorities that RDS's certificates are verified against up to date, from AWS's own list.

Needed for a region that is newer than the file. What is kept are the roots alone: intermediates come with each handshake.
"""

import re
import sys
import urllib.request
from collections.abc import Mapping

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from local.project import PROJECT

FILE = PROJECT / "shared" / "scheduler" / "aws" / "rds-roots.pem"
# Public, and named in "Using SSL/TLS to encrypt a connection to a DB instance" of the RDS User Guide.
_LIST = "https://truststore.pki.rds.amazonaws.com/global/global-bundle.pem"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_ROOT = re.compile(r"Amazon RDS (?P<region>[a-z]+(-[a-z]+)+-\d) Root CA (RSA2048|RSA4096|ECC384) G\d+")


def roots(bundle: str) -> dict[str, x509.Certificate]:
    """The self-signed authorities of regions in a PEM text, by name; previews and what is of another kind are left out."""
    found = map(x509.load_pem_x509_certificate, (text.encode() for text in _CERTIFICATE.findall(bundle)))
    named = {_name(each): each for each in found if each.issuer == each.subject}
    return {name: each for name, each in sorted(named.items()) if _ROOT.fullmatch(name)}


def written(kept: Mapping[str, x509.Certificate]) -> str:
    """The file's text: each certificate under its name."""
    return "".join(f"# {name}\n{each.public_bytes(Encoding.PEM).decode()}" for name, each in kept.items())


def main() -> int:
    """Writes the file. A list that lacks a region which the file has changes nothing."""
    with urllib.request.urlopen(_LIST, timeout=30) as answer:
        listed = roots(answer.read().decode())
    if missing := set(roots(FILE.read_text())) - set(listed):
        print(f"the list has no more: {', '.join(sorted(missing))}; nothing was written", file=sys.stderr)
        return 1
    FILE.write_text(written(listed))
    print(f"{len(listed)} authorities in {FILE.relative_to(PROJECT)}")
    return 0


def _name(certificate: x509.Certificate) -> str:
    return str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


if __name__ == "__main__":
    sys.exit(main())
