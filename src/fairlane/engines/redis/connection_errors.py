"""What a connection that could not be made, or was lost, means to a user.

redis-py wraps what happened into an error of its own; what lies beneath says more. Nearly all of it
is passing. What is lasting has to do with TLS, or with files.
"""

from __future__ import annotations

import ssl

from fairlane.core.errors import AccessDenied, StoreError, StoreUnavailable, StoreUnusable

_PLAIN = " If it expects TLS, use rediss://."
_WANTS_CERTIFICATE = " If it asks for a certificate, name ssl_certfile and ssl_keyfile."

_NO_TLS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "HTTP_REQUEST"}


def outage(store: str, error: BaseException, *, tls: bool) -> StoreError:
    """The error as users read it."""
    match _beneath(error):
        case ssl.SSLCertVerificationError() as refused:
            return StoreUnusable(
                f"{store} shows a certificate that cannot be trusted: "
                f"{refused.verify_message.rstrip('.')}. "
                "Check ssl_ca_certs and the host in the store URL."
            )
        case ssl.SSLEOFError() | ConnectionResetError() | BrokenPipeError() | None:
            return StoreUnavailable(f"{store} hung up.{_WANTS_CERTIFICATE if tls else _PLAIN}")
        case ssl.SSLError(reason=reason):
            return _no_agreement(store, reason or "")
        case TimeoutError():
            hint = " If it does not speak TLS, use redis://." if tls else ""
            return StoreUnavailable(f"{store} does not answer.{hint}")
        case FileNotFoundError() | PermissionError() if tls:
            return _bad_files(store, "cannot be read")
        case PermissionError():
            return AccessDenied(f"{store} cannot be opened: check the rights of its path.")
        case _:
            return StoreUnavailable(f"{store} cannot be reached at the moment.")


def _beneath(error: BaseException) -> OSError | None:
    """The first error of the operating system, or of TLS, in what led to this one."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, OSError):
        found = found.__context__
    return found


def _no_agreement(store: str, reason: str) -> StoreError:
    if reason in _NO_TLS:
        return StoreUnusable(f"{store} does not speak TLS: use redis://.")
    if "ALERT" in reason:
        said = reason.partition("ALERT_")[2].replace("_", " ").lower()
        return AccessDenied(f"{store} refused the TLS handshake ({said}).{_WANTS_CERTIFICATE}")
    return _bad_files(store, f"cannot be used ({reason.replace('_', ' ').lower()})")


def _bad_files(store: str, why: str) -> StoreError:
    return StoreUnusable(
        f"{store} was not contacted: the files of ssl_ca_certs, ssl_certfile or ssl_keyfile {why}."
    )
