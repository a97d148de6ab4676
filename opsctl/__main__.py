"""`python -m opsctl` is `opsctl`."""

from opsctl.cli.main import main

if __name__ == "__main__":
    main()
