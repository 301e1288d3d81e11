"""What the core composes is part of the contract, and no engine composes it again."""

from fairlane.core.composed import Composed
from fairlane.core.store import Operations
from fairlane.engines.postgres.engine import PostgresOperations
from fairlane.engines.redis.engine import RedisOperations
from fairlane.engines.sqlite.engine import SqliteOperations

COMPOSED = {name for name in vars(Composed) if not name.startswith("_")}


def test_it_is_part_of_the_contract() -> None:
    assert "settle" in COMPOSED
    assert set(dir(Operations)) >= COMPOSED


def test_no_engine_has_its_own() -> None:
    for engine in (SqliteOperations, PostgresOperations, RedisOperations):
        assert not COMPOSED & vars(engine).keys()
