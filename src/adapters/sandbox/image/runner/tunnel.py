"""TCP connections of the sandbox's loopback, carried on a client's stream."""

import errno
import socket

import frames
from loop import READ, WRITE

CONNECT_SECONDS = 5


class Tunnel:
    """One connection. Each side sends only as much as the other has given it credit for."""

    def __init__(self, client, sock, channel):
        self.client, self.sock, self.channel = client, sock, channel
        self.credit, self.outgoing = client.WINDOW, bytearray()
        self.is_read, self.is_written, self.is_closed = False, False, False
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.channels[channel] = self
        self.watch()

    def watch(self):
        if not self.is_closed:
            may_read = not self.is_read and self.credit > 0 and self.client.has_room()
            events = (READ if may_read else 0) | (WRITE if self.outgoing else 0)
            self.client.loop.watch(self.sock.fileno(), events, self.on_event)

    produce = watch

    def on_event(self, events):
        try:
            if events & WRITE and self.outgoing:
                sent = self.sock.send(self.outgoing)
                del self.outgoing[:sent]
                self.client.send({"op": "credit", "ch": self.channel, "bytes": sent})
                if self.is_written and not self.outgoing:
                    self.sock.shutdown(socket.SHUT_WR)
            if events & READ and not self.is_read and self.credit > 0:
                data = self.sock.recv(min(frames.PAYLOAD_MOST, self.credit))
                self.credit -= len(data)
                self.is_read = not data
                self.client.send({"op": "data" if data else "eof", "ch": self.channel}, data)
        except BlockingIOError:
            pass
        except OSError:
            return self.close()
        if self.is_read and self.is_written and not self.outgoing:
            return self.close()
        self.watch()

    def on_frame(self, op, fields, payload):
        if op == "data":
            if len(self.outgoing) + len(payload) > 2 * self.client.WINDOW:
                return self.close()
            self.outgoing += payload
        elif op == "eof":
            self.is_written = True
            if not self.outgoing:
                self.shut()
        elif op == "credit":
            self.credit += fields["bytes"]
        elif op == "close":
            return self.close(say=False)
        if self.is_read and self.is_written and not self.outgoing:
            return self.close()
        self.watch()

    def shut(self):
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self, say=True):
        if not self.is_closed:
            self.is_closed = True
            self.client.channels.pop(self.channel, None)
            self.client.loop.forget(self.sock.fileno())
            self.sock.close()
            if say:
                self.client.send({"op": "close", "ch": self.channel})


def dial(loop, port, done):
    """Connects to a server of the sandbox, on IPv4 or else on IPv6; `done` gets the socket, or None."""
    addresses = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]

    def attempt():
        if not addresses:
            return done(None)
        family, address = addresses.pop(0)
        try:
            sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        except OSError:
            return attempt()
        code = sock.connect_ex((address, port))
        if code == 0:
            return done(sock)
        if code != errno.EINPROGRESS:
            sock.close()
            return attempt()
        is_over = False

        def finish(_=None, is_late=False):
            nonlocal is_over
            if is_over:
                return
            is_over = True
            loop.forget(sock.fileno())
            if not is_late and sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                return done(sock)
            sock.close()
            attempt()

        loop.watch(sock.fileno(), WRITE, finish)
        loop.after(CONNECT_SECONDS, lambda: finish(is_late=True))

    attempt()


class Listener:
    """A port of the sandbox's loopback whose connections go to one client."""

    def __init__(self, port):
        self.sock = socket.create_server(("127.0.0.1", port), backlog=64)
        self.sock.setblocking(False)
        self.port, self.client = port, None

    def give(self, client):
        """Gives the port to a client: the newest one has it."""
        self.client = client
        client.loop.watch(self.sock.fileno(), READ, self.on_event)

    def on_event(self, _):
        try:
            sock = self.sock.accept()[0]
        except OSError:
            return
        self.client.accept(sock, self.port)

    def drop(self, client):
        """Closes the port, if this client still has it: whoever connects is refused at once."""
        if self.client is client:
            client.loop.forget(self.sock.fileno())
            self.sock.close()
            return True
        return False
