"""Frames: 4 bytes length of the rest, 4 bytes length of the head, the head as a JSON object, then raw bytes."""

import json
import struct

MOST = 256 * 1024
PAYLOAD_MOST = 32 * 1024
SIZES = struct.Struct(">II")


class BadFrame(Exception):
    """Bytes that are no frame: whoever sent them is disconnected."""


def encode(head, payload=b""):
    text = json.dumps(head, separators=(",", ":")).encode()
    return SIZES.pack(4 + len(text) + len(payload), len(text)) + text + payload


class Decoder:
    """Takes bytes as they come, and gives whole frames."""

    def __init__(self):
        self.bytes = bytearray()

    def feed(self, data):
        self.bytes += data
        while len(self.bytes) >= SIZES.size:
            rest, head = SIZES.unpack_from(self.bytes)
            if rest > MOST or head + 4 > rest:
                raise BadFrame(f"a frame of {rest} bytes, {head} of them its head")
            if len(self.bytes) < 4 + rest:
                return
            try:
                fields = json.loads(bytes(self.bytes[8 : 8 + head]))
            except ValueError as error:
                raise BadFrame("a head that is no JSON") from error
            if not isinstance(fields, dict):
                raise BadFrame("a head that is no object")
            payload = bytes(self.bytes[8 + head : 4 + rest])
            del self.bytes[: 4 + rest]
            yield fields, payload
