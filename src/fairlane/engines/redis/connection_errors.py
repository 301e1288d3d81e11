"""Translate connection errors into the errors that users read.

redis-py wraps the original error, which says more. Nearly all connection errors are temporary. The
permanent ones concern TLS or files.
"""

from __future__ import annotations

import ssl

from fairlane.core.errors import AccessDenied, StoreError, StoreUnavailable, StoreUnusable

_WANTS_TLS = " If it expects TLS, use rediss://."
_WANTS_CERTIFICATE = " If it requires a client certificate, set ssl_certfile and ssl_keyfile."

_NO_TLS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "HTTP_REQUEST"}


def unreachable(store: str, error: BaseException, *, tls: bool) -> StoreError:
    """Return the error for a connection that cannot be opened, or broke. `store` names it."""
    match _original(error):
        case ssl.SSLCertVerificationError() as refused:
            return StoreUnusable(
                f"{store} has a certificate that cannot be trusted: "
                f"{refused.verify_message.rstrip('.')}. "
                "Check ssl_ca_certs and the host in the store URL."
            )
        case ssl.SSLEOFError() | ConnectionResetError() | BrokenPipeError() | None:
            hint = _WANTS_CERTIFICATE if tls else _WANTS_TLS
            return StoreUnavailable(f"{store} closed the connection.{hint}")
        case ssl.SSLError(reason=reason):
            return _tls_error(store, reason or "")
        case TimeoutError():
            hint = " If it does not use TLS, use redis://." if tls else ""
            return StoreUnavailable(f"{store} does not answer.{hint}")
        case FileNotFoundError() | PermissionError() if tls:
            return _bad_files(store, "cannot be read")
        case PermissionError():
            return AccessDenied(f"{store} cannot be opened: check the permissions of its path.")
        case _:
            return StoreUnavailable(f"{store} cannot be reached at the moment.")


def _original(error: BaseException) -> OSError | None:
    """Return the error of the operating system, or of TLS, that caused this error."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, OSError):
        found = found.__context__
    return found


def _tls_error(store: str, reason: str) -> StoreError:
    if reason in _NO_TLS:
        return StoreUnusable(f"{store} does not use TLS: use redis://.")
    if "ALERT" in reason:
        alert = reason.partition("ALERT_")[2].replace("_", " ").lower()
        return AccessDenied(f"{store} refused the TLS handshake ({alert}).{_WANTS_CERTIFICATE}")
    return _bad_files(store, f"cannot be used ({reason.replace('_', ' ').lower()})")


def _bad_files(store: str, why: str) -> StoreError:
    return StoreUnusable(
        f"{store} was not contacted: the files in ssl_ca_certs, ssl_certfile or ssl_keyfile {why}."
    )
