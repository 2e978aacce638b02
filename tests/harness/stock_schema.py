"""A vendor's extension: its schema, its facts, and the bindings that are generated from them."""

from __future__ import annotations

import importlib
import json
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mcp_bindgen.emit import Request, targets, write
from tests.harness.forks import PYTHON
from tests.harness.shared import alone

PACKAGE = "acme_stock"
ID: str = "com.example/stock"

TEXT = {"type": "string"}


def _message(kind: str, method: str, params: str) -> dict[str, Any]:
    own = {"properties": {"method": {"const": method, **TEXT}, "params": {"$ref": f"#/$defs/{params}"}}}
    return {"allOf": [{"$ref": f"#/$defs/JSONRPC{kind}"}, {"type": "object", "required": ["method", "params"], **own}]}


def _object(*required: str, **members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": list(required)}


def _result(name: str, *required: str, **members: Any) -> dict[str, Any]:
    own = _object("resultType", *required, resultType={"const": name, **TEXT}, **members)
    return {"allOf": [{"$ref": "#/$defs/Result"}, own]}


SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {
        "GetStockRequest": _message("Request", "stock/get", "GetStockRequestParams"),
        "GetStockRequestParams": _object("item", item=TEXT),
        "GetStockResult": _result("complete", "count", "ttlMs", count={"type": "integer"}, ttlMs={"type": "integer"}),
        "StockReadNotification": _message("Notification", "notifications/stock/read", "StockReadNotificationParams"),
        "StockReadNotificationParams": _object("item", item=TEXT),
        "StockChangedNotification": _message("Notification", "notifications/stock", "StockChangedNotificationParams"),
        "StockChangedNotificationParams": _object("item", "count", item=TEXT, count={"type": "integer"}),
        "ReservedResult": _result("reserved", inputRequests={"type": "object"}, ttlMs={"type": "integer"}, by=TEXT),
        "StockSubscription": _object(stockItems={"type": "array", "items": TEXT}),
        "StockSettings": _object(currency={"enum": ["EUR", "USD"], **TEXT}),
    },
}

FACTS = """
[extension]
id = "com.example/stock"
module = "stock"
core = ["2026-07-28"]
doc = "Tell what is in stock, and reserve it."
settings = { client = "StockSettings" }

[roles]
GetStockRequest = "client"
StockReadNotification = "client"
StockChangedNotification = "server"

[alternatives]
"tools/call" = ["ReservedResult"]

[extends]
SubscriptionFilter = "StockSubscription"

[filters]
"notifications/stock" = { member = "SubscriptionFilter.stockItems", compares = "item" }

[names]
"stock/get" = "item"

[meta."com.example/shelf"]
Tool = "string"
"""


@cache
def folder() -> Path:
    """Return a folder with bindings, generated as by `mcp-bindgen generate --extension`.

    One process of a test run generates them for all processes.
    """
    found = Path(PYTHON).with_name("stock")
    with alone(found) as is_new:
        if is_new:
            made = found.with_name("stock.new")
            made.mkdir()
            schema, facts = made / "stock.json", made / "stock.toml"
            schema.write_text(json.dumps(SCHEMA), "utf-8")
            facts.write_text(FACTS, "utf-8")
            request = Request(("2026-07-28",), extensions=(str(schema),), semantics=facts, out=made, package=PACKAGE)
            for target in targets(request):
                write(target.folder, target.render())
            made.rename(found)
    sys.path.insert(0, str(found))
    return found


@cache
def stock() -> Any:
    """Return the bindings; generate them if they are not importable."""
    if find_spec(PACKAGE) is None:
        folder()
    return importlib.import_module(PACKAGE)
