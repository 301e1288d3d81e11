#!lua flags=no-writes
-- needs: documents
-- Return the version of the catalogue, the controls, the lanes and the settings.
return {catalogue_version, call('HGETALL', CONTROLS), call('ZRANGE', LANES, 0, -1, 'WITHSCORES'), stored_settings()}
