"""`python -m hardwood` is the `hardwood` command."""

from hardwood.cli.main import main

main()
