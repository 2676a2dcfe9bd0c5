"""Audits of fastdp's own mechanisms: inputs that make them lose the most, many outputs at once, mutants to be found."""
