#!/usr/bin/env python3
"""A slow and lossy cable between two network namespaces:  bridge.py PID1 PID2 DELAY_MS DROP

Makes a tap device link1 in the namespace of process PID1 and link2 in that of PID2. A frame that enters one leaves the
other DELAY_MS later; a share DROP of them is lost. For kernels without netem. Prints "up" once both are there.
"""

import collections
import ctypes
import fcntl
import os
import random
import select
import struct
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000


def enter(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/proc/{pid}/ns/net") as namespace:
        if libc.setns(namespace.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns to the network of process {pid}")


def tap(pid, name):
    """The device belongs to the namespace in which it is made, whoever holds it open."""
    enter(pid)
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return device


def main():
    pids, delay, drop = sys.argv[1:3], float(sys.argv[3]) / 1e3, float(sys.argv[4])
    ends = [tap(pid, f"link{k + 1}") for k, pid in enumerate(pids)]
    # Back to its own: what kills all that lives on a node must not cut the cable.
    enter(os.getppid())
    print("up", flush=True)
    chance = random.Random(1)
    waiting = collections.deque()  # all wait equally long, so they leave in the order in which they came
    while True:
        rest = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for end in select.select(ends, [], [], rest)[0]:
            try:
                frame = os.read(end, 65536)
            except OSError:
                continue  # the device is down
            if chance.random() >= drop:
                waiting.append((time.monotonic() + delay, ends[1 - ends.index(end)], frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, end, frame = waiting.popleft()
            try:
                os.write(end, frame)
            except OSError:
                pass  # down, or full: the frame is lost, as on a cable


main()
