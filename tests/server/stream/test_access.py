"""Who may listen, and for how long."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlane.core.tokens import Scope
from tests.conftest import Servers
from tests.server.kit import Api, refused
from tests.server.security.kit import EXPIRED, REVOKED, WRONG, Guarded, bearer, guarded, new_token
from tests.server.stream.kit import knock, listening


@pytest.fixture
async def server(servers: Servers, tmp_path: Path) -> AsyncIterator[Guarded]:
    async with guarded(servers, tmp_path) as found:
        yield found


async def test_tokens(server: Guarded) -> None:
    api, _, secrets = server
    here = f"http://127.0.0.1:{api.port}"
    strangers = ["", WRONG, secrets[EXPIRED], secrets[REVOKED], "\xe9\xff"]
    for secret in strangers:
        headers = bearer(secret) if secret else {}
        refused(await knock(api, **headers), 401, "unauthorized")
        cookie = f"fairlane_session={secret}"
        refused(await knock(api, cookie=cookie, origin=here), 401, "unauthorized")
    for scope in Scope:
        status = 101 if scope in {Scope.READ, Scope.ADMIN} else 403
        assert (await knock(api, **bearer(secrets[scope]))).status == status, scope
    mine = {"cookie": f"fairlane_session={secrets['read']}"}
    assert (await knock(api, **mine, origin=here)).status == 101
    refused(await knock(api, **mine), 403, "forbidden")  # a browser says where it comes from
    for origin in ("http://evil.example", "null", f"{here}.evil.example", "http://127.0.0.1:1"):
        refused(await knock(api, **mine, origin=origin), 403, "forbidden")
        refused(await knock(api, **bearer(secrets["read"]), origin=origin), 403, "forbidden")


async def test_without_tokens_pages_from_elsewhere_stay_outside(api: Api) -> None:
    assert (await knock(api)).status == 101
    assert (await knock(api, origin=f"http://127.0.0.1:{api.port}")).status == 101
    refused(await knock(api, origin="http://evil.example"), 403, "forbidden")
    refused(await knock(api, sec_fetch_site="cross-site"), 403, "forbidden")
    named = {"origin": "http://evil.example:80", "host": "evil.example:80"}  # DNS rebinding
    client = await api.connect()
    request = api.request("GET", "/ws", connection="Upgrade", upgrade="websocket", **named)
    refused(await client.ask(request.replace(b"\r\n\r\n", b"\r\n" + HANDSHAKE)), 421, "wrong_host")


HANDSHAKE = b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"


async def test_a_token_that_is_revoked_ends_it(server: Guarded) -> None:
    api, _, secrets = server
    token_id, secret = await new_token(api.world, "read")
    mine = [("authorization", f"Bearer {secret}")]
    theirs = [("authorization", f"Bearer {secrets['read']}")]
    async with listening(api, headers=mine) as listener, listening(api, headers=theirs) as other:
        await api.world.run(api.world.ops.drop_token(token_id))
        code, reason = await listener.closed()
        assert (code, "revoked" in reason) == (1008, True)
        await api.world.submit()
        await other.until("task.submitted")


async def test_the_first_token_ends_it_for_those_without(api: Api) -> None:
    async with listening(api) as listener:
        await new_token(api.world, "read")
        assert (await listener.closed())[0] == 1008


async def test_a_stream_ends_with_its_token(server: Guarded) -> None:
    api, _, _ = server
    token_id, secret = await new_token(api.world, "read")
    client = await api.connect()
    headers = {"accept": "text/event-stream", **bearer(secret)}
    reply = await client.ask(api.request("GET", "/api/v1/events", **headers))
    assert reply.status == 200
    await api.world.run(api.world.ops.drop_token(token_id))
    await client.send(api.request("GET", "/healthz"))
    assert b'"status":"ok"' in await client._reader.readuntil(b'"ok"}')
