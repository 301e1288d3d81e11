"""`email` against a real mail server."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiosmtpd.smtp import AuthResult

from fairlane.handlers import InvalidSetting, MailSettings
from fairlane.handlers.mail import Unsent, email_handler
from fairlane.runtime.outcomes import Fail
from tests.fixtures.certificates import Certificates, certificates
from tests.handlers.kit import TASK_ID, context
from tests.handlers.office import office

HELLO: dict[str, Any] = {"to": "user@example.com", "subject": "Hello", "text": "How are you?\n"}


async def send(settings: MailSettings, **payload: Any) -> dict[str, Any]:
    handler = email_handler(settings)
    return await asyncio.to_thread(handler, context(), **{**HELLO, **payload})


async def test_a_message_arrives() -> None:
    async with office() as server:
        result = await send(server.settings())
    assert result == {"message_id": f"<{TASK_ID}@example.org>", "refused": []}
    (envelope,) = server.taken
    assert (envelope.mail_from, envelope.rcpt_tos) == ("fairlane@example.org", ["user@example.com"])
    message = server.message()
    assert (message["From"], message["To"]) == ("fairlane@example.org", "user@example.com")
    assert message["Subject"] == "Hello"
    assert message["Message-ID"] == f"<{TASK_ID}@example.org>"
    assert message["Date"] is not None
    assert message.get_content().splitlines() == ["How are you?"]


async def test_the_text_may_be_called_body() -> None:
    async with office() as server:
        await send(server.settings(), text=None, body="How are you?")
    assert server.message().get_content().splitlines() == ["How are you?"]


@pytest.mark.parametrize("parts", [{"body": "b"}, {"text": None}])
async def test_it_has_one_text(parts: dict[str, Any]) -> None:
    async with office() as server:
        with pytest.raises(Fail, match="text") as caught:
            await send(server.settings(), **parts)
    assert caught.value.code == "EMAIL_REFUSED"
    assert not server.taken


async def test_the_sender_may_have_a_name() -> None:
    async with office() as server:
        await send(server.settings(sender="Fräulein Lane <lane@example.org>"))
        await send(server.settings(sender='"Lane, F." <lane@example.org>'))
    assert [envelope.mail_from for envelope in server.taken] == ["lane@example.org"] * 2
    assert server.message()["From"].addresses[0].display_name == "Lane, F."


async def test_everything_a_message_may_have() -> None:
    async with office() as server:
        await send(
            server.settings(),
            to=["a@example.com", "b@example.com"],
            cc=["c@example.com"],
            bcc=["d@example.com"],
            reply_to="e@example.com",
            subject="Grüße, Welt",
            text="Zeile\n.\nfrom here",
            html="<p>Grüße</p>",
        )
    (envelope,) = server.taken
    assert envelope.rcpt_tos == [f"{name}@example.com" for name in "abcd"]
    message = server.message()
    assert message["To"] == "a@example.com, b@example.com"
    assert (message["Cc"], message["Reply-To"]) == ("c@example.com", "e@example.com")
    assert message["Bcc"] is None
    assert message["Subject"] == "Grüße, Welt"
    text, html = message.get_body(("plain",)), message.get_body(("html",))
    assert text is not None
    assert html is not None
    assert text.get_content().splitlines() == ["Zeile", ".", "from here"]
    assert html.get_content().strip() == "<p>Grüße</p>"


@pytest.mark.parametrize("field", ["subject", "to", "cc", "bcc", "reply_to"])
@pytest.mark.parametrize(
    "end", ["\r\n", "\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\x00"]
)
async def test_headers_cannot_be_smuggled_in(field: str, end: str) -> None:
    evil: Any = f"a@example.com{end}Bcc: victim@example.com"
    async with office() as server:
        with pytest.raises(Fail, match="one line"):
            await send(server.settings(), **{field: [evil] if field in {"cc", "bcc"} else evil})
    assert server.taken == []


async def test_nor_encoded() -> None:
    async with office() as server:
        with pytest.raises(Fail, match="plain text"):
            await send(server.settings(), subject="=?utf-8?q?a=0D=0ABcc=3A_victim=40example.com?=")


@pytest.mark.parametrize(
    "address",
    [
        "",
        "nobody",
        "@example.com",
        "a@",
        "a@b, c@d",
        "A <a@example.com>",
        "a@example.com b@example.com",
        "a b@example.com",
        "group: a@b;",
        "=?utf-8?q?a=40evil.example=3E?=@example.com",
        "a@example.com>",
        "x" * 1000 + "@example.com",
    ],
)
async def test_what_is_no_address_is_refused(address: str) -> None:
    async with office() as server:
        with pytest.raises(Fail):
            await send(server.settings(), to=address)
        with pytest.raises(Fail):
            await send(server.settings(), bcc=[address])
    assert server.taken == []


async def test_somebody_must_get_it() -> None:
    async with office() as server:
        with pytest.raises(Fail, match="recipient"):
            await send(server.settings(), to=[])


async def test_text_stays_in_the_body() -> None:
    async with office() as server:
        await send(server.settings(), text="\r\nBcc: x@example.com\r\n.\r\nMAIL FROM:<y@z>\r\n")
    assert server.taken[0].rcpt_tos == ["user@example.com"]
    assert server.message()["Bcc"] is None


async def test_who_is_not_taken_is_told() -> None:
    async with office() as server:
        server.refusals["b@example.com"] = "550 unknown"
        result = await send(server.settings(), to=["a@example.com", "b@example.com"])
    assert result["refused"] == ["b@example.com"]
    assert server.taken[0].rcpt_tos == ["a@example.com"]


@pytest.mark.parametrize("where", ["user@example.com", "data"])
async def test_what_the_server_refuses_for_good(where: str) -> None:
    async with office() as server:
        server.refusals[where] = "550 no such thing as user@example.com"
        with pytest.raises(Fail) as caught:
            await send(server.settings())
    assert caught.value.code == "SMTP_550"
    assert "user@example.com" not in str(caught.value), "it is the payload's"


@pytest.mark.parametrize("where", ["user@example.com", "data"])
async def test_what_the_server_refuses_for_now(where: str) -> None:
    async with office() as server:
        server.refusals[where] = "451 later"
        with pytest.raises(Unsent):
            await send(server.settings())


async def test_one_recipient_for_now_is_reason_to_try_again() -> None:
    async with office() as server:
        server.refusals |= {"a@example.com": "550 unknown", "b@example.com": "451 later"}
        with pytest.raises(Unsent):
            await send(server.settings(), to=["a@example.com", "b@example.com"])


async def test_nobody_there_is_tried_again() -> None:
    async with office() as server:
        settings = server.settings()
    with pytest.raises(Unsent, match="could not be used"):
        await send(settings)


async def test_an_address_that_the_server_cannot_write() -> None:
    async with office(enable_SMTPUTF8=False) as server:
        with pytest.raises(Fail, match="cannot do that"):
            await send(server.settings(), to="jürgen@example.com")
    async with office(enable_SMTPUTF8=True) as server:
        await send(server.settings(), to="jürgen@example.com")
    assert server.taken[0].rcpt_tos == ["jürgen@example.com"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("certificates"))


def serving(made: Certificates) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(made.certificate, made.key)
    return context


class Gatekeeper:
    """Lets one user in."""

    def __call__(self, *given: Any) -> AuthResult:
        known = (given[-1].login, given[-1].password)
        return AuthResult(success=known == (b"user", b"right"), handled=False)


async def test_starttls_and_a_password(made: Certificates) -> None:
    async with office(
        tls_context=serving(made),
        require_starttls=True,
        authenticator=Gatekeeper(),
        auth_required=True,
    ) as server:
        settings = server.settings(
            security="starttls", username="user", password="right", ca_file=str(made.authority)
        )
        await send(settings)
        assert len(server.taken) == 1
        wrong = msgspec.structs.replace(settings, password="wrong")
        with pytest.raises(Unsent, match="refused the login") as caught:
            await send(wrong)
        assert "wrong" not in str(caught.value)
        stranger = msgspec.structs.replace(settings, ca_file=None)
        with pytest.raises(Unsent, match="certificate"):
            await send(stranger)


async def test_tls_from_the_start(made: Certificates) -> None:
    async with office(implicit=serving(made)) as server:
        await send(server.settings(security="tls", ca_file=str(made.authority)))
    assert len(server.taken) == 1


async def test_nothing_is_sent_in_the_clear_where_starttls_is_wanted(made: Certificates) -> None:
    async with office() as server:
        with pytest.raises(Fail, match="STARTTLS"):
            await send(server.settings(security="starttls", ca_file=str(made.authority)))
    assert server.taken == []


def test_settings_are_checked(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="in the clear"):
        MailSettings(host="h", sender="a@b", security="none", username="u", password="p")
    with pytest.raises(InvalidSetting, match="both"):
        MailSettings(host="h", sender="a@b", username="u")
    with pytest.raises(InvalidSetting, match="starttls, tls, none"):
        MailSettings(host="h", sender="a@b", security="ssl")  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="a@example"):
        email_handler(MailSettings(host="h", sender="nobody"))
    missing = str(tmp_path / "missing.pem")
    with pytest.raises(InvalidSetting, match=r"missing\.pem"):
        email_handler(MailSettings(host="h", sender="a@example.com", ca_file=missing))


def test_the_password_is_not_shown() -> None:
    settings = MailSettings(host="h", sender="a@b", username="u", password="secret")
    assert "secret" not in repr(settings)
    assert [
        msgspec.structs.replace(settings, security=each).effective_port
        for each in ("starttls", "tls")
    ] == [587, 465]
