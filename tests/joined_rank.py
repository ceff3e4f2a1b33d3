"""Join a rank as one of several hosts does: prints its address, reads those of all as JSON, then waits, joined.

python tests/joined_rank.py BACKEND NUMBER
"""

import json
import sys

from kit.backends.backend_catalog import load
from kit.backends.protocol import RankGroup
from kit.worker.private_network import LOOPBACK
from kit.worker.rank_place import address_of, held_port


def main(name, number):
    held = held_port(LOOPBACK)
    print(address_of(held), flush=True)
    ranks = RankGroup(int(number), tuple(json.loads(sys.stdin.readline())), held=held)
    ranks.keep_to_interface()
    backend = load(name)
    backend.join(ranks, "cpu", 1)
    backend.set_threads(1)
    print("joined", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
