"""A support desk: customers open tickets, agents answer them, and admins see statistics and delete.

`DESK_KEYS='{"key-of-ada-0001": ["ada", "agent"]}' python desk.py --http 127.0.0.1:8000` serves it.
"""

import json
import logging
import os
import time
from collections import Counter, defaultdict, deque
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mcp_bindgen.app import App, Call, Completion, Context, Depends, Next, Result, ToolError, run
from mcp_bindgen.auth import Identity, ResourceServer, StaticTokens

app = App("support desk", version="1.0.0", instructions="Open, find and answer tickets of customers.")
log = logging.getLogger("desk")
AGENT, ADMIN = ["agent"], ["admin"]
Urgency = Literal["low", "normal", "high"]


class State(StrEnum):
    """State of a ticket."""

    OPEN = "open"
    WAITING = "waiting"
    CLOSED = "closed"


class Ticket(BaseModel):
    """A question of a customer."""

    number: int
    customer: str
    title: str
    state: State = State.OPEN
    urgency: Urgency = "normal"
    agent: str | None = None
    comments: list[str] = []


class Refund(BaseModel):
    """The amount that the agent confirms."""

    euros: float = Field(gt=0, le=500)
    reason: str = ""


tickets: dict[int, Ticket] = {}
recent_calls: defaultdict[str, deque[float]] = defaultdict(deque)


def caller(ctx: Context) -> str:
    """Return the name of the caller; over stdio there is one, the agent of this machine."""
    return (ctx.identity and ctx.identity.subject) or "local"


def sees_all(ctx: Context) -> bool:
    """Return True if the caller may see the tickets of all customers."""
    return ctx.identity is None or "agent" in ctx.identity.scopes


def mine(ctx: Context) -> list[Ticket]:
    """Return the tickets that the caller may see: customers see their own."""
    return [one for one in tickets.values() if sees_all(ctx) or one.customer == caller(ctx)]


User = Annotated[str, Depends(caller)]
Mine = Annotated[list[Ticket], Depends(mine)]


def ticket_of(number: int, seen: list[Ticket]) -> Ticket:
    """Return one of the tickets, or tell the model that there is none."""
    for ticket in seen:
        if ticket.number == number:
            return ticket
    raise ToolError(f"there is no ticket {number}; search lists those that you may see")


@app.middleware
async def audit(call: Call, next: Next) -> Result:
    """Log each call with its user."""
    log.info("%s %s by %s", call.kind, call.name, caller(call.ctx))
    return await next(call)


@app.middleware
async def limit(call: Call, next: Next) -> Result:
    """Refuse more than 60 calls of a user in a minute."""
    now, recent = time.monotonic(), recent_calls[caller(call.ctx)]
    while recent and recent[0] < now - 60:
        recent.popleft()
    if len(recent) >= 60:
        raise ToolError("too many calls; wait a minute")
    recent.append(now)
    return await next(call)


@app.tool
def create(title: str, user: User, urgency: Urgency = "normal") -> Ticket:
    """Open a ticket in the name of the caller."""
    ticket = Ticket(number=max(tickets, default=0) + 1, customer=user, title=title, urgency=urgency)
    tickets[ticket.number] = ticket
    return ticket


@app.tool(annotations={"readOnlyHint": True})
def search(words: str, seen: Mine, state: State | None = None) -> list[Ticket]:
    """Find tickets by words of title and comments."""
    return [
        one
        for one in seen
        if state in (None, one.state) and words.lower() in " ".join([one.title, *one.comments]).lower()
    ]


@app.tool(annotations={"readOnlyHint": True})
def show(number: int, seen: Mine) -> Ticket:
    """Return a ticket."""
    return ticket_of(number, seen)


@app.tool
def comment(number: int, text: str, user: User, seen: Mine) -> Ticket:
    """Add a comment, and notify the subscribers of the ticket."""
    ticket = ticket_of(number, seen)
    ticket.comments.append(f"{user}: {text}")
    app.updated(f"ticket://{number}")
    return ticket


@app.tool
def close(number: int, seen: Mine) -> Ticket:
    """Close a ticket."""
    ticket = ticket_of(number, seen)
    ticket.state = State.CLOSED
    return ticket


@app.tool(scopes=AGENT)
def assign(number: int, seen: Mine, user: User, agent: str | None = None) -> Ticket:
    """Give a ticket to an agent; by default to the caller."""
    ticket = ticket_of(number, seen)
    ticket.agent, ticket.state = agent or user, State.WAITING
    return ticket


@app.tool(scopes=AGENT)
async def refund(number: int, seen: Mine, ctx: Context) -> str:
    """Refund a customer; the user states the amount."""
    ticket = ticket_of(number, seen)
    answer = await ctx.ask(f"Refund {ticket.customer} for {ticket.title!r}?", Refund)
    ticket.comments.append(f"refunded {answer.euros:.2f} euros: {answer.reason}")
    return f"{ticket.customer} gets {answer.euros:.2f} euros"


@app.tool(scopes=AGENT, task="optional")
async def digest(seen: Mine, ctx: Context) -> list[str]:
    """Sum up all open tickets, with progress."""
    lines: list[str] = []
    for number, ticket in enumerate(seen, 1):
        await ctx.progress(number, len(seen), ticket.title)
        lines.append(f"{ticket.number} {ticket.urgency} {ticket.title}")
    return lines


@app.tool(scopes=ADMIN, annotations={"readOnlyHint": True})
def statistics() -> dict[State, int]:
    """Count the tickets by state."""
    return dict(Counter(one.state for one in tickets.values()))


@app.tool(scopes=ADMIN, annotations={"destructiveHint": True})
async def delete(number: int, seen: Mine, ctx: Context) -> bool:
    """Delete a ticket, if the user agrees."""
    ticket = ticket_of(number, seen)
    return await ctx.ask(f"Delete ticket {number}, {ticket.title!r}?", bool) and tickets.pop(number) is ticket


@app.resource("desk://rules", mime_type="text/markdown")
def rules() -> str:
    """Rules of the desk."""
    return "# Rules\n\nAnswer within a day. Refund up to 500 euros."


@app.resource("desk://mine")
def own(seen: Mine) -> list[Ticket]:
    """Tickets that the caller may see."""
    return seen


@app.resource("desk://agents", scopes=AGENT)
def agents() -> list[str]:
    """Names of agents with tickets."""
    return sorted({one.agent for one in tickets.values() if one.agent})


@app.resource("ticket://{number}")
def ticket(number: int, seen: Mine) -> Ticket:
    """A ticket."""
    return ticket_of(number, seen)


@app.resource("customer://{name}/tickets", scopes=AGENT)
def by_customer(name: str) -> list[Ticket]:
    """Tickets of a customer."""
    return [one for one in tickets.values() if one.customer == name]


@app.prompt
def reply(number: int, seen: Mine, tone: Literal["warm", "brief"] = "warm") -> str:
    """Draft an answer to a customer."""
    return f"Write a {tone} answer to {ticket_of(number, seen).model_dump_json()}"


@app.prompt(scopes=AGENT)
def triage() -> str:
    """Order the open tickets."""
    return "Read desk://mine, and order the open tickets by urgency."


@app.completion("reply", "number")
def numbers(asked: Completion, seen: Mine) -> list[str]:
    """Complete the number of a ticket."""
    return [str(one.number) for one in seen if str(one.number).startswith(asked.value)]


def policy() -> ResourceServer:
    """Return the access policy: `DESK_KEYS` maps each API key to a name and its scopes."""
    keys = {
        key: Identity(subject=name, scopes=frozenset(scopes))
        for key, (name, *scopes) in json.loads(os.environ["DESK_KEYS"]).items()
    }
    resource = os.environ.get("RESOURCE", "http://127.0.0.1:8000/mcp")
    return ResourceServer(resource, StaticTokens(keys), api_key_header="X-API-Key")


if __name__ == "__main__":
    run(app, auth=policy if "DESK_KEYS" in os.environ else None)
