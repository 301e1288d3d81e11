"""The HTTP server: REST, the worker protocol, health. A thin translation of the store."""

from fairlane.server.config import Admission, ServerConfig
from fairlane.server.mounting import create_app, lifespan

__all__ = ["Admission", "ServerConfig", "create_app", "lifespan"]
