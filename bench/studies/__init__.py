"""Studies of accuracy: excess risk, sample sizes, utility."""
