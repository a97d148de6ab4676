"""Settings and where each came from: flag, environment, configuration files, default."""

from opsctl.config.keys import FORMATS, KEYS, Key, Setting
from opsctl.config.settings import NoDatabase, Settings

__all__ = ["FORMATS", "KEYS", "Key", "NoDatabase", "Setting", "Settings"]
