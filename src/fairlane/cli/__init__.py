"""The command line: everything an operator does, put together from the layers below."""
