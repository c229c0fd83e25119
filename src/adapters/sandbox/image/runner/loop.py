"""Calls whoever waits for a file descriptor or a moment, one after the other."""

import heapq
import itertools
import selectors
import sys
import time
import traceback

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Loop:
    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.timers = []
        self.count = itertools.count()

    def watch(self, fd, events, callback):
        """Calls `callback(events)`. No events: it is not called any more."""
        known = fd in self.selector.get_map()
        if not events:
            if known:
                self.selector.unregister(fd)
        elif known:
            self.selector.modify(fd, events, callback)
        else:
            self.selector.register(fd, events, callback)

    def forget(self, fd):
        if fd in self.selector.get_map():
            self.selector.unregister(fd)

    def after(self, seconds, callback):
        heapq.heappush(self.timers, (time.monotonic() + seconds, next(self.count), callback))

    def turn(self):
        wait = max(0, self.timers[0][0] - time.monotonic()) if self.timers else None
        for key, events in self.selector.select(wait):
            # What came before in this turn may have closed this one, and opened another in its place.
            if self.selector.get_map().get(key.fd) is key:
                self.call(key.data, events)
        while self.timers and self.timers[0][0] <= time.monotonic():
            self.call(heapq.heappop(self.timers)[2])

    def call(self, callback, *given):
        # A defect in one command or connection must not end the others.
        try:
            callback(*given)
        except Exception:
            traceback.print_exc(file=sys.stderr)
