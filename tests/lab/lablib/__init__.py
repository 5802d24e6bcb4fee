"""The lab's control code. Standard library only: the services live in a virtualenv of their own."""
