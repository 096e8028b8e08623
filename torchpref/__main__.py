"""``python -m torchpref`` is the command ``torchpref``."""

from torchpref.cli import main

if __name__ == "__main__":
    main()
