"""The handler `email`: send a message over SMTP."""

from __future__ import annotations

import re
import smtplib
import ssl
from collections.abc import Callable
from contextlib import suppress
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as WIRE
from email.utils import localtime, parseaddr
from typing import Any, Final

from fairlane.core.text import is_plain
from fairlane.handlers.settings import InvalidSetting, MailSettings, tls_context
from fairlane.runtime.context import Context
from fairlane.runtime.outcomes import Fail

REFUSED: Final = "EMAIL_REFUSED"
_LINE: Final = 998
"""The longest line that SMTP allows."""
_ADDRESS: Final = re.compile(r"""([^\s@<>(),;:\\"\[\]]{1,64})@([^\s@<>(),;:\\"\[\]]{1,255})\Z""")


class Unsent(Exception):
    """The mail server could not be reached, or could not accept the message now."""


def email_handler(settings: MailSettings) -> Callable[..., dict[str, Any]]:
    """Return the handler for these settings. It blocks, so a worker runs it on a thread."""
    context = tls_context(settings.ca_file)
    sender = _sender(settings)

    def email(
        ctx: Context,
        to: str | list[str],
        subject: str,
        text: str | None = None,
        html: str | None = None,
        cc: list[str] | None = None,
        bcc: list[str] | None = None,
        reply_to: str | None = None,
        body: str | None = None,
    ) -> dict[str, Any]:
        """Send a message, and return its id and the recipients that the server refused.

        `body` is another name of `text`.
        """
        content = _content(text, body)
        shown = _addresses([to] if isinstance(to, str) else to)
        copied, hidden = _addresses(cc or []), _addresses(bcc or [])
        if not shown:
            raise Fail("A message needs a recipient.", code=REFUSED)
        message = EmailMessage(policy=WIRE)
        message["From"] = sender
        message["To"] = shown
        if copied:
            message["Cc"] = copied
        if reply_to is not None:
            message["Reply-To"] = _address(reply_to)
        message["Subject"] = _line(subject)
        message["Date"] = localtime()
        # The same for every attempt, so that recipients can recognise a duplicate.
        message["Message-ID"] = message_id = f"<{ctx.task_id}@{sender.domain}>"
        message.set_content(content)
        if html is not None:
            message.add_alternative(html, subtype="html")
        recipients = [address.addr_spec for address in shown + copied + hidden]
        refused = _send(message, sender.addr_spec, recipients, settings, context)
        return {"message_id": message_id, "refused": sorted(refused)}

    return email


def _content(text: str | None, body: str | None) -> str:
    """Return the one of the two that was given."""
    if text is not None and body is not None:
        raise Fail("A message has text or body, which mean the same, not both.", code=REFUSED)
    content = body if text is None else text
    if content is None:
        raise Fail("A message needs a text (or body, which means the same).", code=REFUSED)
    return content


def _send(
    message: EmailMessage,
    sender: str,
    recipients: list[str],
    settings: MailSettings,
    context: ssl.SSLContext,
) -> list[str]:
    """Send the message, and return the recipients that the server refused."""
    try:
        server = _connect(settings, context)
        try:
            return list(server.send_message(message, sender, recipients))
        finally:
            _leave(server)
    except smtplib.SMTPRecipientsRefused as error:
        answers = [code for code, _ in error.recipients.values()]
        raise _failure(min(answers), "no recipient was accepted") from None
    except smtplib.SMTPNotSupportedError as error:
        raise Fail(f"The mail server cannot do that: {error}", code=REFUSED) from None
    except smtplib.SMTPAuthenticationError as error:
        # An operator must correct it; another attempt may succeed.
        raise Unsent(f"The mail server refused the login: {_said(error)}.") from None
    except smtplib.SMTPResponseException as error:
        # Without the server's text, which mostly quotes an address.
        raise _failure(error.smtp_code, str(error.smtp_code)) from None
    except (smtplib.SMTPException, OSError) as error:
        raise Unsent(f"The mail server could not be used: {error}.") from None


def _connect(settings: MailSettings, context: ssl.SSLContext) -> smtplib.SMTP:
    where = (settings.host, settings.effective_port)
    if settings.security == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(*where, timeout=settings.timeout, context=context)
    else:
        server = smtplib.SMTP(*where, timeout=settings.timeout)
    try:
        if settings.security == "starttls":
            server.starttls(context=context)  # raises if the server has no TLS: never in the clear
        if settings.username is not None and settings.password is not None:
            server.login(settings.username, settings.password)
    except BaseException:
        server.close()
        raise
    return server


def _leave(server: smtplib.SMTP) -> None:
    """End the connection. Errors here change nothing about the message."""
    with suppress(smtplib.SMTPException, OSError):
        server.quit()
    server.close()


def _failure(code: int, why: str) -> Exception:
    text = f"The mail server refused the message: {why}."
    return Fail(text, code=f"SMTP_{code}") if code >= 500 else Unsent(text)


def _said(error: smtplib.SMTPResponseException) -> str:
    answer = error.smtp_error
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    return f"{error.smtp_code} {text}"


def _sender(settings: MailSettings) -> Address:
    name, bare = parseaddr(settings.sender)
    try:
        address = _address(bare)
        return Address(_line(name), address.username, address.domain)
    except Fail as error:
        raise InvalidSetting(f"Mail cannot be sent from there. {error}") from None


def _addresses(texts: list[str]) -> tuple[Address, ...]:
    return tuple(_address(text) for text in texts)


def _address(text: str) -> Address:
    """Return a bare address. Raises Fail for anything else."""
    found = _ADDRESS.match(_line(text))
    if found is None:
        raise Fail("An address looks like a@example.com, without a name.", code=REFUSED)
    return Address(username=found[1], domain=found[2])


def _line(text: str) -> str:
    """Return a text that is safe in a header. Raises Fail if it could become several lines.

    Encoded words ("=?utf-8?…?=") can contain a line break, which not every Python version escapes
    when it writes a header.
    """
    if not is_plain(text, _LINE) or len(text.splitlines()) > 1 or "=?" in text:
        raise Fail(
            f"Addresses and subjects are one line of plain text of at most {_LINE} characters.",
            code=REFUSED,
        )
    return text
