"""`python -m fastdp.capi DIR`: write fastdp.h, libfastdp.so and fastdp.pc."""

import argparse
import sys

from .library import BuildError, build


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m fastdp.capi", description="Write fastdp.h, libfastdp.so and fastdp.pc for C programs."
    )
    parser.add_argument("folder", metavar="DIR", help="where to; it is made if need be")
    folder = parser.parse_args().folder
    try:
        built = build(folder)
    except BuildError as error:
        print(f"fastdp.capi: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"fastdp.capi: cannot write to {folder}: {error}", file=sys.stderr)
        return 2
    for path in (built.header, built.library, built.pkg_config):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
