"""The server's key and certificate chain, read again when their files change."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from dbt_history.landing.errors import RefusedError

log = logging.getLogger("dbt_history.serve")


@dataclass
class Certificates:
    """A private key and its chain, PEM files. Raises RefusedError if they do not belong together.

    The files are examined at every handshake. While they cannot be used, for example because only
    one of them is replaced so far, the last pair stays in use.
    """

    key: Path
    chain: Path
    stamp: object = field(init=False)
    valid_until: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.stamp = self.stamp_of_files()
        self.configuration = self.read()

    def credentials(self) -> grpc.ServerCredentials:
        return grpc.dynamic_ssl_server_credentials(
            self.configuration, self.changed, require_client_authentication=False
        )

    def changed(self) -> grpc.ServerCertificateConfiguration | None:
        """The new pair if the files changed, else None. Called by gRPC at every handshake."""
        try:
            stamp = self.stamp_of_files()
            if stamp == self.stamp:
                return None
            self.stamp = stamp
            configuration = self.read()
        except (OSError, RefusedError) as error:
            log.warning("the certificate is not reloaded: %s", " ".join(str(error).split()))
            return None
        log.info("reloaded the certificate; it is valid until %s", self.valid_until.isoformat())
        return configuration

    def stamp_of_files(self) -> object:
        found = (path.stat() for path in (self.key, self.chain))
        # A copy can keep the size and the time of the data (cp -p), but not that of the change.
        return [(f.st_mtime_ns, f.st_ctime_ns, f.st_size, f.st_ino) for f in found]

    def read(self) -> grpc.ServerCertificateConfiguration:
        key, chain = self.key.read_bytes(), self.chain.read_bytes()
        form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
        try:
            certificate = x509.load_pem_x509_certificates(chain)[0]
            own = load_pem_private_key(key, None).public_key().public_bytes(*form)
        except (ValueError, TypeError):
            # Without the cause, which may contain a part of the file.
            raise RefusedError(
                f"{self.key} and {self.chain} are not a PEM key without a password and a PEM chain"
            ) from None
        if certificate.public_key().public_bytes(*form) != own:
            raise RefusedError(
                f"the certificate in {self.chain} is for another key than {self.key}"
            )
        self.valid_until = certificate.not_valid_after_utc
        if self.valid_until <= datetime.now(UTC):
            raise RefusedError(
                f"the certificate in {self.chain} expired at {self.valid_until.isoformat()}"
            )
        return grpc.ssl_server_certificate_configuration([(key, chain)])
