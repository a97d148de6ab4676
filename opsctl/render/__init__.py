"""Turn results into text for a terminal, a file or another program. Only cli calls this."""
