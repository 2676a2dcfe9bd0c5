"""Synthetic tables of any width: a junction tree of columns, its fit to noisy tables, and what is sampled from it.

junction_tree.py: cliques of columns and how they hang together, from sets of columns alone. tree_fit.py: the
distribution on a tree that is near to noisy tables, by messages (tree_layout.py, tree_messages.py).
tree_distribution.py: its marginals and means; tree_sampling.py: records of it; tree_part.py: it as part of a synthetic
distribution; weighted_tree.py: updated by queries, as the prior of online answers.
"""
