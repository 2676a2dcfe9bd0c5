"""How results are shown: terminal, page, pictures, and the tables of the documentation."""
