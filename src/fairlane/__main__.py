"""`python -m fairlane` is `fairlane`."""

from fairlane.cli.main import main

main()
