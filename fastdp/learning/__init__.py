"""Learning a hypothesis privately: boxes, conjunctions, any finite class."""
