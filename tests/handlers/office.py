"""A real mail server."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session

from fairlane.handlers import MailSettings


class Office:
    """Takes messages, and says no where it is told to."""

    def __init__(self) -> None:
        self.taken: list[Envelope] = []
        self.refusals: dict[str, str] = {}
        self.port = 0

    async def handle_RCPT(  # noqa: N802 (aiosmtpd's name)
        self, _: SMTP, __: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refusals:
            return self.refusals[address]
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 OK"

    async def handle_DATA(self, _: SMTP, __: Session, envelope: Envelope) -> str:  # noqa: N802
        if "data" in self.refusals:
            return self.refusals["data"]
        self.taken.append(envelope)
        return "250 OK"

    def message(self) -> EmailMessage:
        content = self.taken[-1].content
        assert isinstance(content, bytes)
        message = message_from_bytes(content, policy=default)
        assert isinstance(message, EmailMessage)
        return message

    def settings(self, **options: Any) -> MailSettings:
        return MailSettings(
            **{
                "host": "127.0.0.1",
                "port": self.port,
                "sender": "fairlane@example.org",
                "security": "none",
                **options,
            }
        )


@asynccontextmanager
async def office(implicit: ssl.SSLContext | None = None, **options: Any) -> AsyncIterator[Office]:
    """A server on a free port of 127.0.0.1."""
    office = Office()
    loop = asyncio.get_running_loop()
    options.setdefault("enable_SMTPUTF8", True)
    server = await loop.create_server(
        lambda: SMTP(office, loop=loop, **options), "127.0.0.1", 0, ssl=implicit
    )
    office.port = server.sockets[0].getsockname()[1]
    async with server:
        yield office
