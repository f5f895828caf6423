"""Records what MLflow's client was answered, without what differs between any two servers: ids, times of today and names
that a server makes up. So the transcripts of two servers can be compared.
"""
import contextlib
import enum
import math
import os
import re
import time

DAY_MS = 86_400_000
ID = re.compile(r"\bm-[0-9a-f]{32}\b|\b[0-9a-f]{32}\b")
PLACE = re.compile(r"(mlflow-artifacts:/)(\d+)(?=/|$)")  # of an experiment
MADE_UP = re.compile(r"^(?:[a-z]+-[a-z]+-\d+|run-[0-9a-f]{8})$")
TIME = re.compile(r"(?:time|timestamp)$")
RESERVED = "sinew."  # tags that only Sinew sets


def without_empty_fields(answer):
    """Returns a JSON answer without its empty fields, because the JSON of a protobuf message may leave them out."""
    if isinstance(answer, dict):
        shorter = {name: without_empty_fields(value) for name, value in answer.items()}
        return {name: value for name, value in shorter.items() if value not in ("", [], {}, None)}
    return [without_empty_fields(item) for item in answer] if isinstance(answer, list) else answer


class Transcript:
    def __init__(self):
        self.entries = []  # (what was asked, the answer, the name of the known difference that it may show)
        self.known = None
        self.numbers = {}

    def note(self, asked, answer, key=""):
        self.entries.append((asked, self.plain(answer, key), self.known))

    def note_refusal(self, asked, code):
        self.entries.append((asked, {"refused": code}, self.known))

    @contextlib.contextmanager
    def differs(self, name):
        self.known = name
        try:
            yield
        finally:
            self.known = None

    def numbered(self, kind, text):
        """Numbers ids in the order in which they appear, which is the same for all servers."""
        number = self.numbers.setdefault((kind, text), sum(one == kind for one, _ in self.numbers) + 1)
        return f"<{kind} {number}>"

    def experiment(self, text):
        return text if text == "0" else self.numbered("experiment", text)

    def text(self, value, key=""):
        if key in ("experiment_id", "experiment_ids"):
            return self.experiment(value)
        if key in ("run_name", "mlflow.runName") and MADE_UP.match(value):
            return "<a name>"
        value = ID.sub(lambda found: self.numbered("model" if found[0].startswith("m-") else "run", found[0]), value)
        return PLACE.sub(lambda found: found[1] + self.experiment(found[2]), value)

    def plain(self, value, key=""):
        """Returns the value as JSON would have it."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, enum.Enum):
            return value.name
        if isinstance(value, (int, float)):
            if TIME.search(key) and abs(value - 1000 * time.time()) < DAY_MS:
                return "<a time>"
            return value if math.isfinite(value) else repr(float(value))
        if isinstance(value, str):
            return self.text(value, key)
        if isinstance(value, dict):
            return {self.text(name): self.plain(value[name], name) for name in sorted(value) if not name.startswith(RESERVED)}
        if isinstance(value, (list, tuple, set)):
            return self.plain_list(value, key)
        try:
            items = list(value)  # an entity of the client yields its properties, a list of protobuf its items
        except TypeError:
            return self.plain({name.lstrip("_"): field for name, field in vars(value).items()})
        pairs = all(isinstance(item, tuple) and len(item) == 2 for item in items)
        return self.plain(dict(items)) if items and pairs else self.plain_list(items, key)

    def plain_list(self, value, key):
        items = sorted(value) if isinstance(value, set) else list(value)
        # The entries of a JSON answer come in any order.
        if key in ("tags", "params") and all(isinstance(item, dict) and set(item) <= {"key", "value"} for item in items):
            return self.plain({item["key"]: item.get("value", "") for item in items}, key)
        if key == "latest_versions":  # one for each stage, in no defined order
            items.sort(key=lambda item: int(item["version"] if isinstance(item, dict) else item.version))
        listed = [self.plain(item, key) for item in items]
        return {"page": listed, "has a next page": bool(value.token)} if hasattr(value, "token") else listed


class Recorder:
    """Behaves like the client and writes what it is answered into the transcript."""

    def __init__(self, client, transcript):
        self.client, self.transcript = client, transcript

    def __getattr__(self, name):
        from mlflow.exceptions import MlflowException
        method = getattr(self.client, name)

        def call(*args, **more):
            asked = f"{name}({', '.join([*map(repr, args), *(f'{key}={value!r}' for key, value in more.items())])})"[:500]
            try:
                answer = method(*args, **more)
            except MlflowException as error:
                self.transcript.note_refusal(asked, error.error_code)
                raise
            if isinstance(answer, str) and os.path.exists(answer):
                self.transcript.note(asked, "<files here>")
            else:
                self.transcript.note(asked, answer, {"create_experiment": "experiment_id", "get_latest_versions": "latest_versions"}.get(name, ""))
            return answer

        return call


def differences(ours, theirs, known, used):
    """Compares the transcripts of one story. Yields a sentence for each difference that is not known. `known` has, for
    each name of a known difference, its reason and a function that tells of two answers whether they show it. Adds the
    names of those that were seen to `used`."""
    for number, ((asked, our, name), (_, their, _)) in enumerate(zip(ours, theirs), 1):
        if our == their:
            continue
        if name is not None and known[name][1](our, their):
            used.add(name)
            continue
        yield f"{number}. {asked}: " + "; ".join(parts_that_differ(our, their))
    if len(ours) != len(theirs):
        yield f"{len(ours)} answers of Sinew, {len(theirs)} of MLflow"


def parts_that_differ(our, their, path=""):
    """Yields the innermost parts that differ."""
    if isinstance(our, dict) and isinstance(their, dict) and "refused" not in {*our, *their}:
        for name in sorted({*our, *their}):
            if name not in our or name not in their:
                yield f"{path}.{name}: only {'MLflow' if name in their else 'Sinew'} has it, {(their if name in their else our)[name]!r}"
            elif our[name] != their[name]:
                yield from parts_that_differ(our[name], their[name], f"{path}.{name}")
    elif isinstance(our, list) and isinstance(their, list) and len(our) == len(their):
        for number, (one, other) in enumerate(zip(our, their)):
            if one != other:
                yield from parts_that_differ(one, other, f"{path}[{number}]")
    else:
        yield f"{path or 'answer'}: Sinew {our!r}, MLflow {their!r}"[:1000]
