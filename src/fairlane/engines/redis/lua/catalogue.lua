#!lua flags=no-writes
-- Lanes and controls, and the version they stand at.
return {catalogue_version, call('HGETALL', CONTROLS), call('ZRANGE', LANES, 0, -1, 'WITHSCORES')}
