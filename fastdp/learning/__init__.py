"""Learn from labelled or ordered records, privately: interior points and what is built on them."""
