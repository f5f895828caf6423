"""Ed25519 (RFC 8032) in Python, so that a drill can sign as a member does. It is slow, and not safe against timing."""
import hashlib

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def x_of(y):
    """Returns the even x of the curve's point with this y."""
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    return x if x % 2 == 0 else P - x


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE = (x_of(BASE_Y), BASE_Y, 1, x_of(BASE_Y) * BASE_Y % P)


def add(a, b):
    """Adds two points in extended coordinates (x, y, z, xy)."""
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    return (f - e) * (h - g) % P, (h + g) * (f + e) % P, (h - g) * (h + g) % P, (f - e) * (f + e) % P


def times_base(number):
    """Returns the bytes of a multiple of the base point."""
    total, power = (0, 1, 1, 0), BASE
    while number:
        if number & 1:
            total = add(total, power)
        power, number = add(power, power), number >> 1
    inverse = pow(total[2], P - 2, P)
    x, y = total[0] * inverse % P, total[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def halves(seed):
    digest = hashlib.sha512(seed).digest()
    scalar = int.from_bytes(digest[:32], "little")
    return scalar & (1 << 254) - 8 | 1 << 254, digest[32:]


def public_key(seed):
    return times_base(halves(seed)[0])


def sign(seed, message):
    scalar, prefix = halves(seed)
    number = lambda *parts: int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % ORDER
    nonce = number(prefix, message)
    point = times_base(nonce)
    return point + ((nonce + number(point, public_key(seed), message) * scalar) % ORDER).to_bytes(32, "little")
