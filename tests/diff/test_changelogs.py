"""Changes between successive revisions, read from the specification's changelogs and the schemas by hand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, pairwise

import pytest

from mcp_bindgen.diff import compare
from mcp_bindgen.diff.finding import RULES, Comparison, Finding, Impact, Plane
from mcp_bindgen.diff.source import gates
from mcp_bindgen.ir import Protocol, build
from mcp_bindgen.spec import Store

STORE = Store()
REVISIONS = list(STORE.pins)
PAIRS = list(pairwise(REVISIONS))

# Each line of the tables states a rule, the least impact on one of the pairings, and subjects.
# Words in parentheses are alternatives: `(a b).c` stands for `a.c` and `b.c`.


def expand(text: str) -> list[str]:
    """Return all texts for a text with alternatives in parentheses."""
    before, parenthesis, rest = text.partition("(")
    words, _, after = rest.partition(")")
    return [before + word + end for word in words.split() for end in expand(after)] if parenthesis else [text]


def facts(lines: Sequence[str]) -> Iterator[tuple[str, str, Impact]]:
    """Yield the rule, the subject and the least impact of each fact."""
    for line in lines:
        head, _, subjects = line.partition(": ")
        rule, _, impact = head.partition(" ")
        yield from ((rule, each, Impact[impact or "NONE"]) for part in subjects.split("; ") for each in expand(part))


@cache
def protocol(revision: str) -> Protocol:
    return build(STORE.effective(revision))


@cache
def comparison(old: str, new: str) -> Comparison:
    return compare(protocol(old), protocol(new), gates=gates(STORE))


_META = "io.modelcontextprotocol/"

NAMED: dict[str, list[str]] = {  # changes that the changelogs name
    "2025-03-26": [
        # batching, audio, annotations of tools, messages of progress, completions
        "definition-added: JSONRPCBatch(Request Response); AudioContent; ToolAnnotations",
        "union-member-added BREAKS: CallToolResult.content[]|AudioContent; PromptMessage.content|AudioContent",
        "union-member-added BREAKS: (SamplingMessage CreateMessageResult).content|AudioContent",
        "field-added-optional IGNORED: Tool.annotations; ProgressNotification.params.message",
        "capability-added IGNORED: ServerCapabilities.completions",
    ],
    "2025-06-18": [
        "definition-removed: JSONRPCBatch(Request Response)",
        # structured output of tools, links to resources
        "field-added-optional IGNORED: Tool.outputSchema; CallToolResult.structuredContent",
        "definition-added: ResourceLink",
        "union-member-added BREAKS: ContentBlock|ResourceLink",
        # elicitation
        "request-method-added: server->client request elicitation/create",
        "capability-added IGNORED: ClientCapabilities.elicitation",
        "definition-added: Elicit(Request Result); PrimitiveSchemaDefinition",
        # `_meta` in more places, display names, known variables for completions
        "field-added-optional IGNORED: (TextContent ImageContent AudioContent EmbeddedResource ResourceTemplate)._meta",
        "field-added-optional IGNORED: (TextResourceContents BlobResourceContents Prompt Resource Root Tool)._meta",
        "field-added-optional IGNORED: (Implementation Prompt Resource ResourceTemplate Tool).title",
        "field-added-optional IGNORED: Prompt(Argument Reference).title; CompleteRequest.params.context",
    ],
    "2025-11-25": [
        # icons, descriptions of clients and servers, dialects of schemas
        "definition-added: Icon",
        "field-added-optional IGNORED: (Tool Resource ResourceTemplate Prompt).icons; Implementation.description",
        'field-added-optional IGNORED: Tool.(input output)Schema["$schema"]',
        # enumerations to choose one or several from, with and without titles; defaults in forms
        "definition-added: (Titled Untitled)(Single Multi)SelectEnumSchema",
        "union-member-added RISKY: PrimitiveSchemaDefinition|(Titled Untitled)(Single Multi)SelectEnumSchema",
        "field-added-optional IGNORED: (String Number LegacyTitledEnum)Schema.default",
        # elicitation by URL
        "definition-added: ElicitRequestURLParams",
        "union-member-added SAFE: ElicitRequest.params|ElicitRequestURLParams",
        "capability-added IGNORED: ClientCapabilities.elicitation.(form url)",
        "notification-added: server->client notification notifications/elicitation/complete",
        "error-code-added: -32042 URLElicitationRequired",
        # tools for the model that is sampled
        "field-added-optional IGNORED: CreateMessageRequest.params.(tools toolChoice)",
        "capability-added IGNORED: ClientCapabilities.sampling.tools",
        "union-member-added SAFE: (SamplingMessage CreateMessageResult).content|Tool(Use Result)Content",
        # tasks
        "request-method-added: (client->server server->client) request tasks/(get result cancel list)",
        "notification-added: (client->server server->client) notification notifications/tasks/status",
        "capability-added IGNORED: (Client Server)Capabilities.tasks",
        "field-added-optional IGNORED: (CallTool CreateMessage)Request.params.task; Tool.execution",
        "definition-added: Task; CreateTaskResult",
        # params have definitions of their own, which affects generated code only
        "ref-extracted: CallToolRequestParams",
    ],
    "2026-07-28": [
        # no sessions, no handshake, but discovery
        "request-method-removed BREAKS: client->server request initialize",
        "notification-removed RISKY: client->server notification notifications/(initialized roots/list_changed)",
        "definition-added: UnsupportedProtocolVersionError",
        "error-code-added: -32022 UnsupportedProtocolVersion",
        f'field-added-required BREAKS: RequestMetaObject["{_META}(protocolVersion clientCapabilities)"]',
        f'field-added-optional IGNORED: RequestMetaObject["{_META}(clientInfo logLevel)"]',
        f'field-added-optional IGNORED: ResultMetaObject["{_META}serverInfo"]',
        "request-method-added BREAKS: client->server request server/discover",
        "request-method-removed BREAKS: (client->server server->client) request ping",
        "request-method-removed BREAKS: client->server request logging/setLevel",
        # subscriptions
        "request-method-removed BREAKS: client->server request resources/(subscribe unsubscribe)",
        "request-method-added BREAKS: client->server request subscriptions/listen",
        "notification-added RISKY: server->client notification notifications/subscriptions/acknowledged",
        "definition-added: SubscriptionFilter",
        f'field-added-optional IGNORED: NotificationMetaObject["{_META}subscriptionId"]',
        # tasks became an extension; a client or server only calls their methods if the other side has the capability
        "request-method-removed: (client->server server->client) request tasks/(get result cancel list)",
        "notification-removed RISKY: (client->server server->client) notification notifications/tasks/status",
        "capability-removed RISKY: (Client Server)Capabilities.tasks",
        "field-removed-optional IGNORED: (CallTool CreateMessage)Request.params.task",
        "field-removed-optional RISKY: Tool.execution",
        # several round trips
        "message-carrier-changed BREAKS: server->client request (roots/list sampling/createMessage elicitation/create)",
        "union-member-added BREAKS: server->client result (tools/call prompts/get resources/read)|InputRequiredResult",
        "field-added-optional IGNORED: (CallTool GetPrompt ReadResource)Request.params.(inputResponses requestState)",
        "definition-added: InputRequiredResult",
        # results state their type, and some may be cached; no message contains the last two definitions directly
        "field-added-required BREAKS: (CallTool Complete GetPrompt ReadResource)Result.resultType",
        "field-added-required BREAKS: List(Prompts Resources Tools)Result.(resultType ttlMs cacheScope)",
        "field-added-required BREAKS: ListResourceTemplatesResult.(resultType ttlMs cacheScope)",
        "field-added-required BREAKS: ReadResourceResult.(ttlMs cacheScope)",
        "field-added-required: (Result PaginatedResult).resultType",
        # extensions, error codes, deprecated features
        "capability-added IGNORED: (Client Server)Capabilities.extensions",
        "error-code-removed: -32002 ResourceNotFound",
        "error-code-added: -32020 HeaderMismatch; -32021 MissingRequiredClientCapability",
        "deprecated: server->client request (roots/list sampling/createMessage)",
        "deprecated: server->client notification notifications/message",
        # any JSON Schema, any structured content
        "field-opened RISKY: Tool.(inputSchema outputSchema).(properties required)",
        "field-opened BREAKS: Tool.outputSchema.type",
        "type-widened BREAKS: (CallToolResult ToolResultContent).structuredContent",
        # elicitation by URL ends without a notification
        "notification-removed RISKY: server->client notification notifications/elicitation/complete",
        "field-removed-required BREAKS: ElicitRequestURLParams.elicitationId",
    ],
}

UNNAMED: dict[str, list[str]] = {  # changes that only the schemas contain
    "2025-03-26": [
        "union-member-added RISKY: JSONRPCMessage|JSONRPCBatch(Request Response)",
        "definition-removed: Annotated",
    ],
    "2025-06-18": [
        "union-member-removed RISKY: JSONRPCMessage|JSONRPCBatch(Request Response)",
        "field-added-optional IGNORED: Annotations.lastModified",
        "definition-renamed: ResourceReference",
        "definition-added: BaseMetadata",
    ],
    "2025-11-25": [
        "field-became-optional BREAKS: CancelledNotification.params.requestId; JSONRPCErrorResponse.id",
        "field-added-optional IGNORED: (CallTool Complete GetPrompt ReadResource CreateMessage)Request.params._meta",
        "field-added-optional IGNORED: (PaginatedRequestParams SamplingMessage)._meta; ElicitRequestFormParams.mode",
        "field-added-optional IGNORED: (ResourceLink Implementation).icons; Implementation.websiteUrl",
        "definition-renamed: JSONRPCError; JSONRPCResponse; EnumSchema",
        "definition-redefined: JSONRPCResponse; EnumSchema",
        "capability-added IGNORED: ClientCapabilities.sampling.context",
        "type-widened BREAKS: ElicitResult.content{}",
        "union-member-added BREAKS: (CreateMessageResult SamplingMessage).content|SamplingMessageContentBlock[]",
        "union-member-added RISKY: server->client result tools/call|CreateTaskResult",
        "union-member-added RISKY: client->server result (sampling/createMessage elicitation/create)|CreateTaskResult",
    ],
    "2026-07-28": [
        "field-became-required BREAKS: CancelledNotification.params.requestId; PaginatedRequestParams._meta",
        "field-became-required BREAKS: (CallTool Complete GetPrompt ReadResource)Request.params._meta",
        "field-became-required BREAKS: List(Tools Prompts Resources ResourceTemplates)Request.params",
        "constraint-tightened BREAKS: CompleteResult.completion.values",
        "message-direction-removed RISKY: client->server notification notifications/progress",
        "error-code-removed: -32042 URLElicitationRequired",
        "deprecated: ClientCapabilities.(roots sampling); ServerCapabilities.logging",
        "capability-removed RISKY: ClientCapabilities.roots.listChanged",
        "field-removed-optional IGNORED: ListRootsRequest.params._meta.progressToken",
        "field-removed-optional RISKY: (Elicit ListRoots)Result._meta",
        "field-removed-optional IGNORED: ElicitRequest(Form URL)Params.(task _meta); CreateMessageRequest.params._meta",
        "union-member-removed IGNORED: server->client result tools/call|CreateTaskResult",
    ],
}

_REQUESTS = (
    "(CallTool Complete GetPrompt Initialize ListPrompts ListResourceTemplates ListResources ListTools Ping"
    " ReadResource SetLevel Subscribe Unsubscribe CreateMessage ListRoots)Request"
)
_NOTIFICATIONS = (
    "(Cancelled Initialized LoggingMessage Progress PromptListChanged ResourceListChanged ResourceUpdated"
    " RootsListChanged ToolListChanged)Notification"
)

TRAPS: dict[str, list[str]] = {  # differences that look like changes on the wire, and are none
    "2025-03-26": [
        # annotations have a definition of their own; some definitions are the same as before
        "(TextContent ImageContent EmbeddedResource Resource ResourceTemplate).annotations",
        "(LoggingLevel Role RequestId)",
    ],
    "2025-06-18": [
        # an open object, written in another way
        "(JSONRPCRequest ListRootsRequest PingRequest Request).params._meta",
        # a union got a name, and became a member of another union
        "(CallToolResult.content CallToolResult.content[] PromptMessage.content CompleteRequest.params.ref)",
        "CompleteRequest.params.ref|Resource(Reference TemplateReference)",
        # role unions are not types of the wire
        "(ServerRequest ServerRequest|ElicitRequest ClientResult|ElicitResult)",
    ],
    "2025-11-25": [
        # the envelope was written into every message, and params became definitions
        f"{_REQUESTS}.(jsonrpc id params)",
        f"{_NOTIFICATIONS}.(jsonrpc id params)",
        "ElicitRequest.(jsonrpc id)",
        "CallToolRequest.params.(name arguments)",
        "CompleteRequest.params.(argument argument.name)",
        "CreateMessageRequest.params.messages",
        "(PingRequest.params._meta PingRequest.params._meta.progressToken ListRootsRequest.params._meta)",
        "(ToolListChangedNotification.params._meta ListToolsRequest.params.cursor)",
        # renamed definitions
        "JSONRPCMessage(|JSONRPCResponse |JSONRPCResultResponse |JSONRPCError |JSONRPCErrorResponse)",
        "PrimitiveSchemaDefinition|(EnumSchema LegacyTitledEnumSchema)",
        "(JSONRPCMessage JSONRPCError.error JSONRPCErrorResponse.error)",
        # capabilities that only gained members
        "ClientCapabilities.(elicitation sampling)",
    ],
    "2026-07-28": [
        # `_meta` got a name
        "(AudioContent ImageContent TextContent ToolResultContent ToolUseContent EmbeddedResource)._meta",
        "(BlobResourceContents Prompt Resource ResourceLink ResourceTemplate Root SamplingMessage)._meta",
        "(TextResourceContents Tool CreateMessageResult CallToolResult ListToolsResult Result)._meta",
        # any object, written in another way
        "(CreateMessageRequest.params.metadata ServerCapabilities.completions ServerCapabilities.logging)",
        "ClientCapabilities.(sampling.context sampling.tools elicitation.form experimental experimental{})",
        "ServerCapabilities.experimental",
        # members in another order, an inlined union with one member
        "(ElicitRequestParams ElicitResult.content ElicitResult.content{} ClientNotification)",
        # the envelope of messages that are still messages, and of requests that became embedded
        "(CallTool ListTools CreateMessage ListRoots Elicit)Request.(jsonrpc id)",
        # corrected upstream only now; our patches had corrected them before
        "NumberSchema.(minimum maximum default)",
        # error codes that the schema now states
        "-32700 ParseError; -32600 InvalidRequest; -32601 MethodNotFound; -32602 InvalidParams; -32603 InternalError",
    ],
}

PROSE: dict[str, str] = {  # words that only occur in the prose of a changelog
    "2025-03-26": "oauth, authoriz, streamable",
    "2025-06-18": "oauth, header, authoriz, security",
    "2025-11-25": "openid, www-authenticate, sse, origin, stderr, governance, toolname",
    "2026-07-28": "traceparent, tracestate, baggage, x-mcp-header, mcp-method, session, last-event, iss , thisserver"
    ", allservers",
}


def problems(lines: Sequence[str], findings: Sequence[Finding]) -> list[str]:
    """Describe facts that are not found exactly once, with similar findings, or whose impact is not as stated."""
    wrong: list[str] = []
    for rule, subject, least in facts(lines):
        hits = [finding for finding in findings if (finding.rule, finding.subject) == (rule, subject)]
        if len(hits) != 1:
            word = re.split(r"[|./]", subject)[-1]
            near = [f"{finding.rule} {finding.subject}" for finding in findings if word in finding.subject]
            wrong.append(f"{len(hits)} x {rule} {subject} -- found: {'; '.join(near[:8]) or 'nothing near it'}")
        elif (worst := max(hits[0].old_client, hits[0].new_client)) < least or worst > least is Impact.SAFE:
            wrong.append(f"{rule} {subject} is {worst.name}, should be at least {least.name}")
    return wrong


pair = pytest.mark.parametrize(("old", "new"), PAIRS, ids=[new for _, new in PAIRS])


@pair
@pytest.mark.parametrize("known", [NAMED, UNNAMED], ids=["named", "unnamed"])
def test_each_known_change_is_found_once(known: dict[str, list[str]], old: str, new: str) -> None:
    assert problems(known[new], comparison(old, new).findings) == []


@pair
def test_apparent_changes_give_no_wire_findings(old: str, new: str) -> None:
    about = {subject for line in TRAPS[new] for part in line.split("; ") for subject in expand(part)}
    known = {(rule, subject) for rule, subject, _ in facts(NAMED[new] + UNNAMED[new])}  # facts at the same place
    caught = [
        f"{finding.rule} {finding.subject}: {finding.old} -> {finding.new}"
        for finding in wired(old, new)
        if finding.plane is Plane.WIRE and finding.subject in about and (finding.rule, finding.subject) not in known
    ]
    assert caught == []


@pair
def test_changes_of_prose_give_no_findings(old: str, new: str) -> None:
    for finding in comparison(old, new).findings:
        words = f"{finding.rule} {finding.subject} ".lower()
        assert not [word for word in PROSE[new].split(", ") if word in words], finding


@pair
def test_no_finding_is_reported_twice(old: str, new: str) -> None:
    seen = Counter((finding.rule, finding.subject) for finding in comparison(old, new).findings)
    assert [key for key, times in seen.items() if times > 1] == []


# --- both directions ------------------------------------------------------------------------------------------------

_ONE_SIDED = ("capability-added", "capability-removed", "error-code-added", "error-code-removed")
"""Rules with different impacts in each direction: a removed capability may be missed, an added one may be ignored."""


@pytest.mark.full
def test_the_reverse_comparison_mirrors_the_findings() -> None:
    for old, new in list(combinations(REVISIONS, 2)):
        renamed = renames(old, new)
        assert {after: before for before, after in renames(new, old).items()} == renamed
        there = Counter(key(finding, RULES[finding.rule].mirror, renamed, back=False) for finding in wired(old, new))
        back = Counter(key(finding, finding.rule, renamed, back=True) for finding in wired(new, old))
        missing, extra = there - back, back - there
        assert (list(missing)[:10], list(extra)[:10]) == ([], [])


def wired(old: str, new: str) -> list[Finding]:
    """Return findings on the wire or in generated code; descriptions always come from the newest revision."""
    return [finding for finding in comparison(old, new).findings if finding.plane is not Plane.DOC]


def renames(old: str, new: str) -> dict[str, str]:
    """Return the renamed definitions: old name -> new name."""
    found = [finding for finding in comparison(old, new).findings if finding.rule == "definition-renamed"]
    return {finding.definition_old: finding.definition_new for finding in found}


def key(finding: Finding, rule: str, renamed: dict[str, str], *, back: bool) -> tuple[object, ...]:
    """Return a finding as the opposite direction reports it: there, an old client is a new client."""
    impacts = (finding.new_client, finding.old_client) if back else (finding.old_client, finding.new_client)
    if rule.startswith("field-") and rule.endswith("-optional"):  # only a reader misses an optional member of a result
        one, other = (Impact.IGNORED if Impact.SAFE <= impact <= Impact.RISKY else impact for impact in impacts)
        impacts = one, other
    reaches = frozenset(finding.reaches)
    # subjects use the new name of a definition in both directions
    subject = re.sub("[A-Z][A-Za-z]+", lambda word: renamed.get(word[0], word[0]), finding.subject)
    return rule, subject, None if rule in _ONE_SIDED else impacts, reaches
