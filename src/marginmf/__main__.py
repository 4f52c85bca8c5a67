"""``python -m marginmf``: the command line."""

from marginmf.cli import main

if __name__ == "__main__":
    main()
