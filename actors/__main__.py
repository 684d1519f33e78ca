"""``python -m actors`` is the command ``clearway``."""

import signal


def run() -> None:
    """Run the command. Ctrl-C ends it at once while its modules are imported, without a traceback."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from actors.cli.main import main

    signal.signal(signal.SIGINT, before)
    main()


if __name__ == "__main__":
    run()
