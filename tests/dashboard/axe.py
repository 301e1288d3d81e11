"""What a machine can tell of how a page is for those who do not see or hear it as we do."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from playwright.async_api import Page

AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
BAD = {"serious", "critical"}


async def judged(page: Page, where: str) -> list[str]:
    """What is seriously wrong with a page. Its policy has to be bypassed, as axe is not its own."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE)
    found: dict[str, Any] = await page.evaluate("axe.run({resultTypes: ['violations']})")
    return [
        f"{where}: {each['id']} ({each['impact']}): {node['html'][:150]} {node['failureSummary']}"
        for each in found["violations"]
        if each["impact"] in BAD
        for node in each["nodes"][:3]
    ]
