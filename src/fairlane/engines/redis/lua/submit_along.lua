#!lua
-- needs: record accounting moves dependents admission document_writes submission
-- Store new tasks, write documents and cancel tasks, all or nothing. ARGV: as `submission` says. A script of its
-- own, because each name costs time in every call.
