"""Benchmarks: figures as ratios within one run."""
