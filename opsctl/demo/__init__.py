"""opsctl shown on a database of its own: `python -m opsctl.demo`.

It starts a server for itself, runs the real commands and a real onestep worker against it, checks every result, and
removes all of it at the end.
"""
