"""Exit codes of the command `tinylight`."""

import signal

FAILED = 1  # a verdict failed, or there were warnings with --strict
BAD_INPUT = 2  # one line on stderr says what is wrong
STOPPED = 128 + signal.SIGINT  # Ctrl-C; shells have it so for any signal
