"""`python -m fastdp.kernels > docs/kernels.md`: the catalogue, from the docstrings."""

from fastdp.kernels.catalogue import page

if __name__ == "__main__":
    print(page(), end="")
