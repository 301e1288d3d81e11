"""The HTTP server: REST, the worker protocol, health. A thin translation of the store."""

from fairlane.server.app import create_app, lifespan
from fairlane.server.config import Admission, ServerConfig

__all__ = ["Admission", "ServerConfig", "create_app", "lifespan"]
