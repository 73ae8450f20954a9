"""What the real cloud-init makes of user data.

In: lines of JSON: `parts` as they were written, `ours`, which was made of them, and `config`, the
cloud-config that is said to come of it. Out: for each line `{"failure": null}`, or what differs.
"""

import base64
import json
import logging
import math
import os
import sys
import tempfile
from email import encoders
from email.mime.base import MIMEBase
from email.mime.multipart import MIMEMultipart

import yaml
from cloudinit import handlers, helpers
from cloudinit.handlers.cloud_config import CloudConfigPartHandler
from cloudinit.user_data import UserDataProcessor

logging.disable(logging.CRITICAL)
KINDS = ("text/cloud-config", "text/cloud-config-jsonp")


def merged(folder, blob):
    """The buffer that is left when all parts were handled, and the other parts."""
    paths = helpers.Paths({"cloud_dir": folder, "run_dir": folder})
    paths.get_ipath = lambda name=None: os.path.join(folder, name or "x")
    handler = CloudConfigPartHandler(paths)
    handler.handle_part(None, handlers.CONTENT_START, None, None, None, None)
    others = []

    def part(_data, filename, payload, headers):
        kind = headers["Content-Type"]
        if kind in KINDS:
            handler.handle_part(None, kind, filename, payload, None, headers)
        else:
            others.append([kind, payload if isinstance(payload, str) else payload.decode()])

    handlers.walk(UserDataProcessor(paths).process(blob), part, None)
    return handler.cloud_buf, others


def message(parts):
    """The parts as one message, as Python writes it."""
    outer = MIMEMultipart()
    for part in parts:
        main, _, sub = part["type"].partition("/")
        inner = MIMEBase(main, sub)
        inner.set_payload(base64.b64decode(part["content"]))
        encoders.encode_base64(inner)
        if part["merge"] is not None:
            inner["Merge-Type"] = part["merge"]
        outer.attach(inner)
    return outer.as_bytes()


def same(a, b):
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        keys = lambda of: sorted((repr(key) for key in of))
        return keys(a) == keys(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, float):
        return a == b or math.isnan(a) and math.isnan(b)
    return a == b


def judge(folder, case):
    expected, others = merged(folder, message(case["parts"]))
    found, found_others = merged(folder, base64.b64decode(case["ours"]))
    if case["mode"] != "nstance" and not same(expected, found):
        return f"cloud-init merges the parts to {expected!r}, and the result to {found!r}"
    config = case["config"] and yaml.safe_load(case["config"])
    if not same(found, config):
        return f"cloud-init makes {found!r} of the result, which is said to be {config!r}"
    if others != found_others:
        return f"the other parts were {others!r}, and are {found_others!r}"
    return None


with tempfile.TemporaryDirectory() as folder:
    for line in sys.stdin:
        try:
            failure = judge(folder, json.loads(line))
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
        print(json.dumps({"failure": failure}), flush=True)
