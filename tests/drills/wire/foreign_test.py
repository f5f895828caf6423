"""Tests that unrelated processes may connect to the members' link ports and to the coordinator, but are not admitted
and do not stop the group. A new member can still connect."""
import hashlib
import hmac
import os
import pathlib
import random
import resource
import socket
import ssl
import struct
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import ed25519
import group as gr
import network as net
import sinew_process as sp

HELD = 300  # connections of a port scanner to each port; a member keeps fewer
NOT_PROVED = 1
WAIT = 120  # seconds; a timeout for responses and ends


def call(address):
    return socket.create_connection(address, timeout=WAIT)


def read_all(connection):
    """Reads all bytes until the other side closes or resets the connection."""
    data = b""
    try:
        while more := connection.recv(1 << 16):
            data += more
    except ConnectionError:
        pass
    return data


def hello_of(seen, sender, key=None):
    """Returns a hello of the member `sender` of the same job, made from a hello that was seen. `key` is the member's
    public key and certificate; by default, those that were seen."""
    return seen[:8] + struct.pack("<Q", sender) + seen[16:56] + os.urandom(32) + (key or seen[88:])


def certified(run_secret, sender, seed):
    """Returns a public key and its certificate, as the run's coordinator makes it."""
    key = ed25519.public_key(seed)
    coordinator = hmac.new(run_secret, b"sinew-tls-1", hashlib.sha256).digest()
    return key + ed25519.sign(coordinator, b"sinew-member-1" + struct.pack("<Q", sender) + key)


def proof(seed, dialler, listener):
    return ed25519.sign(seed, b"sinew-link-4\x01" + dialler[8:16] + listener[8:16] + dialler[56:88] + listener[56:88]
                        + dialler[24:56])


class Strangers:
    """Attacks on one address. Each method returns the connections that stay open."""

    def __init__(self, address, hello):
        self.address, self.hello = address, hello
        self.rng = random.Random(4)

    def say(self, data):
        with call(self.address) as one:
            try:
                one.sendall(data)
                one.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            return read_all(one)

    def garbage(self):
        for size in (1, 7, 88, 120, 5000, 1 << 18):
            self.say(self.rng.randbytes(size))

    def http(self):
        self.say(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")

    def tls(self):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with call(self.address) as one:
            try:
                context.wrap_socket(one)
            except (ssl.SSLError, OSError):
                return
        raise AssertionError("a port of the group speaks TLS")

    def resets(self):
        for _ in range(50):
            one = call(self.address)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.close()

    def giant_length(self):
        self.say(b"SNWF" + struct.pack("<BBHQ", 2, 0, 1, 1 << 62) + bytes(32))

    def hold(self):
        return [call(self.address) for _ in range(HELD)]

    def hold_half_hellos(self):
        held = [call(self.address) for _ in range(20)]
        for one in held:
            one.sendall(self.hello[:40])
        return held


class Foreign(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.job = sp.write_job(cls.path, gr.ENDLESS)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.held = []
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        self.addCleanup(lambda: [one.close() for one in self.held])

    def test_strangers(self):
        group = gr.Group(self, self.job, self.path / "run")
        group.until_complete()
        before = group.status()
        said, since = len(group.log()), time.monotonic()
        addresses = [("127.0.0.1", int(one["address"].rsplit(":", 1)[1])) for one in before["members"]]
        hellos = self.hellos(group)
        # no member connects to the member with the highest id, so only two of the three ports have got a hello
        self.assertEqual(len(hellos), 2)
        hello = next(iter(hellos.values()))
        for address in [*addresses, group.where]:
            strangers = Strangers(address, hello)
            for act in (strangers.hold, strangers.garbage, strangers.http, strangers.tls, strangers.resets,
                        strangers.giant_length, strangers.hold_half_hellos):
                self.held += self.meanwhile(group, act)[0] or []
        acts = [lambda: self.slow_hello(addresses[0], hello), lambda: self.wrong_calls(group)]
        if os.environ.get("SINEW_LONG"):  # the coordinator's timeout is longer
            acts.append(lambda: self.slow_header(group.where))
        for port, heard in hellos.items():
            to = ("127.0.0.1", port)
            acts += [lambda to=to, heard=heard: self.wrong_secret(to, heard), lambda to=to, heard=heard: self.replay(to, heard),
                     lambda to=to, heard=heard: self.uninvited(group.line["secret"].encode(), to, heard)]
        self.meanwhile(group, *acts)
        after = group.status()
        self.assertEqual([one["id"] for one in after["members"]], [one["id"] for one in before["members"]])
        for word in ("lost", "joins", "is fenced"):
            self.assertNotIn(word, group.log(said))
        print(f"\n  strangers: {len(self.held)} connections held; without a step for {group.watch.longest_gap(since):.2f} s at most")
        group.kill(0)  # a new member can still connect
        group.until_complete()
        group.stop()
        self.assertEqual(group.lives_that_failed(), [])
        gr.assert_same_story(self, group.directory, gr.Calm(self.job, self.path / "calm"))

    def meanwhile(self, group, *acts):
        """Runs all acts at the same time, and checks that the group makes steps meanwhile and afterwards. Returns the
        results of the acts."""
        results = {}
        threads = [threading.Thread(target=lambda i=i, act=act: results.update({i: self.result_of(act)}), daemon=True)
                   for i, act in enumerate(acts)]
        for thread in threads:
            thread.start()
        group.until_steps(2)
        group.until(lambda: not any(thread.is_alive() for thread in threads), "they come to an end")
        group.until_steps(2)
        for result in results.values():
            if isinstance(result, BaseException):
                raise result
        return [results[i] for i in range(len(acts))]

    def result_of(self, act):
        try:
            return act()
        except BaseException as error:
            return error

    def hellos(self, group):
        """Returns a dict: port of a member's links -> a hello that was sent to this port."""
        return {gate.address[1]: gate.seen[-1] for gate in list(group.network.gates.values()) if gate.seen}

    def shake(self, address, hello):
        """Sends `hello` and reads the listener's hello. Returns the connection and the listener's hello."""
        one = call(address)
        self.addCleanup(one.close)
        one.sendall(hello)
        heard = b""
        while len(heard) < net.HELLO_BYTES:
            more = one.recv(net.HELLO_BYTES - len(heard))
            self.assertTrue(more, "the listener says nothing to a hello of its job")
            heard += more
        return one, heard

    def wrong_secret(self, address, seen):
        """Connects as the member of another run, with garbage as the proof, and with the key of a member as its own."""
        seed, sender = os.urandom(32), 1 << 40
        for mine, signed in ((hello_of(seen, sender, certified(b"not the secret", sender, seed)), True),
                             (hello_of(seen, sender, os.urandom(96)), False),
                             (hello_of(seen, sender), True),
                             (hello_of(seen, struct.unpack_from("<Q", seen, 8)[0]), True)):
            one, theirs = self.shake(address, mine)
            one.sendall(proof(seed, mine, theirs) if signed else bytes(64))
            self.assertEqual(read_all(one), bytes([NOT_PROVED]) + bytes(64))

    def replay(self, address, seen):
        """Repeats the hello of a member, with random bytes as the proof. The listener's nonce is new, so no earlier
        proof would be valid."""
        one, theirs = self.shake(address, seen)
        one.sendall(os.urandom(64))
        self.assertEqual(read_all(one)[:1], bytes([NOT_PROVED]))

    def uninvited(self, secret, address, seen):
        """Connects with a certificate, but as a member of no view. The listener lets this process wait, reads no frame
        from it, and then disconnects it."""
        seed, sender = os.urandom(32), 1 << 40
        mine = hello_of(seen, sender, certified(secret, sender, seed))
        one, theirs = self.shake(address, mine)
        one.sendall(proof(seed, mine, theirs))
        one.sendall(b"SNWF" + struct.pack("<BBHQ", 2, 0, 1, 1 << 62) + bytes(32))
        answer = read_all(one)
        self.assertEqual(answer[:1], b"\0")  # the listener accepts the handshake; pulses may follow

    def slow_hello(self, address, hello):
        """Sends a hello byte by byte. The listener closes the connection before the end of the hello, because the
        handshake takes too long."""
        with call(address) as one:
            try:
                for at in range(len(hello)):
                    one.sendall(hello[at:at + 1])
                    time.sleep(0.1)
            except OSError:
                return
        self.fail("a hello of nine seconds was listened to")

    def wrong_calls(self, group):
        self.assertEqual(group.call("GET", "/v2/status", token="wrong")[0], 401)
        self.assertEqual(group.call("POST", "/v2/scale", {"workers": 1}, token="x" * 1000)[0], 401)
        self.assertEqual(group.call("POST", "/v2/lost", {"pid": 1, "why": "x"}, token="wrong")[0], 401)
        stranger = {"incarnation": "f" * 32, "address": "127.0.0.1:1", "host": "x", "pid": 1,
                    "identity": {"job": "another", "machine": "another", "probe": "another"}}
        self.assertEqual(group.call("POST", "/v2/join", stranger)[0], 403)
        self.assertEqual(group.call("POST", "/v2/heartbeat", {"id": 1})[0], 400)
        plain = Strangers(group.where, b"")
        token = f"Authorization: Bearer {group.line['secret']}\r\n".encode()
        large = b"POST /v2/join HTTP/1.1\r\nHost: x\r\n" + token + b"Content-Length: 9000000\r\n\r\n" + bytes(1 << 16)
        self.assertIn(b" 413 ", plain.say(large)[:20])
        self.assertIn(b" 431 ", plain.say(b"GET /healthz HTTP/1.1\r\nX: " + b"y" * (1 << 20))[:20])
        self.assertIn(b" 400 ", plain.say(b"NONSENSE\r\n\r\n")[:20])

    def slow_header(self, address):
        with call(address) as one:
            try:
                for _ in range(2 * WAIT):
                    one.sendall(b"G")
                    time.sleep(0.5)
            except OSError:
                return
        self.fail("a header was listened to without end")


if __name__ == "__main__":
    unittest.main()
