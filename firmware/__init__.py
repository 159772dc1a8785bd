"""The chip's program, and the generator of its data and code from a policy file (`firmware.generator`)."""
