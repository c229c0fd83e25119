"""Does one thing with the files below a folder of the sandbox, as the user who runs its commands, and ends.

    python3 -IS -c THIS REQUEST

REQUEST: JSON, `op` and its fields, or `-` where it stands in the first line of the input. What is to be written comes there, too.

Answers with one line of JSON on standard output, and for `read` with the content behind it. Nothing outside of the folder is
reached: each part of a path is opened by itself, below the one before it, and links are followed by hand. What others change
meanwhile changes what is found, and never leads outside.
"""

import errno
import json
import os
import stat
import sys
import zlib

LINKS_MOST = 40
DEPTH_MOST = 64
COPIED_BYTES = 1 << 20
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without waiting: who opens a fifo would wait for a writer for ever.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
KINDS = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link"), (stat.S_ISFIFO, "fifo"), (stat.S_ISSOCK, "socket"))
# Folders that programs fill with thousands of files: those in them are listed only for whoever lists such a folder itself.
UNLISTED = {"node_modules", ".git", ".venv", "__pycache__", ".cache", ".npm"}


class Refusal(Exception):
    def __init__(self, code, **fields):
        super().__init__(code)
        self.fields = {"error": code, **fields}


def kind_of(mode):
    return next((name for test, name in KINDS if test(mode)), "device")


def summary(path, info):
    mark = zlib.crc32(f"{info.st_ino} {info.st_size} {info.st_mtime_ns} {info.st_ctime_ns}".encode()) & 0x7FFFFFFF
    return {"path": path, "kind": kind_of(info.st_mode), "size": info.st_size, "at": info.st_mtime, "mark": mark or 1}


class Way:
    """Folders from the top one down to where it leads, and the last part's name in them."""

    def __init__(self, top, path, follows=True, makes=False):
        self.top, self.links, self.places, self.follows, self.makes = top, 0, [], follows, makes
        self.fds = [os.open(top, FOLDER)]
        self.name = "."
        parts = [part for part in path.split("/") if part]
        self.go(parts)

    @property
    def fd(self):
        return self.fds[-1]

    def go(self, parts):
        while parts:
            part = parts.pop(0)
            if part in ("", "."):
                continue
            if part == "..":
                if len(self.fds) == 1:
                    raise Refusal("outside")
                os.close(self.fds.pop())
                self.places.pop()
                continue
            target = self.link(part) if parts or self.follows else None
            if target is not None:
                self.links += 1
                if self.links > LINKS_MOST:
                    raise Refusal("loop")
                if target.startswith("/"):
                    inside = target == self.top or target.startswith(self.top + "/")
                    if not inside:
                        raise Refusal("outside")
                    for fd in self.fds[1:]:
                        os.close(fd)
                    del self.fds[1:], self.places[:]
                    target = target[len(self.top):]
                parts[:0] = target.split("/")
            elif any(one not in ("", ".") for one in parts):
                self.enter(part)
            else:
                self.name = part
                return

    def link(self, part):
        try:
            return os.readlink(part, dir_fd=self.fd)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise

    def enter(self, part):
        try:
            fd = os.open(part, FOLDER, dir_fd=self.fd)
        except FileNotFoundError:
            if not self.makes:
                raise
            try:
                os.mkdir(part, 0o755, dir_fd=self.fd)
            except FileExistsError:
                pass
            fd = os.open(part, FOLDER, dir_fd=self.fd)
        self.fds.append(fd)
        self.places.append(part)

    def close(self):
        for fd in self.fds:
            os.close(fd)

    def stat(self):
        return os.stat(self.name, dir_fd=self.fd, follow_symlinks=False)

    def stat_or_none(self):
        try:
            return self.stat()
        except FileNotFoundError:
            return None


def say(answer):
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
    sys.stdout.buffer.flush()


def require_file(info):
    kind = kind_of(info.st_mode)
    if kind != "file":
        raise Refusal("kind", kind=kind)


def do_stat(top, path):
    way = Way(top, path)
    say(summary(path, way.stat()))


def do_read(top, path, start, most, whole):
    """Content from `start` on, `most` bytes of it. `whole`: refused where the file has more than that."""
    way = Way(top, path)
    require_file(way.stat())
    fd = os.open(way.name, FILE, dir_fd=way.fd)
    info = os.fstat(fd)
    require_file(info)
    if whole and info.st_size > most:
        raise Refusal("large", size=info.st_size)
    say(summary(path, info))
    os.lseek(fd, start, os.SEEK_SET)
    left = most
    while left > 0:
        data = os.read(fd, min(left, COPIED_BYTES))
        if not data:
            return
        sys.stdout.buffer.write(data)
        left -= len(data)


def do_read_all(top, paths, most):
    """Each by a line of JSON, with its content behind that. What is no file, or has more than `most` bytes, has only the line."""
    for path in paths:
        content = b""
        try:
            way = Way(top, path)
            try:
                info = way.stat()
                answer = summary(path, info)
                if kind_of(info.st_mode) == "file":
                    with open(os.open(way.name, FILE, dir_fd=way.fd), "rb") as file:
                        require_file(os.fstat(file.fileno()))
                        content = file.read(most + 1)
                        answer = summary(path, os.fstat(file.fileno()))
                    if len(content) > most:
                        raise Refusal("large", size=answer["size"])
            finally:
                way.close()
        except Refusal as refusal:
            content, answer = b"", {"path": path, **refusal.fields}
        except OSError as error:
            content, answer = b"", {"path": path, "error": errno.errorcode.get(error.errno, "EIO")}
        say({**answer, "bytes": len(content)})
        sys.stdout.buffer.write(content)


def do_list(top, path, most):
    """The place itself, and all that is below it, each by a line of its own."""
    way = Way(top, path)
    info = way.stat()
    found, left = [summary(path, info)], most - 1

    def walk(fd, base, depth, folder):
        nonlocal left
        for name in sorted(os.listdir(fd)):
            if left <= 0:
                return
            try:
                name.encode()
                below = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except UnicodeEncodeError:
                # JSON has no form for its name.
                folder["hidden"] = folder.get("hidden", 0) + 1
                continue
            except FileNotFoundError:
                continue
            entry = summary(f"{base}/{name}", below)
            found.append(entry)
            left -= 1
            if stat.S_ISDIR(below.st_mode) and name not in UNLISTED and depth < DEPTH_MOST:
                try:
                    inner = os.open(name, FOLDER, dir_fd=fd)
                except OSError:
                    continue
                try:
                    walk(inner, entry["path"], depth + 1, entry)
                finally:
                    os.close(inner)

    if stat.S_ISDIR(info.st_mode):
        walk(os.open(way.name, FOLDER, dir_fd=way.fd), "" if path == "/" else path, 0, found[0])
    sys.stdout.buffer.write("\n".join(map(json.dumps, found)).encode() + b"\n")
    sys.stdout.buffer.flush()


def do_write(top, path, size, expected):
    """Replaces a file by what comes on standard input, at once: whoever reads it meanwhile has the old or the new one."""
    way = Way(top, path, makes=True)
    if way.name == ".":
        raise Refusal("kind", kind="folder")

    def look():
        present = way.stat_or_none()
        if present is not None:
            require_file(present)
        mark = 0 if present is None else summary(path, present)["mark"]
        if expected is not None and expected != mark:
            raise Refusal("stale", mark=mark)
        return present

    present = look()
    fresh = f".{way.name[:60]}.{os.urandom(6).hex()}.part"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=way.fd)
    try:
        left = size
        while left > 0:
            data = sys.stdin.buffer.read1(min(left, COPIED_BYTES))
            if not data:
                raise Refusal("cut")
            left -= len(data)
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view):]
        if present is not None:
            os.fchmod(fd, stat.S_IMODE(present.st_mode) & 0o777)
        look()
        if expected == 0:
            try:
                os.link(fresh, way.name, src_dir_fd=way.fd, dst_dir_fd=way.fd, follow_symlinks=False)
            except FileExistsError:
                raise Refusal("stale", mark=summary(path, way.stat())["mark"]) from None
            os.unlink(fresh, dir_fd=way.fd)
            fresh = None
        else:
            os.rename(fresh, way.name, src_dir_fd=way.fd, dst_dir_fd=way.fd)
            fresh = None
        say(summary(path, os.fstat(fd)))
    finally:
        os.close(fd)
        if fresh:
            os.unlink(fresh, dir_fd=way.fd)


def do_folder(top, path):
    way = Way(top, path, makes=True)
    if way.name != ".":
        way.enter(way.name)
    say({})


def remove_all(fd, name):
    """Number of those removed that are no folders."""
    info = os.stat(name, dir_fd=fd, follow_symlinks=False)
    if not stat.S_ISDIR(info.st_mode):
        os.unlink(name, dir_fd=fd)
        return 1
    try:
        inner = os.open(name, FOLDER, dir_fd=fd)
    except PermissionError:
        # Its owner may open it again; whoever else owns it says no.
        os.chmod(name, 0o700, dir_fd=fd)
        inner = os.open(name, FOLDER, dir_fd=fd)
    count = 0
    try:
        for below in os.listdir(inner):
            try:
                count += remove_all(inner, below)
            except FileNotFoundError:
                pass
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=fd)
    return count


def do_remove(top, paths):
    """Removes files, links themselves, and folders with all that is in them. Answers which were there, and how many files."""
    gone, last, files = [], None, 0
    for path in sorted(paths, key=lambda path: path.split("/")):
        if last is not None and path.startswith(last + "/"):
            gone.append(path)
            continue
        try:
            way = Way(top, path, follows=False)
        except FileNotFoundError:
            continue
        try:
            if way.name == ".":
                raise Refusal("top")
            files += remove_all(way.fd, way.name)
            gone.append(path)
            last = path
        except FileNotFoundError:
            pass
        finally:
            way.close()
    say({"gone": gone, "files": files})


def do_move(top, path, target):
    way = Way(top, path, follows=False)
    to = Way(top, target, follows=False, makes=True)
    if "." in (way.name, to.name):
        raise Refusal("top")
    info = way.stat()
    if to.stat_or_none() is not None:
        raise Refusal("exists")
    os.rename(way.name, to.name, src_dir_fd=way.fd, dst_dir_fd=to.fd)
    say(summary(target, info))


def main():
    sys.setrecursionlimit(4 * DEPTH_MOST + 10_000)
    # A request that is too long for an argument stands in the first line of what comes in.
    request = json.loads(sys.stdin.buffer.readline() if sys.argv[1] == "-" else sys.argv[1])
    operation = globals()["do_" + request.pop("op")]
    try:
        operation(**request)
    except Refusal as refusal:
        say(refusal.fields)
    except OSError as error:
        say({"error": errno.errorcode.get(error.errno, "EIO")})


main()
