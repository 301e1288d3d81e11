"""What is said of a store whose version is not ours."""

import pytest

from fairlane.core.errors import SchemaMissing, SchemaTooNew, SchemaTooOld
from fairlane.core.versions import check_not_newer, check_ready


def test_a_store_of_our_version_is_ready() -> None:
    check_ready(3, 3)
    check_not_newer(2, 3)


def test_every_other_version_is_told_apart() -> None:
    with pytest.raises(SchemaMissing, match="migrate"):
        check_ready(0, 3)
    with pytest.raises(SchemaTooOld, match=r"version 2, .* needs 3: run `fairlane migrate`"):
        check_ready(2, 3)
    for check in (check_ready, check_not_newer):
        with pytest.raises(SchemaTooNew, match=r"version 4, .* knows 3: upgrade"):
            check(4, 3)
