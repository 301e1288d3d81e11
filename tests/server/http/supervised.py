"""Two processes that serve one port, each answering with its process id.

Run without arguments it is their supervisor, and prints the port; children get the socket's number.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import uvloop
from starlette.types import Receive, Scope

from fairlane.cli.supervisor import Supervisor
from fairlane.server.http.listening import bind, inherited
from fairlane.server.http.serving import serve
from fairlane.server.responses import Response, Send


async def supervise() -> int:
    (sock,) = bind("127.0.0.1", 0)
    print(sock.getsockname()[1], flush=True)  # noqa: T201
    command = [sys.executable, "-m", "tests.server.http.supervised", str(sock.fileno())]
    descriptors = [sock.fileno()]
    return await Supervisor(command, os.environ, 2, kind="server", descriptors=descriptors).run()


async def be_child(descriptor: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_reader(0, stop.set)  # the supervisor is gone

    async def answer(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await Response(str(os.getpid()).encode()).send(send)

    await serve(answer, [inherited(descriptor)], stop)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(be_child(int(sys.argv[1])))
    else:
        sys.exit(asyncio.run(supervise()))
