"""Buttons that ask before they do something."""

from __future__ import annotations

from playwright.async_api import Locator, expect


async def ask(where: Locator, name: str) -> Locator:
    """The question that a button asks. It is the only one of its name there, or the first."""
    await where.get_by_role("button", name=name, exact=True).first.click()
    dialog = where.page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    return dialog


async def answer(dialog: Locator, name: str) -> None:
    """Press one of its buttons."""
    await dialog.get_by_role("button", name=name, exact=True).click()
    await expect(dialog).to_have_count(0)


async def confirm(where: Locator, name: str, question: str) -> None:
    """Press a button, and once more where it asks this."""
    dialog = await ask(where, name)
    await expect(dialog).to_contain_text(question)
    await answer(dialog, name)
