"""From a policy file to the firmware's data and code. Standard library only: it runs inside PlatformIO's own Python."""
