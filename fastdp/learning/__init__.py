"""Learn a concept, privately: what labels records as they are labelled, from a class of boxes."""
