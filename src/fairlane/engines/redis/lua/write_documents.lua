#!lua flags=allow-oom
-- needs: documents
return write_documents()
