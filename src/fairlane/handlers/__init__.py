"""Built-in handlers, which a worker without an application runs.

echo      returns its payload
sleep     waits: {"seconds": …}
webhook   makes a request: {"url": "https://…", "body": …}
email     sends a message: {"to": "a@example.com", "subject": "…", "text": "…"}
"""

from __future__ import annotations

from fairlane.client.app import Fairlane
from fairlane.handlers.basic import echo, sleep
from fairlane.handlers.mail import email_handler
from fairlane.handlers.settings import InvalidSetting, MailSettings, Settings, WebhookSettings
from fairlane.handlers.webhook import webhook_handler

__all__ = ["InvalidSetting", "MailSettings", "Settings", "WebhookSettings", "register"]


def register(app: Fairlane, settings: Settings | None = None) -> None:
    """Add the handlers to an application. The default settings are those of the environment.

    `email` is left out if no mail server is configured: its tasks wait for another worker.
    """
    settings = Settings.from_environment() if settings is None else settings
    app.task(name="echo")(echo)
    app.task(name="sleep")(sleep)
    if settings.mail is not None:
        app.task(name="email")(email_handler(settings.mail))
    app.task(name="webhook")(webhook_handler(settings.webhook))
