"""What becomes of handlers, and of the constants that name methods and errors."""

from __future__ import annotations

from functools import cache

from mcp_bindgen.protocol import calls, naming
from mcp_bindgen.protocol.model import Method, Sender, Union

from ..finding import Message
from ..reach import OTHER, answers
from .calls import answer, gone, params_name
from .effect import Effect, effect
from .pair import Pair, in_words
from .surface import RECEIVERS, Owner
from .types import Effects
from .views import View, Views, fits, suits


class HandlerEffects:
    """What becomes of handlers and constants.

    Args:
        pair: The bindings of both revisions.
    """

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.handler = cache(self._handler)
        self.method = cache(self._method)
        self.error = cache(self._error)
        self.question = cache(self._question)

    def _handler(self, owner: Owner, name: str, params: View | None = None, result: View | None = None) -> Effects:
        """What becomes of a handler; `params` and `result` are what an override says that it takes and answers."""
        pair, method, receiver = self.pair, self.pair.old.handlers[owner, name], RECEIVERS[owner]
        sender = OTHER[receiver]
        heir = pair.heir_of(method, receiver=receiver)
        if heir is None:
            return (gone(pair, method, sender, name),)
        found: list[Effect] = []
        if (renamed := calls.handler_name(heir, receiver)) != name:
            cause = pair.causes.of_name(method.definition)
            found.append(effect("renamed", cause, "definition-renamed", method.definition, name, renamed))
        taken = pair.after.of(heir.params)
        known = fits(taken, pair.before.of(method.params)) or (params is not None and fits(taken, params))
        if (method.params is None) != (heir.params is None) or not known:
            cause = pair.causes.of_type(params_name(method.params)) or pair.causes.of_type(method.definition)
            subject = f"{method.definition}.params"
            found.append(effect("changed", cause, "type-changed", subject, *pair.words(method.params, heir.params)))
        if not suits(result, _answers(pair.before, method), _answers(pair.after, heir)):
            found.append(answer(pair, method, sender, _answer_words(method), _answer_words(heir)))
        return tuple(found)

    def _question(self, params: str) -> Effects:
        """What becomes of asking something with `Context.ask`."""
        pair, method = self.pair, self.pair.old.questions[params]
        heir = pair.new.questions.get(pair.names.get(params, ""))
        if heir is None:
            return (gone(pair, method, "server", "ask"),)
        if fits(pair.after.of(heir.result), pair.before.of(method.result)):
            return ()
        return (answer(pair, method, "server", *pair.words(method.result, heir.result)),)

    def _method(self, name: str) -> Effects:
        """What becomes of a constant in `methods.py`."""
        pair, method = self.pair, self.pair.old.methods[name]
        heir = pair.heir_of(method)
        if heir is None:
            return (gone(pair, method, method.senders[0], name),)
        if (renamed := naming.descriptor(heir.stub)) != name:
            cause = pair.causes.of_name(method.definition)
            return (effect("renamed", cause, "definition-renamed", method.definition, name, renamed),)
        before, after = _contract(pair.before, method), _contract(pair.after, heir)
        if before == after:
            return ()
        message = str(Message(method.name, method.kind, method.senders[0]))
        cause = pair.causes.at([message]) or pair.causes.of_type(method.definition)
        return (effect("changed", cause, "type-changed", message, _contract_words(method), _contract_words(heir)),)

    def _error(self, name: str) -> Effects:
        """What becomes of a constant in `errors.py`."""
        pair, error = self.pair, self.pair.old.errors[name]
        heir = pair.new.errors.get(name)
        if heir is not None and heir.code == error.code:
            return ()
        if heir is not None:
            subject = f"{heir.code} {error.name}"
            cause = pair.causes.of_message(subject)
            codes = str(error.code), str(heir.code)
            return (effect("changed", cause, "error-code-renumbered", subject, *codes),)
        subject = f"{error.code} {error.name}"
        cause = pair.causes.of_message(subject)
        same = next((other for other, known in pair.new.errors.items() if known.code == error.code), None)
        if same is not None:
            return (effect("renamed", cause, "error-code-removed", subject, name, same),)
        return (effect("gone", cause, "error-code-removed", subject, name, ""),)


def _answers(views: Views, method: Method) -> View:
    """Everything that may answer a request; `None` for a notification."""
    return frozenset(atom for type in answers(method) for atom in views.of(type)) or views.of(None)


def _answer_words(method: Method) -> str:
    return in_words(Union(tuple(answers(method)))) if answers(method) else "nothing"


def _contract(views: Views, method: Method) -> tuple[object, ...]:
    """All that a descriptor says of a method."""
    senders: tuple[Sender, ...] = method.senders
    return senders, method.carrier, views.of(method.params), views.of(method.result), _answers(views, method)


def _contract_words(method: Method) -> str:
    carrier = "" if method.carrier == "message" else f", {method.carrier}"
    return f"{method.sender}: {in_words(method.params)} -> {_answer_words(method)}{carrier}"
