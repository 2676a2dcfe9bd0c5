"""Answering many counting queries: private multiplicative weights, measure-and-fit, and the synthetic distribution."""
