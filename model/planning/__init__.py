"""Planning with the exact engine, and policies distilled from it: rollouts, the planner, rounds, the student's training."""
