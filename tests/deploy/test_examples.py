"""The examples for compose, systemd and Kubernetes: what they run exists, and fits together."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import pytest
from starlette.routing import compile_path

from fairlane import __version__
from fairlane.cli.main import Root
from fairlane.cli.settings import PREFIX, resolve
from fairlane.server.operations import OPEN, READ, Operation
from fairlane.server.routes import OPERATIONS
from fairlane.server.routes.queues import Backlog
from fairlane.worker.probe import PATH
from tests.deploy.kit import DEPLOY, documents

COMPOSE = DEPLOY / "compose" / "compose.yaml"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
PROGRAM = "/srv/fairlane/.venv/bin/fairlane"
MARGIN = 15
"""Seconds that a worker may take to leave after its grace."""


def services() -> dict[str, Any]:
    (found,) = documents(COMPOSE)
    return {
        name: service
        for name, service in found["services"].items()
        if service["image"].startswith("fairlane:")
    }


def manifests(kind: str) -> list[Any]:
    return [
        each for path in KUBERNETES for each in documents(path) if each and each["kind"] == kind
    ]


def containers() -> Iterator[tuple[Any, Any]]:
    for deployment in manifests("Deployment"):
        pod = deployment["spec"]["template"]["spec"]
        for container in pod["containers"]:
            yield pod, container


def settings_of(unit: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", unit.read_text(), re.MULTILINE):
        found.setdefault(name, []).append(value)
    return found


def commands() -> Iterator[Sequence[str]]:
    for service in services().values():
        yield service["command"]
    for unit in UNITS:
        program, *rest = shlex.split(settings_of(unit)["ExecStart"][0])
        assert program == PROGRAM
        yield rest
    for _, container in containers():
        yield container["args"]


def parsed(arguments: Sequence[str]) -> click.Context:
    """A command line as `fairlane` understands it; raises where it does not."""
    root = Root("fairlane")
    name, *rest = arguments
    with click.Context(root) as context:
        command = root.get_command(context, name)
        assert command is not None, f"there is no command {name}"
        return command.make_context(name, rest)


def operation_at(path: str) -> Operation:
    (found,) = [
        each
        for each in OPERATIONS
        if each.method == "GET" and compile_path(each.path)[0].match(path)
    ]
    return found


@pytest.mark.parametrize("arguments", list(commands()), ids=" ".join)
def test_what_they_run_can_be_run(arguments: Sequence[str]) -> None:
    given = parsed(arguments).params
    resolve(given, {}, DEPLOY)


def test_comments_show_commands_that_exist() -> None:
    shown = re.findall(r"(?:fairlane|server) (token create [^>\n]*)", COMPOSE.read_text())
    shown += re.findall(
        r"fairlane (token [^\n]*)", (DEPLOY / "prometheus/prometheus.yml").read_text()
    )
    assert len(shown) == 2
    for line in shown:
        group, command, *rest = shlex.split(line)
        tokens = parsed([group, command]).command
        assert isinstance(tokens, click.Group)
        with click.Context(tokens) as context:
            create = tokens.get_command(context, command)
            assert create is not None
            create.make_context(command, list(rest))


def test_variables_that_they_set_exist() -> None:
    variables = {name for service in services().values() for name in service["environment"]}
    variables |= {entry["name"] for _, container in containers() for entry in container["env"]}
    for unit in UNITS:
        variables |= {pair.partition("=")[0] for pair in settings_of(unit).get("Environment", [])}
    known = {name.removeprefix(PREFIX).lower() for name in variables}
    assert known == {"store", "log_format"}
    resolve({}, {"FAIRLANE_STORE": "redis://h", "FAIRLANE_LOG_FORMAT": "json"}, DEPLOY)


def test_images_are_pinned_to_a_version() -> None:
    (compose,) = documents(COMPOSE)
    images = [service["image"] for service in compose["services"].values()]
    images += [container["image"] for _, container in containers()]
    images += re.findall(r"^FROM (\S+)", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    assert len(images) == 8
    for image in images:
        assert re.fullmatch(r"[a-z/]+:v?\d+\.\d+(\.\d+)?[a-z-]*", image), image
    assert {image for image in images if image.startswith("fairlane")} == {
        f"fairlane:{__version__}"
    }
    assert f"FAIRLANE_VERSION={__version__}\n" in (DEPLOY / "Dockerfile").read_text()


def test_no_password_has_a_default() -> None:
    (compose,) = documents(COMPOSE)
    for name, service in compose["services"].items():
        for variable, value in service.get("environment", {}).items():
            if "PASSWORD" in variable or "://" in str(value):
                assert re.search(r"\$\{\w+_PASSWORD:\?", value), (name, variable)
    assert "GF_SECURITY_ADMIN_PASSWORD" in compose["services"]["grafana"]["environment"]


def test_containers_are_confined() -> None:
    (compose,) = documents(COMPOSE)
    for name, service in compose["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert re.fullmatch(r"\d+[mg]", service["mem_limit"]), name
        assert bool(service.get("cap_add")) == (name == "database"), name
        published = [port for port in service.get("ports", ()) if not port.startswith("127.0.0.1:")]
        assert published == [], name
    for pod, container in containers():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        confined = container["securityContext"]
        assert confined["allowPrivilegeEscalation"] is False
        assert confined["readOnlyRootFilesystem"] is True
        assert confined["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
    for unit in UNITS:
        settings = settings_of(unit)
        assert settings["CapabilityBoundingSet"] == [""]
        assert settings["ProtectSystem"] == ["strict"]
        assert settings["MemoryMax"]


def test_workers_are_given_the_time_they_take() -> None:
    grace = parsed(services()["worker"]["command"]).params["grace"]
    assert int(services()["worker"]["stop_grace_period"].removesuffix("s")) >= float(grace) + MARGIN
    for unit in UNITS:
        arguments = shlex.split(settings_of(unit)["ExecStart"][0])[1:]
        grace = parsed(arguments).params.get("grace") or 30
        assert int(settings_of(unit)["TimeoutStopSec"][0]) >= float(grace) + MARGIN
        assert settings_of(unit)["KillMode"] == ["mixed"], "the supervisor tells its children"
    for pod, container in containers():
        grace = parsed(container["args"]).params.get("grace") or 30
        assert pod["terminationGracePeriodSeconds"] >= float(grace) + MARGIN


def test_probes_ask_what_anyone_may_ask() -> None:
    probes = [
        container[probe]["httpGet"]
        for _, container in containers()
        for probe in ("livenessProbe", "readinessProbe")
        if probe in container
    ]
    *of_server, of_worker = probes
    assert [probe["path"] for probe in of_server] == ["/healthz", "/readyz"]
    for probe in of_server:
        assert operation_at(probe["path"]).scopes == OPEN
        assert probe["port"] == "http"
    assert of_worker == {"path": PATH, "port": "health"}
    asked = re.search(r"http://127\.0\.0\.1:8000(/\w+)", str(services()["server"]["healthcheck"]))
    assert asked is not None
    assert operation_at(asked[1]).scopes == OPEN


def test_ports_fit_together() -> None:
    for _, container in containers():
        if container["name"] == "server":
            port = parsed(container["args"]).params["port"]
            assert {"name": "http", "containerPort": port} in container["ports"]
        else:
            port = int(parsed(container["args"]).params["health_port"])
            assert container["ports"] == [{"name": "health", "containerPort": port}]
    (service,) = manifests("Service")
    assert service["spec"]["ports"][0]["targetPort"] == "http"
    (scrape,) = documents(DEPLOY / "prometheus" / "prometheus.yml")[0]["scrape_configs"]
    port = parsed(services()["server"]["command"]).params["port"]
    assert scrape["static_configs"][0]["targets"] == [f"server:{port}"]
    assert operation_at(scrape["metrics_path"]).scopes == READ


def test_the_autoscaler_reads_a_number_that_there_is() -> None:
    (scaled,) = manifests("ScaledObject")
    (trigger,) = scaled["spec"]["triggers"]
    url = urlsplit(trigger["metadata"]["url"])
    (service,) = manifests("Service")
    assert (url.hostname, url.port) == (
        service["metadata"]["name"],
        service["spec"]["ports"][0]["port"],
    )
    operation = operation_at(url.path)
    assert (operation.returns, operation.scopes) == (Backlog, READ)
    assert trigger["metadata"]["valueLocation"] in Backlog.__struct_fields__
    assert int(trigger["metadata"]["targetValue"]) > 0
    (worker,) = [each for _, each in containers() if each["name"] == "worker"]
    assert url.path == f"/api/v1/queues/{parsed(worker['args']).params['queues']}/backlog"
    names = {deployment["metadata"]["name"] for deployment in manifests("Deployment")}
    assert scaled["spec"]["scaleTargetRef"]["name"] in names
    (authentication,) = manifests("TriggerAuthentication")
    assert trigger["authenticationRef"]["name"] == authentication["metadata"]["name"]


def test_selectors_find_their_pods() -> None:
    for deployment in manifests("Deployment"):
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
    (service,) = manifests("Service")
    pods = [each["spec"]["template"]["metadata"]["labels"] for each in manifests("Deployment")]
    assert service["spec"]["selector"] in pods


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_accepts_the_units(unit: Path, tmp_path: Path) -> None:
    tool = shutil.which("systemd-analyze")
    assert tool is not None, "Please install what Debian calls systemd."
    program = shutil.which("true")
    assert program is not None
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace(PROGRAM, program))
    done = subprocess.run(
        [tool, "verify", str(copy)], capture_output=True, text=True, check=False, timeout=60
    )
    complaints = [line for line in done.stderr.splitlines() if unit.name in line]
    assert (done.returncode, complaints) == (0, [])
