"""The commands of `tinylight`, one file each; `hil/cli.py` puts them together."""
