#!lua
-- needs: documents
return write_documents()
