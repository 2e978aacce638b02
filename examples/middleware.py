"""Five middlewares around the tools, prompts and resources of an `App`."""

import logging
import time
from collections import Counter, defaultdict, deque

from mcp_bindgen.app import App, Call, Next, Result, ToolError, run
from mcp_bindgen.runtime import InputRequired

app = App("middleware", version="1.0.0")
log = logging.getLogger("middleware")
seconds: defaultdict[str, float] = defaultdict(float)
calls: defaultdict[str | None, deque[float]] = defaultdict(deque)
asked: Counter[str | None] = Counter()
cached: dict[str, tuple[float, Result]] = {}
attempts: Counter[str] = Counter()


@app.middleware
async def timing(call: Call, next: Next) -> Result:
    """Add up the time of each entry."""
    begun = time.monotonic()
    try:
        return await next(call)
    finally:
        seconds[call.name] += time.monotonic() - begun


@app.middleware
async def audit(call: Call, next: Next) -> Result:
    """Log each call, its user and its failure; a round that only asks the user is no line."""
    user = call.ctx.origin.principal or "-"
    try:
        result = await next(call)
    except Exception as error:
        log.warning("%s %s by %s failed: %s", call.kind, call.name, user, error)
        raise
    log.info("%s %s by %s", call.kind, call.name, user)
    return result


@app.middleware
async def limit(call: Call, next: Next) -> Result:
    """Refuse more than 100 calls of a user in a minute; a call that asks the user counts once."""
    now, user = time.monotonic(), call.ctx.origin.principal
    recent = calls[user]
    while recent and recent[0] < now - 60:
        recent.popleft()
    if call.round > 1 and asked[user]:  # the answer to a round that was counted
        asked[user] -= 1
    elif len(recent) >= 100:
        raise ToolError("Too many calls; wait a minute.")
    else:
        recent.append(now)
    try:
        return await next(call)
    except InputRequired:
        asked[user] = min(asked[user] + 1, 100)
        raise


@app.middleware
async def cache(call: Call, next: Next) -> Result:
    """Keep the results of one tool for a minute, for all users."""
    if call.name != "forecast":
        return await next(call)
    key = repr(sorted(call.arguments.items()))
    if key not in cached or cached[key][0] < time.monotonic() - 60:
        cached[key] = time.monotonic(), await next(call)
    return cached[key][1]


@app.middleware
async def retry(call: Call, next: Next) -> Result:
    """Try again after a lost connection, twice."""
    for _ in range(2):
        try:
            return await next(call)
        except ConnectionError as error:
            log.info("%s again: %s", call.name, error)
    return await next(call)


@app.tool
async def forecast(city: str) -> str:
    """Tell the weather of a city; every first attempt fails."""
    attempts[city] += 1
    if attempts[city] == 1:
        raise ConnectionError("the weather service hung up")
    return f"sun over {city}"


if __name__ == "__main__":
    run(app)
