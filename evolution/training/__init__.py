"""Training on the platform: the engine's adapters, with checkpoints as rows and batches as jobs.

A batch of a training run is an ordinary evolution: outcomes, a job that this process runs with
the worker's own functions, deltas, a version. So audit, metering and replay hold for it as well.
"""
