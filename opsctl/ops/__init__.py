"""One module for each verb: plain functions that return data."""
