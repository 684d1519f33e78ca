"""``python -m actors`` is the command ``clearway``."""

from actors.cli.commands import main

if __name__ == "__main__":
    main()
