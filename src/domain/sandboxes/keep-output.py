"""Runs a command line of Bash, passes its output on, and keeps a copy of it in a file.

    python3 -IS -c THIS FILE COMMAND BYTES

BYTES: as many of its output are kept.
Ends as the command does. If something that it has left behind still writes then, a process stays to keep that, too.
"""

import os
import select
import signal
import sys

PATH, COMMAND = sys.argv[1:3]
FILE_MOST = int(sys.argv[3])
PIECE = 64 * 1024
DRAIN_MOST = 1 << 20

# Read end of a pipe, and where its bytes go on.
outputs = {}
kept, log = 0, None
try:
    os.makedirs(os.path.dirname(PATH), exist_ok=True)
    log = os.open(PATH, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
except OSError:
    pass


def write(fd, data):
    while data:
        data = data[os.write(fd, data) :]


def pass_on(fd, data):
    global kept, log
    try:
        write(outputs[fd], data)
    except OSError:
        pass
    try:
        if log is not None:
            write(log, data[: FILE_MOST - kept])
            kept += len(data)
            if kept > FILE_MOST:
                write(log, b"\n[nothing more is kept]\n")
                log = None
    except OSError:
        # The disk is full.
        log = None


def take(fd):
    """Number of bytes that were read and passed on."""
    data = os.read(fd, PIECE)
    if data:
        pass_on(fd, data)
    else:
        poll.unregister(fd)
        os.close(fd)
        del outputs[fd]
    return len(data)


poll = select.poll()
wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
signal.signal(signal.SIGCHLD, lambda *_: None)
signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
pipes = [os.pipe2(os.O_CLOEXEC) for _ in range(2)]
try:
    pid = os.fork()
except OSError as error:
    has_none = isinstance(error, BlockingIOError)
    words = "the computer has no processes left: end what runs" if has_none else f"the command cannot begin: {error.strerror}"
    write(2, f"clevernet: {words}\n".encode())
    os._exit(126)
if pid == 0:
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    os.dup2(pipes[0][1], 1)
    os.dup2(pipes[1][1], 2)
    if log is not None:
        os.close(log)
    os.execv("/bin/bash", ["bash", "-c", COMMAND])
for target, (mine, theirs) in enumerate(pipes, 1):
    os.close(theirs)
    outputs[mine] = target
    poll.register(mine, select.POLLIN)
poll.register(wake, select.POLLIN)

status = None
while status is None:
    for fd, _ in poll.poll():
        if fd != wake:
            take(fd)
            continue
        os.read(wake, 512)
        ended, found = os.waitpid(pid, os.WNOHANG)
        if ended:
            status = found
# What it has written until its end; what it left behind may write for ever.
poll.unregister(wake)
for fd in list(outputs):
    os.set_blocking(fd, False)
    left = DRAIN_MOST
    try:
        while left > 0 and fd in outputs:
            left -= take(fd)
    except BlockingIOError:
        pass
try:
    stays = bool(outputs) and os.fork() == 0
except OSError:
    stays = False
if stays:
    for fd in outputs:
        os.set_blocking(fd, True)
    while outputs:
        for fd, _ in poll.poll():
            take(fd)
    os._exit(0)
code = os.waitstatus_to_exitcode(status)
if code >= 0:
    os._exit(code)
signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
os.kill(os.getpid(), -code)
