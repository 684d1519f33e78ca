"""``python -m actors`` is the command ``clearway``."""

from actors.cli.main import main

if __name__ == "__main__":
    main()
