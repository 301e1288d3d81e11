"""Pictures of every page of the dashboard, in light, in dark and on a phone: `make screenshots`.

Of a real server that is busy with the demo, which takes a minute to have something to show.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright

FOLDER: Final = Path("build") / "screenshots"
WARM_UP_SECONDS: Final = 60
PAGES: Final = {
    "overview": "#/",
    "tasks": "#/tasks",
    "workflows": "#/workflows",
    "schedules": "#/schedules",
    "queues": "#/queues",
    "workers": "#/workers",
    "dead": "#/dead",
    "submit": "#/submit",
    "schedule-form": "#/schedule",
}
LISTS: Final = {
    "task": "#/tasks?status=dead_letter",
    "workflow": "#/workflows?state=failed&name=order",
    "schedule": "#/schedules",
}
"""Where there is a link to one of them: the first one is followed."""
VIEWS: Final = ("graph", "timeline", "list")
"""Of a workflow."""
LOOKS: Final[dict[str, tuple[str, int, int]]] = {
    "light": ("light", 1280, 1180),
    "dark": ("dark", 1280, 1180),
    "phone": ("light", 360, 1400),
}
"""Colours and size. Not the whole length of a page: what is out of sight is not drawn."""


def main() -> None:
    """Write all pictures anew."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with demo() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        time.sleep(WARM_UP_SECONDS)
        for look in LOOKS:
            _look(browser, address, look)
        browser.close()
    print(f"{len(list(FOLDER.glob('*.png')))} pictures in {FOLDER}")


@contextmanager
def demo() -> Iterator[str]:
    """The address of a server that is busy with the demo."""
    command = [sys.executable, "-m", "fairlane", "up", "--demo", "--port", "0"]
    with TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        with said.open("w") as log:
            process = subprocess.Popen(command, cwd=folder, stderr=log)
        try:
            yield _address(process, said)
        finally:
            process.kill()  # told to stop, it would wait for its tasks
            process.wait()


def _address(process: subprocess.Popen[bytes], said: Path) -> str:
    while process.poll() is None:
        if found := re.search(r"http://[\d.]+:\d+", said.read_text()):
            return found[0]
        time.sleep(0.1)
    raise SystemExit(f"The demo did not start: {said.read_text()}")


def _look(browser: Browser, address: str, look: str) -> None:
    scheme, width, height = LOOKS[look]
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    for name, place in PAGES.items():
        page.goto(f"{address}/{place}")
        _settle(page)
        page.screenshot(path=FOLDER / f"{name}-{look}.png")
    for name, place in LISTS.items():
        page.goto(f"{address}/{place}")
        _settle(page)
        page.locator(f"table a[href*='{name}s/']").first.click()
        _settle(page)
        page.screenshot(path=FOLDER / f"{name}-{look}.png")
        if name == "workflow":
            _views(page, look)
    page.keyboard.press("Control+k")
    page.wait_for_timeout(500)
    page.screenshot(path=FOLDER / f"palette-{look}.png")
    page.close()


def _views(page: Page, look: str) -> None:
    address = page.url
    for view in VIEWS:
        page.goto(f"{address}?view={view}")
        _settle(page)
        page.screenshot(path=FOLDER / f"workflow-{view}-{look}.png")


def _settle(page: Page) -> None:
    page.wait_for_load_state("networkidle", timeout=5_000)
    page.locator("main .loading").first.wait_for(state="detached")
    page.wait_for_timeout(1_500)


if __name__ == "__main__":
    main()
