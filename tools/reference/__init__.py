"""The pages of docs/ that are written from the code: `make docs`.

Each module renders one page. A test compares the files with what the modules print.
"""
