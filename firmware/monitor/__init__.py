"""The monitor: C sources of its own, and its table by a path of its own. Standard library only; nothing of the controller's
generator or of `streetflow` is used, so that one mistake can't be made in both."""
