"""Load the application that a command names."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from fairlane.cli.errors import UsageError
from fairlane.cli.settings import Settings
from fairlane.client.app import Fairlane
from fairlane.client.importing import import_failure
from fairlane.core.text import shown

BUILT_IN = "fairlane.handlers"
BUILT_IN_NAME = "built-in"


def load_application(settings: Settings) -> Fairlane:
    """Return the application that a worker runs: the one that is named, or built-in handlers."""
    if settings.app is None:
        app = Fairlane(
            settings.store_url,
            encryption_keys=settings.keys,
            compress_results=settings.compress_results,
            token=settings.server_token,
            blobs=settings.blobs,
            remake=settings.remake,
            name=BUILT_IN_NAME,
        )
        _import_built_in().register(app)
        app.store_settings = settings.store_settings
        return app
    app = load_named(settings.app, settings)
    if not app.tasks:
        raise UsageError(_no_tasks(settings.app, app))
    return app


def load_named(path: str, settings: Settings) -> Fairlane:
    """Return an application, on the store that the settings name if they do. It may have no
    tasks."""
    app = _load(path)
    try:
        app.discover()
    except Exception as error:
        raise UsageError(import_failure(f"A module that {path} includes", error)) from error
    if settings.store is not None:
        app.url, app.token = settings.store, settings.server_token
    if settings.keys:
        app.encryption_keys = settings.keys
    if settings.blobs is not None:
        app.blobs = settings.blobs
    if not settings.remake:
        app.remake = False
    if settings.compress_results is not None:
        app.compress_results = settings.compress_results
    app.store_settings = {**app.store_settings, **settings.store_settings}
    return app


def _import_built_in() -> ModuleType:
    try:
        return import_module(BUILT_IN)
    except ModuleNotFoundError as error:
        if error.name != BUILT_IN:
            raise
        raise UsageError(
            "There are no built-in handlers in this installation: name your application with "
            "--app module:app."
        ) from None


def _no_tasks(path: str, app: Fairlane) -> str:
    others = _other_applications(app)
    if not others:
        return f"{path} defines no tasks: mark functions with @app.task()."
    return (
        f"{path} defines no tasks, but there are tasks of {' and '.join(others)}: name that "
        "application, or make one in a module of its own and import it everywhere."
    )


def _other_applications(app: Fairlane) -> list[str]:
    """Return the addresses of applications with tasks that were imported along with this one."""
    found: dict[Fairlane, str] = {}
    for name, module in list(sys.modules.items()):
        for attribute, value in list(getattr(module, "__dict__", {}).items()):
            # By its type: isinstance would ask a lazy proxy for what it stands for.
            if issubclass(type(value), Fairlane) and value is not app and value.tasks:
                found.setdefault(value, f"{name}:{attribute}")
    return sorted(found.values())


def _load(path: str) -> Fairlane:
    module_name, colon, attributes = path.partition(":")
    if not (module_name and colon and attributes):
        raise UsageError(f"An application is named as module:app. Got {shown(path)}.")
    found: object = _import(module_name)
    for name in attributes.split("."):
        if not hasattr(found, name):
            raise UsageError(
                f"{module_name} has no {attributes}: an application is named module:app."
            )
        found = getattr(found, name)
    if not isinstance(found, Fairlane):
        raise UsageError(f"{path} is a {found.__class__.__name__}, not a Fairlane application.")
    return found


def _import(name: str) -> ModuleType:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(
                f"There is no module {name} here or among what is installed: run the command in "
                "the folder that has it."
            ) from error
        raise UsageError(import_failure(name, error)) from error
    except Exception as error:
        raise UsageError(import_failure(name, error)) from error
