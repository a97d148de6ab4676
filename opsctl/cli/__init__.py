"""The command line: one thin module for each command, which parses, calls one function and renders."""
