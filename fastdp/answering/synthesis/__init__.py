"""Synthetic tables of any width: a junction tree of columns, its fit to noisy tables, and what is sampled from it.

junction_tree.py: cliques of columns and how they hang together, from sets of columns alone. tree_fit.py: the
distribution on a tree that is nearest to noisy tables. tree_distribution.py: its marginals and answers, by messages.
"""
