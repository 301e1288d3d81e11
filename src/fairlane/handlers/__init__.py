"""Built-in handlers, which a worker without an application runs.

echo      returns its payload
sleep     waits: {"seconds": …}
webhook   makes a request: {"url": "https://…", "body": …}
email     sends a message: {"to": "a@example.com", "subject": "…", "text": "…"}
"""

from __future__ import annotations

import logging

from fairlane.client.app import Fairlane
from fairlane.handlers.basic import echo, sleep
from fairlane.handlers.mail import email_handler
from fairlane.handlers.settings import InvalidSetting, MailSettings, Settings, WebhookSettings

__all__ = ["InvalidSetting", "MailSettings", "Settings", "WebhookSettings", "register"]

logger = logging.getLogger("fairlane.handlers")


def register(app: Fairlane, settings: Settings | None = None) -> None:
    """Add the handlers to an application. The default settings are those of the environment.

    `email` is left out if no mail server is configured, `webhook` if its library is missing: their
    tasks wait for another worker.
    """
    settings = Settings.from_environment() if settings is None else settings
    app.task(name="echo")(echo)
    app.task(name="sleep")(sleep)
    if settings.mail is not None:
        app.task(name="email")(email_handler(settings.mail))
    try:
        from fairlane.handlers.webhook import webhook_handler  # noqa: PLC0415 (needs an extra)
    except ModuleNotFoundError as error:
        if error.name != "h11":
            raise
        logger.warning("Webhook tasks cannot run here: pip install 'fairlane[webhook]' first")
    else:
        app.task(name="webhook")(webhook_handler(settings.webhook))
