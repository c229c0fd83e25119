"""Last part of a command's output, with the offset where it begins."""

import array
import bisect
import mmap

SIZE = 1 << 20
MARKS_MOST = 16 * 1024
OUT, ERR = 1, 2


class Ring:
    def __init__(self):
        # Takes memory only as it fills, and gives all of it back when it is closed.
        self.map = mmap.mmap(-1, SIZE)
        # Offsets in the whole output: the first byte that is kept, and the end.
        self.start = self.size = 0
        # Places where the output changes between stdout and stderr: the offset times 4, plus the stream.
        self.marks = array.array("Q")

    def write(self, stream, data):
        if not self.marks or self.marks[-1] % 4 != stream:
            self.marks.append(self.size * 4 + stream)
        data = memoryview(data)[-SIZE:]
        place = self.size % SIZE
        first = min(len(data), SIZE - place)
        self.map[place : place + first] = data[:first]
        self.map[: len(data) - first] = data[first:]
        self.size += len(data)
        self.start = max(self.start, self.size - SIZE)
        if len(self.marks) > MARKS_MOST:
            self.start = max(self.start, self.marks[MARKS_MOST // 4] // 4)
            del self.marks[: self.index(self.start)]

    def index(self, at):
        return bisect.bisect_left(self.marks, at * 4 + 4) - 1

    def changes_behind(self, at):
        """Number of changes between the streams from this offset on."""
        return len(self.marks) - 1 - self.index(at)

    def read(self, at, most):
        """Piece of one stream at an offset, or at the first that is kept: its offset, its stream, its bytes."""
        at = max(at, self.start)
        if at >= self.size:
            return None
        index = self.index(at)
        until = self.marks[index + 1] // 4 if index + 1 < len(self.marks) else self.size
        end = min(until, at + most, at + SIZE - at % SIZE)
        return at, self.marks[index] % 4, self.map[at % SIZE : at % SIZE + end - at]

    def close(self):
        self.map.close()
