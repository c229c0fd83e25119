"""Process that starts one command and stays until nothing of it is left. It is the subreaper of all that descends from the
command, so what calls setsid or forks twice is still its own."""

import ctypes
import json
import os
import resource
import selectors
import signal
import stat
import time

UID = 1000
WORKSPACE = "/workspace"
SUBREAPER = 36
KILL_SECONDS = 20
# Where npm and pip put programs of the agent's own.
OWN_PROGRAMS = "/workspace/.home/.local/bin"
libc = ctypes.CDLL(None, use_errno=True)


def descendants(root, spared=None):
    """Process ids of all that descends from this one, but not of the spared one or its descendants."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The name in brackets may hold anything.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(name))
    found, todo = [], [root]
    while todo:
        for pid in children.get(todo.pop(), ()):
            if pid != spared:
                found.append(pid)
                todo.append(pid)
    return found


def tasks():
    """Processes and threads of commands, as the system counts them against their limit."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/status", "rb") as file:
                    fields = dict(line.split(b":", 1) for line in file.read().splitlines() if b":" in line)
                if int(fields[b"Uid"].split()[0]) == UID:
                    count += int(fields[b"Threads"])
            except (OSError, ValueError, KeyError, IndexError):
                continue
    return count


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def kill_all(root, spared=None):
    """Stops all first, so that nothing is born while the others die."""
    until = time.monotonic() + KILL_SECONDS
    while time.monotonic() < until:
        send(descendants(root, spared), signal.SIGSTOP)
        left = descendants(root, spared)
        if not left:
            return
        send(left, signal.SIGKILL)
        reap()
        time.sleep(0.002)


def reap():
    """Ends of children as pairs of id and status, and True if any child is left."""
    ended = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended, False
        if pid == 0:
            return ended, True
        ended.append((pid, status))


def sweep():
    """Ends in the background what a supervisor that was killed has left: it belongs to process 1 now."""
    runner = os.getpid()
    if os.fork() == 0:
        try:
            kill_all(1, runner)
        finally:
            os._exit(0)


def close_others(kept):
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                pass


def open_workspace():
    """Gives the workspace back to its user, who has closed it: nothing could run there to open it."""
    mode = stat.S_IMODE(os.stat(WORKSPACE).st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(WORKSPACE, mode | stat.S_IRWXU)


def become(spec, streams, processes):
    """Becomes the command. Never returns."""
    try:
        for number, fd in enumerate(streams):
            os.dup2(fd, number)
        close_others(())
        os.setsid()
        os.umask(0o022)
        # Not possible any more once the user is another one. When memory ends, commands die before the runner.
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
        os.nice(5)
        # Leaves room for supervisors and for whoever connects, whatever the commands start.
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
        os.setgroups([])
        os.setresgid(UID, UID, UID)
        os.setresuid(UID, UID, UID)
        for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        open_workspace()
        os.chdir(spec["cwd"])
        environment = {**os.environ, **spec["env"]}
        # Last: what agents install never stands in the way of the image's own programs.
        environment["PATH"] = f"{environment.get('PATH', os.defpath)}:{OWN_PROGRAMS}"
        os.execvpe(spec["argv"][0], spec["argv"], environment)
    except BaseException as error:
        words = "the computer has no processes left" if isinstance(error, BlockingIOError) else getattr(error, "strerror", None)
        os.write(2, f"clevernet: {spec['argv'][0]}: {words or error}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def supervise(spec, streams, control, processes):
    """Runs the command, and tells its end on the control socket as one line. Never returns."""
    libc.prctl(SUBREAPER, 1, 0, 0, 0)
    # Other commands' pipes and connections are not this one's.
    close_others((*streams, control.fileno()))
    wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    leader = os.fork()
    if leader == 0:
        become(spec, streams, processes)
    for fd in streams:
        os.close(fd)
    deadline = None if spec["seconds"] is None else time.monotonic() + spec["seconds"]
    poll = selectors.DefaultSelector()
    poll.register(wake, selectors.EVENT_READ)
    poll.register(control, selectors.EVENT_READ)
    has_ended = False

    def tell(**end):
        try:
            control.sendall(json.dumps(end).encode() + b"\n")
        except OSError:
            pass

    while True:
        ended, has_more = reap()
        for pid, status in ended:
            if pid == leader and not has_ended:
                has_ended = True
                code = os.waitstatus_to_exitcode(status)
                tell(code=code if code >= 0 else None, signal=-code if code < 0 else None, reason="ended")
        if not has_more:
            os._exit(0)
        left = None if deadline is None or has_ended else max(0, deadline - time.monotonic())
        reason = "timeout" if left == 0 else None
        for key, _ in poll.select(0 if reason else left):
            if key.fd == wake:
                try:
                    os.read(wake, 512)
                except BlockingIOError:
                    pass
            else:
                # Nothing to read: the runner is gone.
                control.recv(64)
                reason = reason or "killed"
        if reason:
            kill_all(os.getpid())
            if not has_ended:
                tell(code=None, signal=int(signal.SIGKILL), reason=reason)
            os._exit(0)
