"""A network with faults: TCP proxies on loopback, between members and between a member and the coordinator.

A Gate listens in place of a member or the coordinator and forwards all bytes in both directions. A Way is one direction
of one connection. Faults are put on ways while bytes flow, and removed again. One thread with one event loop serves all
gates of a Network.
"""
import asyncio
import collections
import random
import re
import socket
import struct
import threading

HELLO_BYTES = 184
DIALLER_SHAKE, LISTENER_SHAKE, HEADER_BYTES = HELLO_BYTES + 64, HELLO_BYTES + 65, 48  # docs/formats/link.md
PULSE = 1

# A piece of a chunk of bytes. `first` and `last` say whether its part of the format begins and ends in this piece.
Span = collections.namedtuple("Span", "part begin end first last type")


class Track:
    """Follows the bytes of one direction, and tells to which part of the link format they belong: handshake, header or
    payload."""

    def __init__(self, shake):
        self.part, self.left, self.header, self.begun = "handshake", shake, b"", False

    def spans(self, data):
        found, at = [], 0
        while at < len(data):
            count = min(self.left, len(data) - at)
            self.left -= count
            if self.part == "header":
                self.header += data[at:at + count]
            found.append(Span(self.part, at, at + count, not self.begun, self.left == 0, self.header[5:6]))
            self.begun = self.left > 0
            at += count
            if self.left == 0:
                self.next_part()
        return found

    def next_part(self):
        length = struct.unpack_from("<Q", self.header, 8)[0] if self.part == "header" else 0
        if length > 0:
            self.part, self.left = "payload", length
        else:
            self.part, self.left, self.header = "header", HEADER_BYTES, b""


class Reset(Exception):
    """Raised to reset the connection."""


class Way:
    """One direction of a connection. `up` is from the dialler to the listener."""

    def __init__(self, gate, ids, up, source, sink):
        self.gate, self.ids, self.up, self.source, self.sink = gate, ids, up, source, sink
        self.track = Track(DIALLER_SHAKE if up else LISTENER_SHAKE) if gate.member_link else None

    def spans(self, data):
        return self.track.spans(data) if self.track else [Span("http", 0, len(data), False, False, b"")]

    async def send(self, data):
        await asyncio.get_running_loop().sock_sendall(self.sink, data)

    def finish(self):
        try:
            self.sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Gate:
    def __init__(self, network, listener, to, member_link, host=None):
        self.network, self.listener, self.to, self.member_link = network, listener, to, member_link
        self.host = host  # for a gate to the coordinator: the address that the member advertises for its links
        self.address = listener.getsockname()
        self.tail = b""
        self.seen = []  # hellos of members that connected

    async def serve(self):
        loop = asyncio.get_running_loop()
        while True:
            accepted, _ = await loop.sock_accept(self.listener)
            self.network.spawn(self.connection(accepted))

    async def connection(self, dialler):
        """Forwards both directions until both have ended or one breaks. If one breaks, both ends see a reset."""
        loop = asyncio.get_running_loop()
        upstream = socket.socket()
        tasks = []
        try:
            for one in (dialler, upstream):
                one.setblocking(False)
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            first, ids = await self.greeting(dialler) if self.member_link else (b"", None)
            await loop.sock_connect(upstream, self.to)
            tasks = [asyncio.ensure_future(self.pump(Way(self, ids, True, dialler, upstream), first)),
                     asyncio.ensure_future(self.pump(Way(self, ids, False, upstream, dialler), b""))]
            await asyncio.gather(*tasks)
        except (OSError, Reset, asyncio.CancelledError):
            for one in (dialler, upstream):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            dialler.close()
            upstream.close()

    async def greeting(self, dialler):
        """Returns the hello of a member that connects, and the ids in it: (its own, the intended listener's)."""
        data = b""
        while len(data) < HELLO_BYTES:
            more = await asyncio.get_running_loop().sock_recv(dialler, HELLO_BYTES - len(data))
            if not more:
                raise Reset
            data += more
        self.seen.append(data)
        return data, struct.unpack_from("<QQ", data, 8)

    async def pump(self, way, data):
        loop = asyncio.get_running_loop()
        while data or (data := await loop.sock_recv(way.source, 1 << 16)):
            if self.host and way.up:
                await self.look_for_address(data)
            fault = self.network.fault_on(way)
            spans = way.spans(data)
            await (fault.pass_on(way, data, spans) if fault else way.send(data))
            data = b""
        way.finish()

    async def look_for_address(self, data):
        """Finds the address where a member's links listen, and puts a gate in front of it before other members learn of
        it."""
        self.tail = (self.tail + data)[-4096:]
        for port in re.findall(rb'"address":"%s:(\d+)"' % re.escape(self.host.encode()), self.tail):
            self.network.stand_before((self.host, int(port)))


class Network:
    def __init__(self):
        self.faults, self.gates, self.tasks = [], {}, set()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def close(self):
        async def end():
            for task in list(self.tasks):
                task.cancel()
            await asyncio.gather(*self.tasks, return_exceptions=True)
        self.heal()
        asyncio.run_coroutine_threadsafe(end(), self.loop).result(30)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(30)
        for gate in self.gates.values():
            gate.listener.close()
        self.loop.close()

    def spawn(self, work):
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def gate(self, at, to, member_link, host=None):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(at)
        listener.listen(256)
        listener.setblocking(False)
        gate = Gate(self, listener, to, member_link, host)
        self.gates[gate.address] = gate
        self.loop.call_soon_threadsafe(lambda: self.spawn(gate.serve()))
        return gate

    def stand_before(self, address):
        if address not in self.gates:
            self.gate(address, ("127.0.0.1", address[1]), True)

    # ---- faults, added and removed by the drill's thread

    def add(self, fault):
        self.faults = self.faults + [fault]
        return fault

    def heal(self, fault=None):
        gone = self.faults if fault is None else [fault]
        self.faults = [one for one in self.faults if one not in gone]
        for one in gone:
            one.healed = True

    def fault_on(self, way):
        return next((fault for fault in self.faults if not fault.spent and fault.chosen(way)), None)


# ---- faults ---------------------------------------------------------------------------------------------------------

class Fault:
    """A fault acts on the ways that `chosen` selects. A fault that is spent forwards everything unchanged."""

    def __init__(self, chosen, rng=None):
        self.chosen, self.rng = chosen, rng or random.Random(0)
        self.spent = self.healed = False
        self.touched = 0  # number of chunks that this fault has changed

    async def pass_on(self, way, data, spans):
        self.touched += 1
        await self.do(way, data, spans)


class Delay(Fault):
    SECONDS = 0.03

    async def do(self, way, data, spans):
        await asyncio.sleep(self.SECONDS)
        await way.send(data)


class Trickle(Fault):
    async def do(self, way, data, spans):
        for at in range(len(data)):
            if self.healed:
                return await way.send(data[at:])
            await way.send(data[at:at + 1])
            await asyncio.sleep(0.002)


class Swallow(Fault):
    """The connection stays open, but nothing arrives any more."""

    async def do(self, way, data, spans):
        pass


class Hold(Fault):
    """Acts like a cable that is pulled and plugged in again: bytes arrive late, and no byte is missing."""

    async def do(self, way, data, spans):
        while not self.healed:
            await asyncio.sleep(0.01)
        await way.send(data)


class Break(Fault):
    """Resets the connection in the middle of a chunk."""

    async def do(self, way, data, spans):
        self.spent = True
        await way.send(data[:len(data) // 2])
        raise Reset


class Truncate(Fault):
    """Ends the connection in an orderly way in the middle of a chunk."""

    async def do(self, way, data, spans):
        if self.spent:
            return
        self.spent = True
        await way.send(data[:len(data) // 2])
        way.finish()
        while await asyncio.get_running_loop().sock_recv(way.source, 1 << 16):
            pass


class Flip(Fault):
    """Flips one bit in the given part of the format. If `place` is given, flips a bit of this byte of the part, and
    skips chunks in which no such part begins."""

    def __init__(self, chosen, part, rng=None, place=None):
        super().__init__(chosen, rng)
        self.part, self.place = part, place

    async def pass_on(self, way, data, spans):
        there = [span for span in spans if span.part == self.part and (self.place is None or span.first)]
        if there:
            self.touched += 1
            self.spent = True
            span = self.rng.choice(there)
            at = span.begin + self.place if self.place is not None else self.rng.randrange(span.begin, span.end)
            data = bytearray(data)
            data[at] ^= 1 << self.rng.randrange(8)
        await way.send(data)


def whole_frames(spans):
    """Returns [begin, end) of the frames in a chunk that are complete and are not pulses."""
    found = []
    for i, span in enumerate(spans):
        if span.part != "header" or not (span.first and span.last) or span.type == bytes([PULSE]):
            continue
        after = spans[i + 1] if i + 1 < len(spans) else None
        if after is not None and after.part == "header":  # the frame has no payload
            found.append((span.begin, span.end))
        elif after is not None and after.last:
            found.append((span.begin, after.end))
    return found


class Repeat(Fault):
    """Sends a part of the stream twice: a complete frame, or some bytes."""

    def __init__(self, chosen, frames, rng=None):
        super().__init__(chosen, rng)
        self.frames = frames

    async def pass_on(self, way, data, spans):
        pieces = whole_frames(spans)
        if not self.frames and len(data) > 1 and spans[0].part != "handshake":
            begin = self.rng.randrange(len(data) - 1)
            pieces = [(begin, self.rng.randrange(begin + 1, len(data)))]
        if pieces:
            self.touched += 1
            self.spent = True
            begin, end = self.rng.choice(pieces)
            data = data[:end] + data[begin:]
        await way.send(data)


class Hole(Fault):
    """Drops one complete frame and forwards all others."""

    async def pass_on(self, way, data, spans):
        pieces = whole_frames(spans)
        if pieces:
            self.touched += 1
            self.spent = True
            begin, end = self.rng.choice(pieces)
            data = data[:begin] + data[end:]
        await way.send(data)


# ---- choices of ways ------------------------------------------------------------------------------------------------

def between(a, b, up=None):
    """Chooses the link of two members, given by their ids. `up` chooses only one direction."""
    return lambda way: way.ids is not None and set(way.ids) == {a, b} and up in (None, way.up)


def links_of(member, up=None):
    return lambda way: way.ids is not None and member in way.ids and up in (None, way.up)


def line_of(gate, up=None):
    """Chooses a member's connection to the coordinator."""
    return lambda way: way.gate is gate and up in (None, way.up)


def either(*choices):
    return lambda way: any(chosen(way) for chosen in choices)
