"""Hardware in the loop: wire protocol, link, boards, closed loop, latency, footprint and verdicts."""
