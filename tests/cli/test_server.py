"""`fairlane server` and `fairlane up` as people meet them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from fairlane import Fairlane
from fairlane.cli.errors import EXIT_USAGE, UsageError
from fairlane.cli.serving import config_of, is_exposed, is_local
from fairlane.cli.settings import resolve
from tests.cli.kit import Cli, run, write_app
from tests.cli.test_processes import Running, running

pytestmark = pytest.mark.timeout(110)

SECONDS = 30


class Site:
    """A server that runs, and requests to it."""

    def __init__(self, process: Running) -> None:
        self.process = process
        process.wait_for("Ctrl-C stops it.")
        found = re.search(r"http://(\S+):(\d+)\. Ctrl-C", process.said)
        assert found is not None
        self.host, self.port = found[1].strip("[]"), int(found[2])

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Status and JSON of an answer."""
        connection = HTTPConnection(self.host, self.port, timeout=SECONDS)
        try:
            sent = None if body is None else json.dumps(body)
            kind = {} if body is None else {"content-type": "application/json"}
            connection.request(method, path, sent, {**kind, **headers})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def submit(self, **headers: str) -> str:
        body = {"task_type": "echo", "parameters": {"n": 1}}
        status, told = self.ask("POST", "/api/v1/tasks", body, **headers)
        assert status == 201, told
        task_id: str = told["task_id"]
        return task_id


@pytest.fixture
def server(ready: Cli) -> Iterator[Site]:
    with running("server", "--port", "0") as process:
        yield Site(process)


def token(cli: Cli, *scopes: str) -> dict[str, str]:
    given = [word for scope in scopes for word in ("--scope", scope)]
    secret = cli.ok("token", "create", "--name", "it", *given).strip()
    return {"Authorization": f"Bearer {secret}"}


def test_serving(server: Site) -> None:
    assert server.ask("GET", "/healthz")[0] == 200
    task_id = server.submit()
    assert server.ask("GET", f"/api/v1/tasks/{task_id}")[1]["status"] == "queued"
    assert server.ask("GET", "/api/v1/queues", Host="evil.example")[0] == 421
    assert server.process.stop() == 0
    assert "Traceback" not in server.process.said


@pytest.mark.parametrize(
    ("command", "settings", "named"),
    [
        ("server", {"host": "0.0.0.0"}, "0.0.0.0"),
        ("server", {"host": "::", "workers": "2"}, "::"),
        ("server", {"allow_hosts": "queue.example"}, "A server with --allow-hosts"),
        ("up", {"host": "0.0.0.0"}, "0.0.0.0"),
    ],
)
def test_others_do_not_reach_it_without_tokens(
    ready: Cli,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    settings: dict[str, str],
    named: str,
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(f"FAIRLANE_{name.upper()}", value)
    done = run(command, "--port", "0")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        f"Error: {named} can be reached from other machines, and no tokens are set up: make one "
        "with `fairlane token create`, or listen on 127.0.0.1 alone.\n"
    )


def test_others_reach_it_with_tokens(ready: Cli) -> None:
    admin = token(ready, "admin")
    with running("server", "--port", "0", "--host", "0.0.0.0") as process:
        site = Site(process)
        assert site.host == "0.0.0.0"
        assert site.ask("GET", "/api/v1/queues")[0] == 401
        assert site.ask("GET", "/api/v1/queues", **admin)[0] == 200
        # Even when the last token is gone.
        ready.ok("token", "revoke", ready.json("token", "list")["tokens"][0]["token_id"])
        deadline = time.monotonic() + SECONDS
        while site.ask("GET", "/api/v1/queues", **admin)[0] != 401:
            assert time.monotonic() < deadline
        assert site.ask("GET", "/api/v1/queues")[0] == 401
        assert process.stop() == 0


def test_a_port_that_is_taken(ready: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for command in ("server", "up"):
            done = run(command, "--port", str(port))
            assert done.returncode == 1
            assert done.stderr == (
                f"Error: Another program listens on 127.0.0.1:{port}: stop it, or choose another "
                f"port with --port {port + 1}, or --port 0 for any free one.\n"
            )


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--port", "70000"), "--port is a port"),
        (("--host", "no.such.invalid"), "no host named 'no.such.invalid'"),
        (("--store", "mysql://x"), "mysql"),
        (("--store", "sqlite:////no/such/folder/x.db"), "folder"),
        (("--app", "nothing:app"), "nothing"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(ready: Cli, args: tuple[str, ...], told: str) -> None:
    token(ready, "read")
    done = run("server", *args)
    assert done.returncode in {1, EXIT_USAGE}
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("Error: ")
    assert told in done.stderr


def test_a_store_that_is_away_is_waited_for(ready: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    with running("server", "--port", "0", "--store", f"redis://:secret@127.0.0.1:{port}") as held:
        site = Site(held)
        assert "The server waits for it." in held.said
        assert "secret" not in held.said
        assert site.ask("GET", "/healthz")[0] == 200
        status, answer = site.ask("POST", "/api/v1/tasks", {"task_type": "a", "parameters": {}})
        assert (status, answer["error"]["code"]) == (503, "store_unavailable")
        assert held.stop() == 0
        assert "Traceback" not in held.said


def children(pid: int) -> set[int]:
    """The processes that a process has started."""
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def test_several_processes_share_a_port(ready: Cli) -> None:
    with running("server", "--port", "0", "--workers", "2") as process:
        site = Site(process)
        deadline = time.monotonic() + SECONDS
        while len(before := children(process.process.pid)) < 2:
            assert time.monotonic() < deadline
        site.submit()
        victim = min(before)
        os.kill(victim, signal.SIGKILL)
        process.wait_for("was ended by SIGKILL: it is restarted in 0.5 s.")
        for _ in range(10):
            site.submit()  # the other one goes on
        while len(children(process.process.pid) - {victim}) < 2:
            assert time.monotonic() < deadline
        for _ in range(10):
            site.submit()
        assert len(ready.json("list", "--limit", "100")["tasks"]) == 21
        assert process.stop() == 0
        assert "Traceback" not in process.said


def waiting(site: Site, task_id: str) -> tuple[threading.Thread, list[Any]]:
    """Someone who waits for a result for a long time."""
    told: list[Any] = []

    def wait() -> None:
        try:
            told.append(site.ask("GET", f"/api/v1/tasks/{task_id}/result?wait=60"))
        except OSError as error:
            told.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread, told


@pytest.mark.parametrize("workers", [1, 2])
def test_whoever_waits_does_not_keep_it(ready: Cli, workers: int) -> None:
    with running("server", "--port", "0", "--workers", str(workers)) as process:
        site = Site(process)
        thread, told = waiting(site, site.submit())
        deadline = time.monotonic() + SECONDS
        while not established(site.port):
            assert time.monotonic() < deadline
        began = time.monotonic()
        assert process.stop() == 0
        assert time.monotonic() - began < SECONDS
        thread.join(SECONDS)
        assert told[0][0] == 202  # not yet: ask again
        assert "Traceback" not in process.said


def established(port: int) -> bool:
    """Whether someone is connected to a port."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return any(each[1].endswith(f":{port:04X}") and each[3] == "01" for each in fields)


def test_a_second_signal_ends_it_at_once(server: Site) -> None:
    # A request whose body never comes keeps a server for as long as its grace is.
    with socket.create_connection((server.host, server.port), timeout=SECONDS) as client:
        client.sendall(
            b"POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
            b"Expect: 100-continue\r\nContent-Type: application/json\r\n\r\n"
        )
        assert client.recv(100).startswith(b"HTTP/1.1 100")
        assert server.process.stop(at_once=True) == 0
    assert "Traceback" not in server.process.said


def test_everything_in_one(ready: Cli) -> None:
    with running("up", "--port", "0") as process:
        site = Site(process)
        task_id = site.submit()
        status, answer = site.ask("GET", f"/api/v1/tasks/{task_id}/result?wait=50")
        assert (status, answer["status"], answer["result"]) == (200, "completed", {"n": 1})
        assert site.ask("GET", "/api/v1/queues", Host="evil.example")[0] == 421
        assert process.stop() == 0
        assert "Traceback" not in process.said


def test_an_application_of_ones_own(ready: Cli) -> None:
    write_app()
    with running("server", "--port", "0", "--app", "shop:app") as process:
        Site(process).submit()
        assert process.stop() == 0
    assert len(ready.json("list")["tasks"]) == 1


def test_an_application_without_tasks(ready: Cli) -> None:
    """A server runs no tasks. Only a worker has nothing to do with such an application."""
    Path("bare.py").write_text(
        "from fairlane import Fairlane\napp = Fairlane('sqlite:///fairlane.db')\n"
    )
    with running("server", "--port", "0", "--app", "bare:app") as process:
        Site(process).submit()
        assert process.stop() == 0
    assert len(ready.json("list")["tasks"]) == 1
    done = run("worker", "--app", "bare:app")
    assert done.returncode == EXIT_USAGE
    assert "bare:app defines no tasks: mark functions" in done.stderr


def test_an_application_without_tasks_beside_one_with_tasks(ready: Cli) -> None:
    write_app()
    Path("beside.py").write_text(
        "from fairlane import Fairlane\n"
        "from shop import greet\n"
        "app, jobs = Fairlane(), Fairlane()\n"
        "@jobs.task\n"
        "async def work() -> None: ...\n"
    )
    done = run("worker", "--app", "beside:app")
    assert done.returncode == EXIT_USAGE
    named = "there are tasks of beside:jobs and shop:app: name that application"
    assert f"beside:app defines no tasks, but {named}" in done.stderr


# -- what settings come to -------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost", "LOCALHOST"])
def test_local(host: str) -> None:
    assert is_local(host)


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "", "10.0.0.1", "127.1", "2130706433", "127.0.0.1.evil.example", "0", "*"],
)
def test_not_local(host: str) -> None:
    assert not is_local(host)


def test_settings() -> None:
    flags = {
        "allow_hosts": "Queue.example,b",
        "allow_origins": "https://a.example",
        "per_minute": "100",
        "lanes_per_hour": "0",
        "refuse_low": 0,
        "refuse_all": "7",
        "start_within": "12.5",
    }
    settings = resolve(flags, {}, Path("/nonexistent"))
    assert is_exposed(settings)
    config = config_of(settings)
    assert config.tokens_required
    assert config.hosts is not None
    assert {"Queue.example", "b", "localhost", "[::1]"} <= config.hosts
    assert config.origins == {"https://a.example"}
    admission = config.admission
    assert (admission.per_minute, admission.per_hour) == (100, None)
    assert admission.lanes_per_hour is None
    assert (admission.low, admission.normal, admission.all) == (None, 50_000, 7)
    assert config.start_within == 12.5
    # The processes of `--workers` are told the same.
    assert resolve({}, settings.environment(), Path("/nonexistent")) == settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("workers", "0"),
        ("per_minute", "0"),
        ("port", "-1"),
        ("refuse_low", "-1"),
        ("refuse_low", "x"),
        ("refuse_all", False),
        ("start_within", "-1"),
        ("start_within", "nan"),
        ("start_within", "86401"),
        ("start_within", "soon"),
        ("allow_hosts", ","),
    ],
)
def test_settings_that_cannot_be(name: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"--{name.replace('_', '-')} "):
        resolve({name: value}, {}, Path("/nonexistent"))


def test_nothing_but_this_machine_unless_told() -> None:
    config = config_of(resolve({}, {}, Path("/nonexistent")))
    assert (config.tokens_required, config.hosts, config.origins) == (False, None, frozenset())
    assert config.start_within == 30.0
    assert config_of(resolve({"start_within": "0"}, {}, Path("/nonexistent"))).start_within is None


def test_a_shop_to_look_at(ready: Cli) -> None:
    with running("up", "--demo", "--port", "0") as process:
        site = Site(process)
        deadline = time.monotonic() + 10  # as promised in the README
        while True:
            stats = site.ask("GET", "/api/v1/queue/stats")[1]
            busy = {state for state, count in stats["by_status"].items() if count}
            if busy >= {"queued", "executing", "completed"} and stats["workers"]["active"] == 2:
                break
            assert time.monotonic() < deadline, stats
            time.sleep(0.1)
        types = {each["type"] for each in site.ask("GET", "/api/v1/types")[1]["types"]}
        assert {"send_email", "charge_card", "deliver_webhook"} <= types


def test_the_shop_has_schedules(ready: Cli) -> None:
    with running("up", "--demo", "--port", "0"), Fairlane("sqlite:///fairlane.db") as app:
        deadline = time.monotonic() + 10
        while True:
            found = {each.schedule_id: each for each in app.schedules.list_sync().schedules}
            if len(found) == 4 and found["newsletter"].pause is not None:
                break
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        assert {each.owner for each in found.values()} == {"shop", None}
        assert found["newsletter"].pause.note == "until the new text is there"
        assert found["nightly-report"].tz == "Europe/Berlin"


def test_the_shop_is_an_application_of_its_own(ready: Cli) -> None:
    done = run("up", "--demo", "--app", "nothing:app")
    assert done.returncode == EXIT_USAGE
    assert done.stderr == (
        "Error: The demo is an application of its own: leave out --app, or --demo.\n"
    )
