"""`/`: the dashboard. Its files are public: the data comes from the API, with the rights of the
user."""

from __future__ import annotations

from typing import Final

from fairlane.dashboard.assets import Asset, assets
from fairlane.server.errors import NotFound
from fairlane.server.operations import OPEN, Call, Operation
from fairlane.server.responses import GUARDS, Headers, Response
from fairlane.server.services import Services

POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    b"require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Load only own files, and never turn text into scripts or markup."""
GZIP: Final = b"gzip"


async def shell(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """Load the dashboard. The page is not cached, because it names the files of this version."""
    return _answer(assets().shell, call, b"no-cache")


async def file(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """Load a file of the dashboard. It may be cached for good."""
    known = assets()
    found = known.files.get(call.path["path"])
    if found is None or call.path["version"] != known.version:
        raise NotFound
    return _answer(found, call, b"public, max-age=31536000, immutable")


def _answer(asset: Asset, call: Call[None, None], caching: bytes) -> Response:
    compressed = GZIP in call.headers.get(b"accept-encoding", b"")
    headers: Headers = ((b"vary", b"accept-encoding"),)
    if compressed:
        headers = (*headers, (b"content-encoding", GZIP))
    return Response(
        asset.compressed if compressed else asset.body,
        headers=headers,
        kind=asset.kind,
        guards=_guards(caching),
    )


def _guards(caching: bytes) -> Headers:
    others = {b"content-security-policy": POLICY, b"cache-control": caching}
    return tuple((name, others.get(name, value)) for name, value in GUARDS)


OPERATIONS: Final = [
    Operation("GET", "/", shell, OPEN),
    Operation("GET", "/assets/{version}/{path:path}", file, OPEN),
]
