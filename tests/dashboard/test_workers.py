"""The page of the workers: how they are, what they have, and how one is sent home."""

from __future__ import annotations

from playwright.async_api import Locator, Page, expect

from fairlane.core.model import Beat, Worker, WorkerStatus
from tests.dashboard.kit import CONCURRENCY, Dashboard, Site
from tests.e2e.chaos.arena import until
from tests.fixtures.process import gone


def worker(page: Page, end: str) -> Locator:
    return page.locator(".worker", has=page.get_by_role("heading", name=f"…{end}"))


def card(page: Page, title: str) -> Locator:
    return page.locator(".card", has_text=title)


async def own(site: Site) -> Worker:
    """The worker that runs the tasks of the site."""
    (found,) = (each for each in await site.world.run(site.world.ops.workers()) if each.types)
    return found


async def test_workers_and_what_they_have(dashboard: Dashboard) -> None:
    site, world = dashboard.site, dashboard.site.world
    worker_id = (await own(site)).worker_id
    task_id = await site.submit("hold", {"file": site.file("shown"), "percent": 25})
    await site.reaches(task_id, "executing")
    named = frozenset(f"queue-{number}" for number in range(10, 30))
    able = await world.worker(
        capacity=4, queues=named, capabilities=frozenset({"gpu"}), host="far", version="9.9"
    )
    sick = Beat(able, 2, WorkerStatus.UNHEALTHY, {"memory_bytes": 25e6, "disk_free": "low"})
    await world.run(world.ops.heartbeat(sick))

    page = await dashboard.open("workers")
    shown = worker(page, worker_id[-8:])
    await expect(shown).to_contain_text("active")
    await expect(shown).to_contain_text(f"1 of {CONCURRENCY}")
    await expect(shown).to_contain_text("all queues")
    await expect(shown).to_contain_text("types: echo, fail, flaky")
    await expect(shown.locator(".worker-health")).to_contain_text("memory")
    await expect(shown.get_by_role("img", name="25 % done")).to_be_visible()
    other = worker(page, able[-8:])
    await expect(other).to_contain_text("unhealthy")
    await expect(other).to_contain_text("far version 9.9")
    await expect(other).to_contain_text("20 queues: queue-10, queue-11")
    await expect(other).to_contain_text("and 8 more")
    await expect(other).to_contain_text("all types · capabilities: gpu")
    await expect(other.locator(".worker-health")).to_have_text("memory 25 MBdisk free low")
    await expect(card(page, "Active")).to_contain_text("of 2")
    await expect(card(page, "Places")).to_contain_text(str(CONCURRENCY + 4))
    await expect(card(page, "Used")).to_have_text("Used1")
    await expect(card(page, "Free")).to_contain_text(str(CONCURRENCY - 1))

    await shown.get_by_role("link", name=f"…{task_id[-8:]}").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("hold executing")
    site.release("shown")
    await site.reaches(task_id, "completed")
    await page.go_back()
    await expect(shown).to_contain_text(f"0 of {CONCURRENCY}")
    await other.get_by_role("link").click()
    await expect(page.locator(".worker")).to_have_count(1)
    await page.get_by_role("link", name="Show all").click()
    await expect(page.locator(".worker")).to_have_count(2)
    await world.run(world.ops.forget(able))
    await expect(page.locator(".worker")).to_have_count(1)

    await dashboard.open("workers", id=able)
    await expect(page.get_by_role("heading", name="no longer known")).to_be_visible()
    ran = page.get_by_role("link", name="The tasks that it ran")
    await expect(ran).to_have_attribute("href", f"#/tasks?worker={able}")


async def test_types_that_a_worker_holds_back(dashboard: Dashboard) -> None:
    world = dashboard.site.world
    holding = await world.worker(types=frozenset({"hang", "freeze"}), lease=3600.0)
    told = {"pid": 7, "held_back": ["hang"]}
    await world.run(world.ops.heartbeat(Beat(holding, 0, health=told)))
    page = await dashboard.open("workers")
    shown = worker(page, holding[-8:])
    await expect(shown).to_contain_text("Holds backhang handlers hang")
    await expect(shown.locator(".worker-health")).to_have_text("pid 7")
    for type in ("hang", "freeze"):
        await dashboard.site.submit(type)
    await dashboard.open("queues")
    types = page.get_by_role("table", name="Types")
    await expect(types.locator("tr[data-name='hang']")).to_contain_text("no worker")
    await expect(types.locator("tr[data-name='freeze']")).not_to_contain_text("no worker")
    await world.run(world.ops.heartbeat(Beat(holding, 0, health={})))
    await dashboard.open("workers")
    await expect(shown).not_to_contain_text("Holds back")
    await world.run(world.ops.forget(holding))


async def test_a_silent_worker_is_warned_of_and_a_dead_one_put_aside(dashboard: Dashboard) -> None:
    world = dashboard.site.world
    page = await dashboard.open("workers")
    silent, dead = await world.worker(lease=10.0), await world.worker(lease=0.5)
    await expect(worker(page, silent[-8:])).to_contain_text("of 10 s")
    folded = page.get_by_text("1 dead worker")
    await expect(worker(page, dead[-8:])).to_be_hidden()
    await folded.click()
    await expect(worker(page, dead[-8:])).to_contain_text("dead")
    await expect(worker(page, dead[-8:]).get_by_role("button", name="Drain")).to_have_count(0)
    for each in (silent, dead):
        await world.run(world.ops.forget(each))
    await expect(page.locator(".worker")).to_have_count(1)


async def test_a_worker_is_drained(alone: Dashboard) -> None:
    site, world = alone.site, alone.site.world
    last = await own(site)
    task_id = await site.submit("hold", {"file": site.file("last")})
    await site.reaches(task_id, "executing")
    other = await world.worker(types=frozenset())  # it never asks, and so never hears of it
    page = await alone.open("workers")
    await drained(page, other, "It takes no further task, and leaves.")
    shown = worker(page, other[-8:])
    await expect(shown).to_contain_text("draining")
    await expect(shown.get_by_role("button", name="Drain")).to_be_disabled()
    await expect(card(page, "Active")).to_contain_text("of 2")
    status = {each.worker_id: each.status for each in await world.run(world.ops.workers())}
    assert status[other] is WorkerStatus.DRAINING
    await world.run(world.ops.forget(other))

    await drained(page, last.worker_id, "grace time to finish the 1 task it has")
    await expect(page.get_by_role("heading", name="No worker is running")).to_be_visible()
    await expect(page.get_by_text(f"fairlane worker --server {site.address}/")).to_be_visible()
    assert await world.run(world.ops.workers()) == []
    await site.reaches(task_id, "queued")  # the worker of this site has no grace

    async def ended() -> bool:
        return gone(int(last.host.rpartition(":")[2]))

    await until(ended, "the worker's process ended", 15)


async def test_a_worker_that_is_gone_cannot_be_drained(dashboard: Dashboard) -> None:
    dashboard.expects("404")
    world = dashboard.site.world
    former = await world.worker(types=frozenset())
    page = await dashboard.open("workers", id=former)
    await page.get_by_role("button", name="Drain").click()
    await world.run(world.ops.forget(former))
    await page.get_by_role("dialog").get_by_role("button", name="Drain").click()
    await expect(page.get_by_role("heading", name="no longer known")).to_be_visible()


async def drained(page: Page, worker_id: str, told: str) -> None:
    await worker(page, worker_id[-8:]).get_by_role("button", name="Drain").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text(told)
    await dialog.get_by_role("button", name="Drain").click()
