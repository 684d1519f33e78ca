"""``python -m actors`` is the command ``clearway``."""

from actors.cli import main

if __name__ == "__main__":
    main()
