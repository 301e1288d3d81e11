#!lua
-- needs: record accounting moves dependents admission submission
-- Store new tasks, all or none. ARGV: as `submission` says, with nothing along.
