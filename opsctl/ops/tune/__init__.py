"""tune: what claims cost on this database, which operational indexes pay, and changing them online."""
