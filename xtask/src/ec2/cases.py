"""Calls as botocore makes them: random inputs with what goes over the wire, random answers with what
comes out of them.

In: the seed, how many inputs of RunInstances, how many of each other operation, and the operations,
as SERVICE/VERSION/NAME. Out: a JSON object a line. May not: ask AWS.
"""

import base64
import datetime
import json
import random
import sys
from xml.sax.saxutils import escape

import botocore.loaders
import botocore.model
import botocore.parsers
import botocore.serialize

WORDS = [
    "", "a", "i-0123456789abcdef0", "a b", "  blank  ", "a&b=c", "1+1", "100%", "%41", "a/b?c#d",
    "\"quoted\"", "it's", "<tag attr=\"1\">&amp;</tag>", "]]>", "back\\slash", "semi;colon,comma",
    "tilde~dash-dot.under_score*", "äöüß", "日本語", "🦀", "e\u0301", "line\nbreak", "tab\tstop",
    "{{ .Vars.X }}", "null", "true", "0", "-1", "1e9", "[]", "{}", "$(id)", "x" * 300,
]
NUMBERS = [0, 1, -1, 7, 443, 65535]


def shorten(moment):
    """A moment in RFC 3339, its fraction without zeros at the end."""
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    if moment.microsecond:
        text += (".%06d" % moment.microsecond).rstrip("0")
    return text + "Z"


class Draw:
    def __init__(self, seed, density, protocol):
        self.random = random.Random(seed)
        self.density = density
        self.protocol = protocol
        self.sending = True

    def pick(self, items):
        return self.random.choice(items)

    def text(self, shape):
        if shape.enum:
            # One in eight is a value that nobody knows yet.
            return "brand-new" if self.random.random() < 0.125 else self.pick(shape.enum)
        return self.pick(WORDS)

    def whole(self, shape, largest):
        low = shape.metadata.get("min", -largest - 1)
        high = shape.metadata.get("max", largest)
        near = [number for number in NUMBERS if low <= number <= high]
        return self.pick([low, high] + near)

    def moment(self):
        moment = datetime.datetime(2000, 1, 1) + datetime.timedelta(
            seconds=self.random.randrange(2_000_000_000)
        )
        if self.random.random() < 0.5:
            # botocore sends six digits and the SDK as many as it takes; quarters have the same
            # digits in binary, as which answers in JSON have them.
            digits = [123_457, 1] if self.sending else [250_000, 500_000, 750_000]
            moment += datetime.timedelta(microseconds=self.pick(digits))
        return moment

    def value(self, shape):
        """A value as JSON has it."""
        kind = shape.type_name
        if kind == "structure":
            return {
                name: self.value(member)
                for name, member in shape.members.items()
                if name in shape.required_members
                or self.random.random() < self.density
            }
        if kind == "list":
            # Of an empty list botocore makes an empty parameter in services with the older query
            # protocol, the SDK none.
            least = 1 if self.sending and self.protocol == "query" else 0
            return [self.value(shape.member) for _ in range(self.random.randint(least, 3))]
        if kind == "map":
            return {
                word: self.value(shape.value)
                for word in self.random.sample(["a", "b c", "ä"], self.random.randint(1, 3))
            }
        if kind == "string":
            return self.text(shape)
        if kind == "boolean":
            return self.random.random() < 0.5
        if kind == "integer":
            return self.whole(shape, 2**31 - 1)
        if kind == "long":
            return self.whole(shape, 2**63 - 1)
        if kind in ("double", "float"):
            return self.pick([0.5, 12.25, 100.0, 1e9])
        if kind == "timestamp":
            return shorten(self.moment())
        if kind == "blob":
            return base64.b64encode(self.random.randbytes(self.random.randint(0, 40))).decode()
        raise SystemExit(f"no idea how to draw a {kind}")


def plain(shape, value):
    """A value as botocore takes it."""
    kind = shape.type_name
    if kind == "structure":
        return {name: plain(shape.members[name], item) for name, item in value.items()}
    if kind == "list":
        return [plain(shape.member, item) for item in value]
    if kind == "blob":
        return base64.b64decode(value)
    if kind == "timestamp":
        return datetime.datetime.fromisoformat(value[:-1]).replace(tzinfo=datetime.timezone.utc)
    return value


def back(shape, value):
    """What botocore read, as JSON has it."""
    kind = shape.type_name
    if kind == "structure":
        return {
            name: back(shape.members[name], item)
            for name, item in value.items()
            if name != "ResponseMetadata"
        }
    if kind == "list":
        return [back(shape.member, item) for item in value]
    if kind == "map":
        return {name: back(shape.value, item) for name, item in value.items()}
    if kind == "timestamp":
        return shorten(value.astimezone(datetime.timezone.utc).replace(tzinfo=None))
    if kind == "blob":
        return base64.b64encode(value).decode()
    return value


def xml(shape, value, name):
    """A value as the query protocols answer it."""
    kind = shape.type_name
    if kind == "structure":
        inner = "".join(
            xml(shape.members[member], item, shape.members[member].serialization.get("name", member))
            for member, item in value.items()
        )
    elif kind == "list":
        item_name = shape.member.serialization.get("name", "member")
        if shape.serialization.get("flattened"):
            return "".join(xml(shape.member, item, name) for item in value)
        inner = "".join(xml(shape.member, item, item_name) for item in value)
    elif kind == "boolean":
        inner = "true" if value else "false"
    elif kind in ("string", "timestamp", "blob"):
        inner = escape(value)
    else:
        inner = str(value)
    return f"<{name}>{inner}</{name}>"


def epochs(shape, value):
    """A value as the JSON protocols answer it: moments are seconds."""
    kind = shape.type_name
    if kind == "structure":
        return {name: epochs(shape.members[name], item) for name, item in value.items()}
    if kind == "list":
        return [epochs(shape.member, item) for item in value]
    if kind == "timestamp":
        moment = datetime.datetime.fromisoformat(value[:-1]).replace(tzinfo=datetime.timezone.utc)
        return moment.timestamp()
    return value


def answer(service, operation, draw):
    """An answer of the service, and what botocore makes of it."""
    protocol = service.metadata["protocol"]
    shape = operation.output_shape
    value = draw.value(shape) if shape is not None else {}
    name = operation.name
    if protocol == "json":
        body = json.dumps(epochs(shape, value), ensure_ascii=False)
    else:
        inner = "".join(
            xml(shape.members[member], item, shape.members[member].serialization.get("name", member))
            for member, item in value.items()
        )
        space = service.metadata.get("xmlNamespace", "")
        if protocol == "ec2":
            body = (
                f'<?xml version="1.0" encoding="UTF-8"?>\n<{name}Response xmlns="{space}">'
                f"<requestId>1-2-3</requestId>{inner}</{name}Response>"
            )
        else:
            body = (
                f'<{name}Response xmlns="{space}"><{name}Result>{inner}</{name}Result>'
                f"<ResponseMetadata><RequestId>1-2-3</RequestId></ResponseMetadata></{name}Response>"
            )
    parser = botocore.parsers.create_parser(protocol)
    response = {"status_code": 200, "headers": {}, "body": body.encode()}
    parsed = parser.parse(response, shape) if shape is not None else {}
    return body, back(shape, parsed) if shape is not None else {}


def sent(service, operation, value):
    """What botocore sends: parameters of a form by name, or a JSON document."""
    serializer = botocore.serialize.create_serializer(
        service.metadata["protocol"], include_validation=False
    )
    request = serializer.serialize_to_request(plain(operation.input_shape, value), operation)
    body = request["body"]
    if isinstance(body, dict):
        return {"form": {name: str(item) for name, item in body.items()}}
    return {"json": json.loads(body), "target": request["headers"]["X-Amz-Target"]}


def main():
    seed, many, few, *names = sys.argv[1:]
    loader = botocore.loaders.Loader()
    services = {}
    for full in names:
        folder, version, name = full.split("/")
        if folder not in services:
            model = loader.load_service_model(folder, "service-2", version)
            services[folder] = botocore.model.ServiceModel(model)
        service = services[folder]
        operation = service.operation_model(name)
        for number in range(int(many if name == "RunInstances" else few)):
            label = f"{seed}/{name}/{number}"
            # Sparse trees and full ones.
            draw = Draw(label, [0.15, 0.5, 0.9, 1.0][number % 4], service.metadata["protocol"])
            value = draw.value(operation.input_shape)
            if "ClientToken" in operation.input_shape.members:
                # Without one, the clients would make one up.
                value["ClientToken"] = draw.pick(WORDS[1:4])
            # A fleet of instances at full density would be a megabyte.
            draw.density = [0.1, 0.4, 0.2, 0.7][number % 4] if name != "RunInstances" else 0.25
            draw.sending = False
            body, output = answer(service, operation, draw)
            case = {
                "id": label,
                "operation": name,
                "input": value,
                "sent": sent(service, operation, value),
                "answer": body,
                "output": output,
            }
            print(json.dumps(case, ensure_ascii=False, sort_keys=True))


main()
