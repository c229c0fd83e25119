"""Runs commands inside of a sandbox for whoever holds its socket, and keeps their output and results.

The container's command, below its init: uid 0 of the user namespace with CAP_SETUID, CAP_SETGID and CAP_KILL only. Commands
run as uid 1000 without any. It listens on a socket in a folder that only it may enter. The protocol is described in
src/adapters/sandbox/protocol.ts.

    python3 -IS /opt/clevernet/runner PROCESSES

PROCESSES: processes that all commands together may have. A few more must fit into the container: see KEPT_MOST.
"""

import collections
import os
import re
import signal
import socket
import sys

import supervisor
from client import Client, Refused
from command import Command
from loop import READ, Loop

FOLDER = "/run/runner"
# Commands whose output is kept at once. Each one that runs has a supervisor.
KEPT_MOST = 32
# Ids of commands that are forgotten: they are refused, so that no command runs twice.
FORGOTTEN_MOST = 20_000
CLIENTS_MOST = 16


class Runner:
    def __init__(self, processes):
        self.processes = processes
        self.boot = os.urandom(16).hex()
        self.loop = Loop()
        self.commands, self.forgotten = {}, collections.OrderedDict()
        self.clients, self.listeners = set(), {}

    def summaries(self):
        return [command.summary() for command in self.commands.values()]

    def command(self, id):
        if id not in self.commands:
            raise Refused("forgotten" if id in self.forgotten else "unknown", f"there is no command {id}")
        return self.commands[id]

    def start(self, spec, boot):
        """True if the command is new; one that is known is not started again."""
        if boot != self.boot:
            raise Refused("other-boot", "the sandbox has been started anew since then")
        if spec["id"] in self.commands:
            return False
        if spec["id"] in self.forgotten:
            raise Refused("forgotten", "this command has run, and its result was taken")
        if not re.fullmatch(r"[A-Za-z0-9._:-]{1,100}", spec["id"]):
            raise Refused("bad-request", "an id is letters, digits and . _ : - , 100 of them at most")
        if len(self.commands) >= KEPT_MOST:
            raise Refused("full", f"{KEPT_MOST} commands are kept: end or forget some")
        if supervisor.tasks() + spec["processes"] > self.processes:
            raise Refused("processes", f"of {self.processes} processes, too few are left")
        self.commands[spec["id"]] = Command(self.loop, spec, self.processes)
        return True

    def forget(self, id):
        if id in self.forgotten:
            return
        command = self.command(id)
        if command.is_left:
            raise Refused("running", "something of this command still runs: end it first")
        command.close()
        del self.commands[id]
        self.forgotten[id] = None
        if len(self.forgotten) > FORGOTTEN_MOST:
            self.forgotten.popitem(last=False)

    def accept(self, server):
        sock = server.accept()[0]
        if len(self.clients) >= CLIENTS_MOST:
            return sock.close()
        self.clients.add(Client(self, sock))

    def serve(self):
        # Some runtimes make the folder's file system without regard to the mode that was asked for.
        os.chmod(FOLDER, 0o700)
        path = f"{FOLDER}/socket"
        if os.path.exists(path):
            os.unlink(path)
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        server.bind(path)
        server.listen(CLIENTS_MOST)
        self.loop.watch(server.fileno(), READ, lambda _: self.accept(server))
        wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        self.loop.watch(wake, READ, lambda _: (os.read(wake, 512), supervisor.reap()))
        while True:
            self.loop.turn()


os.umask(0o077)
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
Runner(int(sys.argv[1])).serve()
