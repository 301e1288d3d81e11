"""The errors of Fairlane, which are described in `fairlane.core.errors`."""

from fairlane.core.errors import *  # noqa: F403 (every class there is public)
