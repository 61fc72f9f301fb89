"""Starts several workers of one training on this machine: a rehearsal for a cluster, on the loopback address.

    python training/launch.py --workers 2 -- keras-transformer train demo --set training.distribution=multi_worker

Each worker gets a TF_CONFIG of its own; the output of the first is shown. On a cluster the scheduler starts the
workers: see README.md here.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time


def main():
    """Starts the workers, waits for them, stops them all if one fails; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2, help="number of processes")
    parser.add_argument("command", nargs="+", help="what each of them runs")
    arguments = parser.parse_args()
    if arguments.workers < 1:
        parser.error(f"--workers must be at least 1. Received: {arguments.workers}")
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(arguments.workers)]}
    workers = [_start(arguments.command, cluster, index) for index in range(arguments.workers)]
    try:
        while None in (statuses := [worker.poll() for worker in workers]):
            if any(statuses):  # One that failed leaves the others waiting for it.
                break
            time.sleep(0.2)
        return next((status for status in statuses if status), 0)
    finally:
        for worker in workers:
            worker.terminate()


def _start(command, cluster, index):
    tf_config = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
    output = None if index == 0 else subprocess.DEVNULL
    return subprocess.Popen(command, env={**os.environ, "TF_CONFIG": tf_config}, stdout=output)


def free_ports(count):
    """Ports of the loopback address that no one listens on at the moment."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


if __name__ == "__main__":
    sys.exit(main())
