"""Answering many counting queries.

release_marginals.py: marginal tables, measured and fitted (least_squares_fit.py, entropic_fit.py). mwem.py: a synthetic
distribution for a workload. multiplicative_weights.py: answers to queries as they come. All hold weights over the cells
of a domain (dense_weights.py, factored_weights.py), count on the records (true_answers.py, marginal_counts.py) and give
a synthetic distribution (synthetic_distribution.py), which is sampled (synthetic_sampling.py). The queries
are in queries/.
"""
