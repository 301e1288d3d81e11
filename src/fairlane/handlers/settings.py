"""Settings of the built-in handlers. They come from the operator, never from a payload."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final, Literal, TypeVar, get_args

import msgspec

from fairlane.core.errors import InvalidInput
from fairlane.core.text import shown

T = TypeVar("T")
Network = IPv4Network | IPv6Network
Security = Literal["starttls", "tls", "none"]

_PORTS: Final = {"starttls": 587, "tls": 465, "none": 25}
_YES_NO: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class InvalidSetting(InvalidInput):
    """A setting of the built-in handlers is invalid."""

    code = "invalid_setting"


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of webhooks."""

    allow_http: bool = False
    """Allow http://, which can be read and changed on its way."""
    networks: tuple[Network, ...] = ()
    """Networks that are allowed although they are not public."""
    timeout: float = 30.0
    """The most seconds for one delivery; a payload can set fewer."""
    keep_bytes: int = 1024
    """How much of a response is kept. The rest is not read."""
    ca_file: str | None = None
    """Certificate authorities to trust instead of the system's."""


class MailSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The mail server, and the sender."""

    host: str
    sender: str
    """a@example.com, or Name <a@example.com>"""
    security: Security = "starttls"
    port: int | None = None
    """The default is 587, 465 or 25, depending on `security`."""
    username: str | None = None
    password: str | None = None
    timeout: float = 30.0
    ca_file: str | None = None

    def __post_init__(self) -> None:
        if self.security not in _PORTS:
            raise InvalidSetting(
                f"Mail security is one of {', '.join(get_args(Security))}. "
                f"Got {shown(self.security)}."
            )
        if (self.username is None) != (self.password is None):
            raise InvalidSetting("A mail server wants both a user name and a password, or none.")
        if self.username is not None and self.security == "none":
            raise InvalidSetting(
                "The password for the mail server would be sent in the clear: use starttls or tls."
            )

    def __repr__(self) -> str:
        return f"<MailSettings {self.host}>"  # not the password

    @property
    def effective_port(self) -> int:
        return _PORTS[self.security] if self.port is None else self.port


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings. Without `mail` there is no `email` task."""

    webhook: WebhookSettings = WebhookSettings()
    mail: MailSettings | None = None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Return the settings of the environment.

        They are FAIRLANE_WEBHOOK_… (ALLOW_HTTP, NETWORKS, TIMEOUT, CA_FILE) and FAIRLANE_SMTP_…
        (HOST, SENDER, SECURITY, PORT, USERNAME, PASSWORD, TIMEOUT, CA_FILE).
        """
        webhook = _Variables(environ, "FAIRLANE_WEBHOOK_")
        smtp = _Variables(environ, "FAIRLANE_SMTP_")
        return cls(
            webhook=WebhookSettings(
                allow_http=webhook.get("ALLOW_HTTP", _yes_no, default=False),
                networks=webhook.get("NETWORKS", _networks, default=()),
                timeout=webhook.get("TIMEOUT", _seconds, default=30.0),
                ca_file=webhook.get("CA_FILE", str, default=None),
            ),
            mail=None if smtp.get("HOST", str, default=None) is None else _mail(smtp),
        )


def tls_context(ca_file: str | None) -> ssl.SSLContext:
    """Return a TLS context that checks certificates against the system's authorities, or these."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise InvalidSetting(f"{ca_file} holds no certificates to trust: {error}.") from None


class _Variables:
    """Environment variables with a common prefix."""

    def __init__(self, environ: Mapping[str, str], prefix: str) -> None:
        self._environ = environ
        self._prefix = prefix

    def get(self, name: str, read: Callable[[str], T], *, default: T) -> T:
        text = self._environ.get(self._prefix + name, "")
        if not text:
            return default
        try:
            return read(text)
        except ValueError as error:
            raise InvalidSetting(f"{self._prefix}{name} cannot be read: {error}.") from None


def _mail(smtp: _Variables) -> MailSettings:
    sender = smtp.get("SENDER", str, default="")
    if not sender:
        raise InvalidSetting(
            "FAIRLANE_SMTP_HOST is set: set FAIRLANE_SMTP_SENDER as well, the address that mail "
            "is sent from."
        )
    return MailSettings(
        host=smtp.get("HOST", str, default=""),
        sender=sender,
        security=smtp.get("SECURITY", str, default="starttls"),  # type: ignore[arg-type]
        port=smtp.get("PORT", int, default=None),
        username=smtp.get("USERNAME", str, default=None),
        password=smtp.get("PASSWORD", str, default=None),
        timeout=smtp.get("TIMEOUT", _seconds, default=30.0),
        ca_file=smtp.get("CA_FILE", str, default=None),
    )


def _yes_no(text: str) -> bool:
    if text.lower() not in _YES_NO:
        raise ValueError(f"{shown(text)} is neither yes nor no")
    return _YES_NO[text.lower()]


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{shown(text)} is not a number of seconds above 0")
    return seconds


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(ip_network(part.strip()) for part in text.split(","))
