"""The version of fastdp, for whatever states by which a thing was made."""

VERSION = "0.1.0"
