#!lua flags=allow-oom
-- needs: document_writes catalogue
-- Write the settings of the store. ARGV: as `write_documents` says.
bump()  -- written with the document, or not at all
return write_documents()
