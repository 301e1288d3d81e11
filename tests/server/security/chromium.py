"""The Chromium of this machine."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, async_playwright

NAMES = ("evil.test", "rebound.test")
"""Names that lead to this machine; no others lead anywhere."""


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A browser that reaches this machine alone."""
    path = shutil.which("chromium")
    if path is None:  # never a skip: what is not tested does not hold
        pytest.fail("Chromium is missing: `make setup` installs it.", pytrace=False)
    mapped = ", ".join(f"MAP {name} 127.0.0.1" for name in NAMES)
    rules = f"{mapped}, MAP localhost 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=path, args=[f"--host-resolver-rules={rules}"]
        )
        try:
            yield browser
        finally:
            await browser.close()
