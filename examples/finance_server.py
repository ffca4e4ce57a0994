"""A small MCP server over stdio, in nothing but the standard library.

    python3 examples/finance_server.py finance    quarterly income statements
    python3 examples/finance_server.py hr         engineers and their expenses

All figures are made up.
"""

import json
import random
import sys
from datetime import date, timedelta

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

# --- finance: revenue in billions of dollars, the latest quarter first --------------------------

REVENUE = {
    "AMZN": (170.0, 165.3, 158.9, 149.2),
    "MSFT": (65.6, 62.0, 59.1, 56.5),
    "GOOG": (96.5, 88.3, 85.0, 80.5),
}
GROSS_MARGIN = {"AMZN": 0.49, "MSFT": 0.69, "GOOG": 0.58}
NET_MARGIN = {"AMZN": 0.08, "MSFT": 0.36, "GOOG": 0.27}
QUARTERS = (("2024-Q4", "2024-12-31"), ("2024-Q3", "2024-09-30"),
            ("2024-Q2", "2024-06-30"), ("2024-Q1", "2024-03-31"))


def query_financials(ticker, statement="income", period="quarter", limit=4):
    if ticker not in REVENUE:
        raise ValueError(f"unknown ticker {ticker!r}; known: {', '.join(REVENUE)}")
    if (statement, period) != ("income", "quarter"):
        raise ValueError("only quarterly income statements are on file")
    rows = []
    for (name, end), billions in zip(QUARTERS[:limit], REVENUE[ticker]):
        revenue = billions * 1e9
        rows.append({
            "ticker": ticker,
            "fiscal_period": name,
            "period_end": end,
            "currency": "USD",
            "revenue": revenue,
            "cost_of_revenue": round(revenue * (1 - GROSS_MARGIN[ticker])),
            "gross_profit": round(revenue * GROSS_MARGIN[ticker]),
            "net_income": round(revenue * NET_MARGIN[ticker]),
        })
    return rows


# --- hr: twenty engineers, about a hundred expense lines each ------------------------------------

NAMES = ("Ada", "Barbara", "Claude", "Dennis", "Edsger", "Frances", "Grace", "Hedy", "Ivan", "Jean",
         "Ken", "Leslie", "Margaret", "Niklaus", "Ole", "Peter", "Radia", "Sophie", "Tony", "Vint")
OVERSPENDERS = ("Edsger", "Margaret", "Vint")
MERCHANTS = {
    "travel": ("Blue Sky Airlines", "Hotel Central", "City Cabs", "Northern Rail"),
    "meals": ("Corner Bistro", "Noodle Bar", "Green Deli"),
    "software": ("Plugin Store", "Font Foundry", "Cloud Credits"),
    "hardware": ("Keyboard Works", "Cable Depot"),
}
CATEGORIES = ("travel", "meals", "meals", "software", "hardware")
LARGEST = {"travel": 250, "meals": 60, "software": 90, "hardware": 150}
FIRST_DAY = date(2025, 1, 1)


def list_engineers():
    return [{"id": f"E{number:03}", "name": name, "team": ("platform", "apps")[number % 2],
             "travel_budget": 3000} for number, name in enumerate(NAMES, start=1)]


def get_expenses(employee_id, **dates):
    engineer = next((e for e in list_engineers() if e["id"] == employee_id), None)
    if engineer is None:
        raise ValueError(f"no employee {employee_id!r}")
    first, last = dates["from"], dates["to"]
    # Only random() is the same in every version of Python.
    draw = random.Random(employee_id).random
    factor = 2.0 if engineer["name"] in OVERSPENDERS else 0.8
    lines = []
    for number in range(90 + int(draw() * 20)):
        category = CATEGORIES[int(draw() * len(CATEGORIES))]
        merchant = MERCHANTS[category][int(draw() * len(MERCHANTS[category]))]
        amount = (0.1 + 0.9 * draw()) * LARGEST[category]
        lines.append({
            "date": (FIRST_DAY + timedelta(days=int(draw() * 90))).isoformat(),
            "category": category,
            "merchant": merchant,
            "amount": round(amount * factor if category == "travel" else amount, 2),
            "status": "rejected" if draw() < 0.05 else "approved",
        })
    lines = sorted((x for x in lines if first <= x["date"] <= last), key=lambda x: x["date"])
    return {"employee_id": employee_id, "currency": "USD", "expenses": lines}


# --- what tools/list says -----------------------------------------------------------------------

def schema(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


def wrapped(items):
    """A result has to be an object: FastMCP wraps a list as {"result": [...]}, and says so."""
    return {**schema(["result"], result={"type": "array", "items": items}),
            "x-fastmcp-wrap-result": True}


TEXT, NUMBER = {"type": "string"}, {"type": "number"}
DAY = {"type": "string", "format": "date", "description": "ISO date, inclusive"}
STATEMENT = schema(["ticker", "fiscal_period", "revenue"], ticker=TEXT, fiscal_period=TEXT,
                   period_end=DAY, currency=TEXT, revenue=NUMBER, cost_of_revenue=NUMBER,
                   gross_profit=NUMBER, net_income=NUMBER)
ENGINEER = schema(["id", "name", "team", "travel_budget"], id=TEXT, name=TEXT, team=TEXT,
                  travel_budget={**NUMBER, "description": "dollars a quarter"})
EXPENSE = schema(["date", "category", "amount", "merchant", "status"], date=DAY, amount=NUMBER,
                 category={"enum": list(MERCHANTS)}, merchant=TEXT,
                 status={"enum": ["approved", "rejected"]})

TOOLS = {
    "finance": {query_financials: (
        "Financial statements of a company, the latest first; amounts in dollars.",
        schema(["ticker"], ticker={**TEXT, "description": "AMZN, MSFT or GOOG"},
               statement={"enum": ["income"], "default": "income"},
               period={"enum": ["quarter"], "default": "quarter"},
               limit={"type": "integer", "minimum": 1, "default": 4}),
        wrapped(STATEMENT))},
    "hr": {
        list_engineers: ("All engineers, with their travel budgets.", schema(), wrapped(ENGINEER)),
        get_expenses: (
            "One employee's expense lines in a range of dates, 50 to 200 for a quarter.",
            schema(["employee_id", "from", "to"], employee_id=TEXT, **{"from": DAY, "to": DAY}),
            schema(["employee_id", "currency", "expenses"], employee_id=TEXT, currency=TEXT,
                   expenses={"type": "array", "items": EXPENSE}))},
}


# --- the protocol: one JSON-RPC message a line --------------------------------------------------

def call(tools, name, arguments):
    tool = next((tool for tool in tools if tool.__name__ == name), None)
    if tool is None:
        raise LookupError(f"unknown tool {name!r}")
    try:
        value = tool(**arguments)
    except (ValueError, TypeError, KeyError) as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    result = {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}
    if isinstance(value, list):
        result["structuredContent"] = {"result": value}
        result["_meta"] = {"fastmcp": {"wrap_result": True}}
    return result


def answer(which, method, params):
    tools = TOOLS[which]
    if method == "initialize":
        asked = params.get("protocolVersion")
        return {"protocolVersion": asked if asked in VERSIONS else VERSIONS[-1],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": f"example-{which}", "version": "1.0"}}
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [{"name": tool.__name__, "description": description, "inputSchema": inputs,
                           "outputSchema": outputs, "annotations": {"readOnlyHint": True}}
                          for tool, (description, inputs, outputs) in tools.items()]}
    if method == "tools/call":
        return call(tools, params.get("name"), params.get("arguments") or {})
    raise NotImplementedError(f"unknown method {method!r}")


def main():
    which = sys.argv[1] if len(sys.argv) > 1 else ""
    if which not in TOOLS:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(TOOLS)}")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            reply["result"] = answer(which, message["method"], message.get("params") or {})
        except LookupError as error:
            reply["error"] = {"code": -32602, "message": str(error)}
        except NotImplementedError as error:
            reply["error"] = {"code": -32601, "message": str(error)}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
