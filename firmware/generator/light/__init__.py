"""From a signal plan (JSON) to the safety shell's tables. Standard library only, as all of the generator."""
