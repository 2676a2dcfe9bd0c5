"""Learning a concept privately: boxes, conjunctions, any finite class, and the points within data that boxes take."""
