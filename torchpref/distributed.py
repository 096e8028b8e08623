"""``torchrun … -m torchpref.distributed``: streamed preferences over several processes."""

import sys

from torchpref.pairwise.sharding import main

if __name__ == "__main__":
    sys.exit(main())
