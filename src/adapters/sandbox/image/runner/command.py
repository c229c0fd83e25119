"""A command: its supervisor, its output, its end."""

import json
import os
import socket

import ring
import supervisor
from loop import READ, WRITE

READ_MOST = 64 * 1024
# Of a pipe that the command has made as large as it may.
DRAIN_MOST = 1 << 20
STDIN_MOST = 256 * 1024
# What was sent and may have to be sent again: a client's window, and as much that it has taken and then lost.
IN_FLIGHT = 2 * 256 * 1024
# Changes between the streams that may wait to be sent. The ring keeps three times as many more, which is as many as may be in
# flight: a client counts each as 64 bytes at least.
CHANGES_MOST = ring.MARKS_MOST // 4


class Command:
    def __init__(self, loop, spec, processes):
        self.loop, self.id = loop, spec["id"]
        # `leaving` is its end, as long as not all of its output has been taken.
        self.ring, self.end, self.leaving, self.is_left = ring.Ring(), None, None, True
        self.is_whole, self.sent, self.drained = spec["isWhole"], 0, {ring.OUT: 0, ring.ERR: 0}
        # Called with this command when it has more output, or has ended.
        self.watchers = set()
        self.outputs, self.told = {}, b""
        self.stdin, self.input, self.taken, self.is_input_over = None, bytearray(), 0, False
        # Input for which there is no room yet, and the answer to it.
        self.waiting = None
        pipes = [os.pipe2(os.O_CLOEXEC) for _ in range(2)]
        inner, self.stdin = os.pipe2(os.O_CLOEXEC) if spec["stdin"] else (os.open("/dev/null", os.O_RDONLY), None)
        self.control, there = socket.socketpair()
        try:
            self.pid = os.fork()
        except OSError:
            for fd in (inner, *(fd for pipe in pipes for fd in pipe), *([self.stdin] if spec["stdin"] else [])):
                os.close(fd)
            self.control.close()
            there.close()
            self.ring.close()
            raise
        if self.pid == 0:
            try:
                supervisor.supervise(spec, (inner, pipes[0][1], pipes[1][1]), there, processes)
            finally:
                os._exit(70)
        there.close()
        os.close(inner)
        for stream, (mine, theirs) in zip((ring.OUT, ring.ERR), pipes):
            os.close(theirs)
            os.set_blocking(mine, False)
            self.outputs[stream] = mine
            loop.watch(mine, READ, lambda _, stream=stream: self.on_output(stream))
        if self.stdin is not None:
            os.set_blocking(self.stdin, False)
        loop.watch(self.control.fileno(), READ, self.on_control)

    def summary(self):
        return {"id": self.id, "start": self.ring.start, "size": self.ring.size, "isLeft": self.is_left, "end": self.end}

    def on_output(self, stream):
        if not self.has_room():
            return self.loop.watch(self.outputs[stream], 0, None)
        if self.read(stream):
            self.tell()

    def has_room(self):
        """False where nothing may be dropped, and whoever reads has not taken enough of it yet."""
        if not self.is_whole:
            return True
        is_short = self.ring.size - (self.sent - IN_FLIGHT) < ring.SIZE - READ_MOST
        return is_short and self.ring.changes_behind(self.sent) < CHANGES_MOST

    def on_sent(self, at):
        """Someone was sent the output up to here."""
        self.sent = max(self.sent, at)
        if self.is_whole and self.has_room():
            for stream, fd in self.outputs.items():
                self.loop.watch(fd, READ, lambda _, stream=stream: self.on_output(stream))
            if self.leaving:
                self.settle()

    def read(self, stream):
        """Takes a piece of the output. Number of its bytes; 0 where there is nothing now, or for ever."""
        fd = self.outputs[stream]
        try:
            data = os.read(fd, READ_MOST)
        except BlockingIOError:
            return 0
        if data:
            self.ring.write(stream, data)
        else:
            self.loop.forget(fd)
            os.close(fd)
            del self.outputs[stream]
        return len(data)

    def tell(self):
        for watcher in list(self.watchers):
            watcher(self)

    def on_control(self, _):
        data = self.control.recv(4096)
        self.told += data
        while b"\n" in self.told:
            line, self.told = self.told.split(b"\n", 1)
            self.finish(json.loads(line))
        if not data:
            self.loop.forget(self.control.fileno())
            self.control.close()
            self.is_left = False
            if not self.leaving:
                self.finish({"code": None, "signal": 9, "reason": "lost"})
                supervisor.sweep()

    def finish(self, leaving):
        self.leaving = leaving
        self.close_input()
        self.settle()

    def settle(self):
        """Ends the command once its last output has been taken. What it left behind may write for ever: that is later."""
        if self.end:
            return
        for stream in list(self.outputs):
            while self.has_room() and self.drained[stream] < DRAIN_MOST:
                count = self.read(stream)
                if count == 0:
                    self.drained[stream] = DRAIN_MOST
                    break
                self.drained[stream] += count
        if all(self.drained[stream] >= DRAIN_MOST for stream in self.outputs):
            self.end = {**self.leaving, "size": self.ring.size}
        self.tell()

    def write(self, at, data, answer):
        """Takes input from this offset on, without what was taken before, and answers when there was room for it."""
        if at > self.taken:
            raise ValueError(f"input from {at}, though only {self.taken} bytes have come")
        if self.waiting:
            raise ValueError("input before the answer to other input")
        self.waiting = (data[self.taken - at :], answer)
        self.on_input()

    def end_input(self):
        self.is_input_over = True
        self.on_input()

    def on_input(self, _=None):
        if self.stdin is not None:
            try:
                while self.input:
                    del self.input[: os.write(self.stdin, self.input[:READ_MOST])]
            except BlockingIOError:
                pass
            except OSError:
                self.close_input()
        if self.waiting and (self.stdin is None or len(self.input) < STDIN_MOST):
            data, answer = self.waiting
            self.waiting = None
            self.taken += len(data)
            answer()
            if self.stdin is not None:
                self.input += data
                return self.on_input()
        if self.stdin is None:
            return
        if not self.input and self.is_input_over:
            return self.close_input()
        self.loop.watch(self.stdin, WRITE if self.input else 0, self.on_input)

    def close_input(self):
        if self.stdin is not None:
            self.loop.forget(self.stdin)
            os.close(self.stdin)
            self.stdin = None
            self.input.clear()
            self.on_input()

    def kill(self):
        try:
            self.control.send(b"kill\n")
        except OSError:
            pass

    def close(self):
        """Frees what was kept of a command of which nothing is left."""
        for fd in self.outputs.values():
            self.loop.forget(fd)
            os.close(fd)
        self.outputs.clear()
        self.ring.close()
