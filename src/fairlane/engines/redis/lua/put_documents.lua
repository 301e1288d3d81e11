#!lua
-- needs: document_writes
return write_documents()
