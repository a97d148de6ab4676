"""Run by `.venv/bin/python benchmarks/claims`: finds what the tests have for it (servers, onestep's backend), then bench.py."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2] / "tests" / name) for name in (".", "conformance", "reference")]
    importlib.import_module("bench").main()
