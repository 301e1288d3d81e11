"""What a submission over HTTP costs: `fairlane server` beside an endpoint that stores nothing.

That is Starlette and msgspec on plain uvicorn, and on Fairlane's own protocol. Servers take turns
in one run; ratios are medians over the rounds. On a machine that has other work to do, CPU time
per request says more than requests per second.

    python -m bench.http [--store redis] [--rounds 5] [--seconds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bench import contest, machine, stores
from bench.load import Result
from bench.loops import use_uvloop
from fairlane.core.ids import new_id
from fairlane.server.http.listening import bind
from fairlane.server.http.serving import serve

KINDS = ("uvicorn", "fairlane")
EASE = 0.8
"""The share of a load at which latencies are looked at."""
AIM = 0.55
"""The share of what the bare endpoint reaches that is asked of ours."""


class Submission(msgspec.Struct):
    """A task as it is posted."""

    task_type: str
    parameters: dict[str, object]
    priority: str = "normal"


class Batch(msgspec.Struct):
    """Several."""

    tasks: list[Submission]


_one = msgspec.json.Decoder(Submission)
_many = msgspec.json.Decoder(Batch)


async def submit(request: Request) -> Response:
    """Answers as a server would, and stores nothing."""
    task = _one.decode(await request.body())
    answer = {"task_id": new_id(), "status": "queued", "priority": task.priority}
    return Response(msgspec.json.encode(answer), 201, media_type="application/json")


async def submit_batch(request: Request) -> Response:
    """The same for several."""
    tasks = _many.decode(await request.body()).tasks
    answer = {"tasks": [{"task_id": new_id(), "status": "queued"} for _ in tasks]}
    return Response(msgspec.json.encode(answer), 201, media_type="application/json")


def bare() -> Starlette:
    """The bare endpoint."""
    return Starlette(
        routes=[
            Route("/api/v1/tasks", submit, methods=["POST"]),
            Route("/api/v1/tasks/batch", submit_batch, methods=["POST"]),
        ]
    )


async def be_server(kind: str) -> None:
    """Serve the bare endpoint, after printing the port, until killed."""
    (sock,) = bind("127.0.0.1", 0)
    print(sock.getsockname()[1], flush=True)
    if kind == "fairlane":
        await serve(bare(), [sock], asyncio.Event())
        return
    config = uvicorn.Config(
        bare(), http="httptools", log_config=None, access_log=False, proxy_headers=False
    )
    await uvicorn.Server(config).serve([sock])


class Target(msgspec.Struct, frozen=True):
    """A server to put load on, and the process whose CPU time is looked at, if it is ours."""

    url: str
    process: int | None = None

    def cpu_seconds(self) -> float:
        """CPU time it has used."""
        if self.process is None:
            return 0.0
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def server(kind: str, module: str = "bench.http") -> Iterator[Target]:
    """A server in a process of its own."""
    command = [sys.executable, "-m", module, "--serve", kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Target(f"http://127.0.0.1:{int(process.stdout.readline())}", process.pid)
        finally:
            process.kill()


@contextmanager
def fairlane_server(store: str, source: Path = contest.ROOT / "src") -> Iterator[Target]:
    """`fairlane server` as one starts it, but that it refuses nothing however much is queued.

    `source` is where Fairlane's code is: that of another checkout, to compare versions.
    """
    admit_all = [word for grade in ("low", "normal", "all") for word in (f"--refuse-{grade}", "0")]
    command = [sys.executable, "-m", "fairlane", "server", "--store", store, "--port", "0"]
    environ = {**os.environ, "PYTHONPATH": str(source)}
    with subprocess.Popen(
        [*command, *admit_all], env=environ, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            (url,) = re.findall(r"http://[\d.:]+\d", process.stderr.readline())
            yield Target(url, process.pid)
        finally:
            process.terminate()


def loaded(url: str, *, batch: int, rate: float, seconds: float) -> Result:
    """Put load on a server from another process."""
    options = [f"--batch={batch}", f"--rate={rate}", f"--seconds={seconds}"]
    command = [sys.executable, "-m", "bench.load", url, *options]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return msgspec.json.decode(told, type=Result)


def compare(targets: dict[str, Target], rounds: int, seconds: float) -> None:
    """Print what each server does, and its ratio to the first."""
    for title, batch in (
        ("50 connections, single tasks", 1),
        ("50 connections, batches of 100", 100),
    ):
        found: dict[str, list[Result]] = {kind: [] for kind in targets}
        costs: dict[str, list[float]] = {kind: [] for kind in targets}
        for number in range(rounds):
            order = list(targets.items())
            for kind, target in order if number % 2 else reversed(order):
                before = target.cpu_seconds()
                result = loaded(target.url, batch=batch, rate=0.0, seconds=seconds)
                costs[kind].append(1e6 * (target.cpu_seconds() - before) / result.answered)
                found[kind].append(result)
        print(f"\n{title}")
        first = next(iter(targets))
        for kind, results in found.items():
            pairs = zip(results, found[first], strict=True)
            ratio = median(a.tasks_per_second / b.tasks_per_second for a, b in pairs)
            cost, bare_cost = median(costs[kind]), median(costs[first])
            typical = sorted(results, key=lambda each: each.tasks_per_second)[rounds // 2]
            print(f"  {kind:9} x{ratio:.3f}; CPU {cost:.1f} us a request, x{cost / bare_cost:.3f}")
            print(f"            {json.dumps(msgspec.to_builtins(typical))}")
            if batch == 1:
                _print_at_ease(targets[kind], typical.tasks_per_second, seconds)
        if batch == 1:
            bare = median(result.tasks_per_second for result in found[first])
            *_, ours = targets
            print(f"  {ours} at the load that is asked of it, {AIM:.0%} of the bare endpoint")
            _print_at_ease(targets[ours], AIM * bare, seconds)


def _print_at_ease(target: Target, rate: float, seconds: float) -> None:
    result = loaded(target.url, batch=1, rate=EASE * rate, seconds=seconds)
    print(f"            at {EASE:.0%} of that: {json.dumps(msgspec.to_builtins(result))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    stores.add_argument(parser)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--serve", choices=KINDS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    use_uvloop()
    if args.serve:
        asyncio.run(be_server(args.serve))
        return
    print(machine.describe())
    steal = machine.Steal()
    for store in args.store or ("sqlite", "redis"):
        with ExitStack() as stack:
            targets = {kind: stack.enter_context(server(kind)) for kind in KINDS}
            name, url = stack.enter_context(stores.opened(store))
            targets[name] = stack.enter_context(fairlane_server(url))
            print(f"\n## {name}")
            compare(targets, args.rounds, args.seconds)
    print(f"\nsteal {steal.percent():.1f} %")


if __name__ == "__main__":
    main()
