"""`python -m pac_wrap`: the command line, where the script pac-wrap is not on the path."""

from pac_wrap.cli import main

if __name__ == "__main__":
    main()
