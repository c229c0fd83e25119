"""Someone who holds a connection to the runner, and what they ask."""

import os

import frames
from loop import READ, WRITE
from tunnel import Listener, Tunnel, dial

VERSION = 1
CHANNELS_MOST = 128
# A frame costs its reader more than its bytes.
FRAME_COST = 64


class Refused(Exception):
    def __init__(self, code, says):
        super().__init__(says)
        self.code = code


def need(fields, name, kind):
    value = fields.get(name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Refused("bad-request", f"{name} is missing, or is no {kind.__name__}")
    return value


class Follower:
    """Sends the output of a command from an offset on, and its end."""

    def __init__(self, client, command, channel, at):
        self.client, self.command, self.channel, self.at = client, command, channel, at
        self.credit, self.is_busy, self.is_closed = client.WINDOW, False, False
        command.watchers.add(self.produce)
        client.channels[channel] = self

    def produce(self, _=None):
        """Sends what may be sent. Sending may make room for more output, of which it is told: the loop takes it."""
        if self.is_busy or self.is_closed:
            return
        self.is_busy = True
        while self.credit > 0 and self.client.has_room():
            piece = self.command.ring.read(self.at, min(frames.PAYLOAD_MOST, self.credit))
            if not piece:
                break
            at, stream, data = piece
            self.at = at + len(data)
            self.credit -= len(data) + FRAME_COST
            self.client.send({"op": "out", "ch": self.channel, "at": at, "stream": stream}, data)
            self.command.on_sent(self.at)
        self.is_busy = False
        if self.command.end and self.at >= self.command.ring.size and self.client.has_room():
            self.client.send({"op": "end", "ch": self.channel, **self.command.end, "isLeft": self.command.is_left})
            self.close(say=False)

    def on_frame(self, op, fields, _):
        if op == "credit":
            self.credit += fields["bytes"]
            self.produce()
        elif op == "close":
            self.close(say=False)

    def close(self, say=True):
        self.is_closed = True
        self.command.watchers.discard(self.produce)
        self.client.channels.pop(self.channel, None)


class Client:
    WINDOW = 256 * 1024
    ROOM = 512 * 1024

    def __init__(self, runner, sock):
        self.runner, self.loop, self.sock = runner, runner.loop, sock
        self.decoder, self.outbox = frames.Decoder(), bytearray()
        self.channels, self.accepted, self.first = {}, 0, 0
        self.is_greeted, self.is_closed = False, False
        sock.setblocking(False)
        self.loop.watch(sock.fileno(), READ, self.on_event)

    def has_room(self):
        return len(self.outbox) < self.ROOM

    def send(self, head, payload=b""):
        if not self.is_closed:
            self.outbox += frames.encode(head, payload)
            self.loop.watch(self.sock.fileno(), READ | WRITE, self.on_event)

    def on_event(self, events):
        if events & WRITE:
            try:
                while self.outbox:
                    del self.outbox[: self.sock.send(self.outbox[: 256 * 1024])]
            except BlockingIOError:
                pass
            except OSError:
                return self.close()
            self.loop.watch(self.sock.fileno(), READ | (WRITE if self.outbox else 0), self.on_event)
            self.produce()
        if events & READ and not self.is_closed:
            try:
                data = self.sock.recv(64 * 1024)
            except BlockingIOError:
                return
            except OSError:
                return self.close()
            if not data:
                return self.close()
            try:
                for fields, payload in self.decoder.feed(data):
                    self.on_frame(fields, payload)
            except frames.BadFrame as error:
                print(f"clevernet: disconnected: {error}", flush=True)
                self.close()

    def produce(self):
        """Lets every channel send, each time another one first."""
        channels = list(self.channels.values())
        self.first += 1
        for index in range(len(channels)):
            if not self.has_room():
                return
            channels[(self.first + index) % len(channels)].produce()

    def on_frame(self, fields, payload):
        request, op = fields.get("req"), fields.get("op")
        if request is None:
            channel = self.channels.get(fields.get("ch"))
            if channel:
                channel.on_frame(op, fields, payload)
            return
        try:
            handle = getattr(self, f"do_{op}", None) if isinstance(op, str) else None
            if not handle or not (self.is_greeted or op == "hello"):
                raise Refused("bad-request", f"the runner does not know {op!r}" if self.is_greeted else "hello comes first")
            answer = handle(fields, payload)
        except Refused as error:
            self.send({"op": "refused", "req": request, "code": error.code, "says": str(error)})
        except ValueError as error:
            self.send({"op": "refused", "req": request, "code": "bad-request", "says": str(error)})
        except OSError as error:
            self.send({"op": "refused", "req": request, "code": "system", "says": str(error)})
        else:
            # None: the answer follows later.
            if answer is not None:
                self.answer(request, answer)

    def answer(self, request, fields):
        self.send({"op": "answer", "req": request, **fields})
        for channel in list(self.channels.values()):
            channel.produce()

    def do_hello(self, fields, _):
        version = need(fields, "version", int)
        if version != VERSION:
            raise Refused("version", f"this image speaks version {VERSION} of the protocol, and was asked for {version}")
        self.is_greeted = True
        return {"version": VERSION, "boot": self.runner.boot, "window": self.WINDOW, "commands": self.runner.summaries()}

    def do_disk(self, *_):
        """Room that the file system of the workspace has left: of the whole host, where it sets no limit."""
        found = os.statvfs("/workspace")
        return {"bytes": found.f_bavail * found.f_frsize, "files": found.f_favail if found.f_files else None}

    def do_list(self, *_):
        return {"commands": self.runner.summaries()}

    def do_start(self, fields, _):
        spec = {name: need(fields, name, kind) for name, kind in (("id", str), ("argv", list), ("cwd", str), ("env", dict))}
        spec["stdin"], spec["isWhole"] = need(fields, "stdin", bool), need(fields, "isWhole", bool)
        spec["processes"] = 1 if fields.get("processes") is None else need(fields, "processes", int)
        spec["seconds"] = None if fields.get("seconds") is None else need(fields, "seconds", (int, float))
        texts = [*spec["argv"], *spec["env"].keys(), *spec["env"].values(), spec["cwd"]]
        if not spec["argv"] or not all(isinstance(text, str) and "\0" not in text for text in texts):
            raise Refused("bad-request", "argv, cwd and env are texts without a NUL, and argv is not empty")
        return {"isNew": self.runner.start(spec, need(fields, "boot", str))}

    def channel_of(self, fields):
        channel = need(fields, "ch", int)
        if channel <= 0 or channel in self.channels:
            raise Refused("bad-request", "this channel is in use, or is not the client's to choose")
        if len(self.channels) >= CHANNELS_MOST:
            raise Refused("full", "too many channels are open")
        return channel

    def do_attach(self, fields, _):
        command = self.runner.command(need(fields, "id", str))
        Follower(self, command, self.channel_of(fields), need(fields, "from", int))
        return {"isLeft": command.is_left}

    def do_write(self, fields, payload):
        command, request = self.runner.command(need(fields, "id", str)), fields["req"]
        command.write(need(fields, "at", int), payload, lambda: self.answer(request, {"taken": command.taken}))

    def do_finish(self, fields, _):
        self.runner.command(need(fields, "id", str)).end_input()
        return {}

    def do_kill(self, fields, _):
        self.runner.command(need(fields, "id", str)).kill()
        return {}

    def do_forget(self, fields, _):
        self.runner.forget(need(fields, "id", str))
        return {}

    def do_listen(self, fields, _):
        port = need(fields, "port", int)
        listener = self.runner.listeners.get(port)
        if not listener:
            listener = self.runner.listeners[port] = Listener(port)
        listener.give(self)
        return {}

    def do_dial(self, fields, _):
        channel, port, request = self.channel_of(fields), need(fields, "port", int), fields["req"]
        if not 0 < port < 65536:
            raise Refused("bad-request", "a port is a number from 1 to 65535")

        def done(sock):
            if not sock:
                says = f"nothing answers on port {port}"
                return self.send({"op": "refused", "req": request, "code": "unreachable", "says": says})
            if self.is_closed or channel in self.channels:
                return sock.close()
            self.send({"op": "answer", "req": request})
            Tunnel(self, sock, channel)

        dial(self.loop, port, done)

    def accept(self, sock, port):
        if len(self.channels) >= CHANNELS_MOST:
            return sock.close()
        self.accepted += 1
        self.send({"op": "open", "ch": -self.accepted, "port": port})
        Tunnel(self, sock, -self.accepted)

    def close(self):
        if self.is_closed:
            return
        self.is_closed = True
        self.loop.forget(self.sock.fileno())
        self.sock.close()
        for channel in list(self.channels.values()):
            channel.close(say=False)
        for port, listener in list(self.runner.listeners.items()):
            if listener.drop(self):
                del self.runner.listeners[port]
        self.runner.clients.discard(self)
