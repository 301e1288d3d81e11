#!lua flags=no-writes
-- Return the version of the catalogue, the controls and the lanes.
return {catalogue_version, call('HGETALL', CONTROLS), call('ZRANGE', LANES, 0, -1, 'WITHSCORES')}
