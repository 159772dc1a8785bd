"""The commands of `tinylight`, one file each; `tinylight/cli.py` puts them together."""
