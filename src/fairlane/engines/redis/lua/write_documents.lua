#!lua flags=allow-oom
-- needs: document_writes
return write_documents()
