"""Training of sweeps: workers, jobs, memory, progress, executors."""
