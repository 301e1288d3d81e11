"""The command line: everything that an operator does, on top of all other packages."""
