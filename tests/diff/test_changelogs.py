"""What changed between successive revisions, read from the specification's changelogs and the schemas by hand.

Every expectation is written as a rule and a subject, with the least impact that it must have on one of the pairings.
Alternatives are separated by ` or `: they are ways to name the same thing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import combinations, pairwise

import pytest

from mcp_bindgen.diff import compare
from mcp_bindgen.diff.finding import Comparison, Finding, Impact, Outcome, Plane
from mcp_bindgen.protocol import Protocol, build
from mcp_bindgen.spec import Store

STORE = Store()
REVISIONS = list(STORE.pins)
PAIRS = list(pairwise(REVISIONS))

Fact = tuple[str, str] | tuple[str, str, Impact]

IGNORED, RISKY, BREAKS = Impact.IGNORED, Impact.RISKY, Impact.BREAKS


@cache
def protocol(revision: str) -> Protocol:
    return build(STORE.effective(revision))


@cache
def comparison(old: str, new: str) -> Comparison:
    return compare(protocol(old), protocol(new))


def each(rule: str, template: str, names: str, *impact: Impact) -> list[Fact]:
    """The same fact of several subjects: `@` in the template stands for each of the names."""
    return [(rule, template.replace("@", name), *impact) for name in names.split()]  # type: ignore[misc]


def both_ways(rule: str, message: str, *impact: Impact) -> list[Fact]:
    """The same fact of a message in both directions."""
    return [(rule, f"{way} {message}", *impact) for way in ("client->server", "server->client")]  # type: ignore[misc]


# --- what the changelogs name -----------------------------------------------------------------------------------

NAMED: dict[str, list[Fact]] = {
    "2025-03-26": [
        # JSON-RPC batching
        ("definition-added", "JSONRPCBatchRequest"),
        ("definition-added", "JSONRPCBatchResponse"),
        # annotations of tools
        ("field-added-optional", "Tool.annotations", IGNORED),
        ("definition-added", "ToolAnnotations"),
        # a message in progress notifications
        ("field-added-optional", "ProgressNotification.params.message", IGNORED),
        # audio beside text and images
        ("definition-added", "AudioContent"),
        ("union-member-added", "CallToolResult.content[]|AudioContent", BREAKS),
        ("union-member-added", "PromptMessage.content|AudioContent", BREAKS),
        ("union-member-added", "SamplingMessage.content|AudioContent", BREAKS),
        ("union-member-added", "CreateMessageResult.content|AudioContent", BREAKS),
        # a capability for completions
        ("capability-added", "ServerCapabilities.completions", IGNORED),
    ],
    "2025-06-18": [
        # no batching any more
        ("definition-removed", "JSONRPCBatchRequest"),
        ("definition-removed", "JSONRPCBatchResponse"),
        # structured output of tools
        ("field-added-optional", "Tool.outputSchema", IGNORED),
        ("field-added-optional", "CallToolResult.structuredContent", IGNORED),
        # elicitation
        ("request-method-added", "server->client request elicitation/create"),
        ("capability-added", "ClientCapabilities.elicitation", IGNORED),
        ("definition-added", "ElicitRequest"),
        ("definition-added", "ElicitResult"),
        ("definition-added", "PrimitiveSchemaDefinition"),
        # links to resources in results of tools
        ("definition-added", "ResourceLink"),
        ("union-member-added", "CallToolResult.content[]|ResourceLink or ContentBlock|ResourceLink", BREAKS),
        # `_meta` in more places
        *each(
            "field-added-optional",
            "@._meta",
            "TextContent ImageContent AudioContent EmbeddedResource TextResourceContents BlobResourceContents"
            " Prompt Resource ResourceTemplate Root Tool",
            IGNORED,
        ),
        # variables that are known already, for completions
        ("field-added-optional", "CompleteRequest.params.context", IGNORED),
        # names for people
        *each(
            "field-added-optional",
            "@.title",
            "Implementation Prompt PromptArgument PromptReference Resource ResourceTemplate Tool",
            IGNORED,
        ),
    ],
    "2025-11-25": [
        # icons
        *each("field-added-optional", "@.icons", "Tool Resource ResourceTemplate Prompt", IGNORED),
        ("definition-added", "Icon"),
        # enumerations to choose one or several from, with and without titles
        *each(
            "definition-added",
            "@",
            "TitledSingleSelectEnumSchema UntitledSingleSelectEnumSchema"
            " TitledMultiSelectEnumSchema UntitledMultiSelectEnumSchema",
        ),
        *each(
            "union-member-added",
            "PrimitiveSchemaDefinition|@",
            "TitledSingleSelectEnumSchema UntitledSingleSelectEnumSchema"
            " TitledMultiSelectEnumSchema UntitledMultiSelectEnumSchema",
            RISKY,
        ),
        # elicitation by URL
        ("definition-added", "ElicitRequestURLParams"),
        ("union-member-added", "ElicitRequest.params|ElicitRequestURLParams", BREAKS),
        ("capability-added", "ClientCapabilities.elicitation.form", IGNORED),
        ("capability-added", "ClientCapabilities.elicitation.url", IGNORED),
        ("notification-added", "server->client notification notifications/elicitation/complete"),
        ("error-code-added", "-32042 URLElicitationRequired"),
        # tools for the model that is sampled
        ("field-added-optional", "CreateMessageRequest.params.tools", IGNORED),
        ("field-added-optional", "CreateMessageRequest.params.toolChoice", IGNORED),
        ("capability-added", "ClientCapabilities.sampling.tools", IGNORED),
        *each("union-member-added", "@.content|ToolUseContent", "SamplingMessage CreateMessageResult", BREAKS),
        *each("union-member-added", "@.content|ToolResultContent", "SamplingMessage CreateMessageResult", BREAKS),
        # tasks
        *both_ways("request-method-added", "request tasks/get"),
        *both_ways("request-method-added", "request tasks/result"),
        *both_ways("request-method-added", "request tasks/cancel"),
        *both_ways("request-method-added", "request tasks/list"),
        *both_ways("notification-added", "notification notifications/tasks/status"),
        ("capability-added", "ClientCapabilities.tasks", IGNORED),
        ("capability-added", "ServerCapabilities.tasks", IGNORED),
        ("field-added-optional", "CallToolRequest.params.task", IGNORED),
        ("field-added-optional", "CreateMessageRequest.params.task", IGNORED),
        ("field-added-optional", "Tool.execution", IGNORED),
        ("definition-added", "Task"),
        ("definition-added", "CreateTaskResult"),
        # a description of who speaks
        ("field-added-optional", "Implementation.description", IGNORED),
        # defaults in forms
        ("field-added-optional", "StringSchema.default", IGNORED),
        ("field-added-optional", "NumberSchema.default", IGNORED),
        ("field-added-optional", "LegacyTitledEnumSchema.default or EnumSchema.default", IGNORED),
        # the dialect of schemas that are sent
        ("field-added-optional", 'Tool.inputSchema["$schema"] or Tool.inputSchema.$schema', IGNORED),
        ("field-added-optional", 'Tool.outputSchema["$schema"] or Tool.outputSchema.$schema', IGNORED),
        # params have definitions of their own: seen by generated code only
        *each("definition-added or ref-extracted", "@ or CallToolRequest.params", "CallToolRequestParams"),
    ],
    "2026-07-28": [
        # no sessions, no handshake
        ("request-method-removed", "client->server request initialize", BREAKS),
        ("notification-removed", "client->server notification notifications/initialized", RISKY),
        ("definition-added", "UnsupportedProtocolVersionError"),
        ("error-code-added", "-32022 UnsupportedProtocolVersion"),
        *each(
            "field-added-required",
            'RequestMetaObject["io.modelcontextprotocol/@"]',
            "protocolVersion clientCapabilities",
            BREAKS,
        ),
        ("field-added-optional", 'RequestMetaObject["io.modelcontextprotocol/clientInfo"]', IGNORED),
        ("field-added-optional", 'ResultMetaObject["io.modelcontextprotocol/serverInfo"]', IGNORED),
        # discovery
        ("request-method-added", "client->server request server/discover", BREAKS),
        # subscriptions
        ("request-method-removed", "client->server request resources/subscribe", BREAKS),
        ("request-method-removed", "client->server request resources/unsubscribe", BREAKS),
        ("request-method-added", "client->server request subscriptions/listen", BREAKS),
        ("notification-added", "server->client notification notifications/subscriptions/acknowledged", RISKY),
        ("definition-added", "SubscriptionFilter"),
        ("field-added-optional", 'NotificationMetaObject["io.modelcontextprotocol/subscriptionId"]', IGNORED),
        # what went with the session
        *both_ways("request-method-removed", "request ping", BREAKS),
        ("request-method-removed", "client->server request logging/setLevel", BREAKS),
        ("notification-removed", "client->server notification notifications/roots/list_changed", RISKY),
        ("field-added-optional", 'RequestMetaObject["io.modelcontextprotocol/logLevel"]', IGNORED),
        # tasks became an extension; nobody calls them who does not see their capability
        *both_ways("request-method-removed", "request tasks/get"),
        *both_ways("request-method-removed", "request tasks/result"),
        *both_ways("request-method-removed", "request tasks/cancel"),
        *both_ways("request-method-removed", "request tasks/list"),
        *both_ways("notification-removed", "notification notifications/tasks/status", RISKY),
        ("capability-removed", "ClientCapabilities.tasks", RISKY),
        ("capability-removed", "ServerCapabilities.tasks", RISKY),
        ("field-removed-optional", "CallToolRequest.params.task", IGNORED),
        ("field-removed-optional", "CreateMessageRequest.params.task", IGNORED),
        ("field-removed-optional", "Tool.execution", IGNORED),
        # several round trips
        *each(
            "message-carrier-changed",
            "server->client request @",
            "roots/list sampling/createMessage elicitation/create",
            BREAKS,
        ),
        *each(
            "union-member-added",
            "client->server request @|InputRequiredResult",
            "tools/call prompts/get resources/read",
            BREAKS,
        ),
        *each(
            "field-added-optional",
            "@.params.inputResponses",
            "CallToolRequest GetPromptRequest ReadResourceRequest",
            IGNORED,
        ),
        *each(
            "field-added-optional",
            "@.params.requestState",
            "CallToolRequest GetPromptRequest ReadResourceRequest",
            IGNORED,
        ),
        ("definition-added", "InputRequiredResult"),
        # every result says what it is
        *each(
            "field-added-required",
            "@.resultType",
            "CallToolResult CompleteResult GetPromptResult ListPromptsResult ListResourceTemplatesResult"
            " ListResourcesResult ListToolsResult ReadResourceResult",
            BREAKS,
        ),
        *each("field-added-required", "@.resultType", "Result PaginatedResult"),  # what no message holds as such
        # extensions
        ("capability-added", "ClientCapabilities.extensions", IGNORED),
        ("capability-added", "ServerCapabilities.extensions", IGNORED),
        # results that may be kept for a while
        *each(
            "field-added-required",
            "@.ttlMs",
            "ListPromptsResult ListResourceTemplatesResult ListResourcesResult ListToolsResult ReadResourceResult",
            BREAKS,
        ),
        *each(
            "field-added-required",
            "@.cacheScope",
            "ListPromptsResult ListResourceTemplatesResult ListResourcesResult ListToolsResult ReadResourceResult",
            BREAKS,
        ),
        # error codes
        ("error-code-removed", "-32002 ResourceNotFound"),
        ("error-code-added", "-32020 HeaderMismatch"),
        ("error-code-added", "-32021 MissingRequiredClientCapability"),
        # any JSON Schema, any structured content
        *each("field-opened", "Tool.@", "inputSchema.properties inputSchema.required", RISKY),
        *each("field-opened", "Tool.@", "outputSchema.properties outputSchema.required", RISKY),
        ("field-opened", "Tool.outputSchema.type", BREAKS),
        ("type-widened", "CallToolResult.structuredContent", BREAKS),
        ("type-widened", "ToolResultContent.structuredContent", BREAKS),
        # elicitation by URL ends without a word
        ("notification-removed", "server->client notification notifications/elicitation/complete", RISKY),
        (
            "field-removed-required",
            "ElicitRequestURLParams.elicitationId or ElicitRequest.params|ElicitRequestURLParams.elicitationId",
            BREAKS,
        ),
        # deprecated features
        *each("deprecated", "server->client request @", "roots/list sampling/createMessage"),
        ("deprecated", "server->client notification notifications/message"),
    ],
}

# --- what the schemas say and the changelogs do not ---------------------------------------------------------------

UNNAMED: dict[str, list[Fact]] = {
    "2025-03-26": [
        ("union-member-added", "JSONRPCMessage|JSONRPCBatchRequest", RISKY),
        ("union-member-added", "JSONRPCMessage|JSONRPCBatchResponse", RISKY),
        ("definition-removed or definition-redefined or definition-renamed", "Annotated"),
    ],
    "2025-06-18": [
        ("union-member-removed", "JSONRPCMessage|JSONRPCBatchRequest", RISKY),
        ("union-member-removed", "JSONRPCMessage|JSONRPCBatchResponse", RISKY),
        ("union-member-added", "PromptMessage.content|ResourceLink or ContentBlock|ResourceLink", BREAKS),
        ("field-added-optional", "Annotations.lastModified", IGNORED),
        ("definition-renamed", "ResourceReference"),
        ("definition-added", "BaseMetadata"),
    ],
    "2025-11-25": [
        ("field-became-optional", "CancelledNotification.params.requestId", BREAKS),
        ("field-became-optional", "JSONRPCErrorResponse.id or JSONRPCError.id", BREAKS),
        *each(
            "field-added-optional",
            "@.params._meta",
            "CallToolRequest CompleteRequest GetPromptRequest ReadResourceRequest CreateMessageRequest",
            IGNORED,
        ),
        ("field-added-optional", "PaginatedRequestParams._meta", IGNORED),
        ("definition-renamed", "JSONRPCError"),
        ("definition-renamed", "JSONRPCResponse"),
        ("definition-redefined", "JSONRPCResponse"),
        ("definition-renamed", "EnumSchema"),
        ("definition-redefined", "EnumSchema"),
        ("field-added-optional", "ResourceLink.icons", IGNORED),
        ("field-added-optional", "Implementation.icons", IGNORED),
        ("field-added-optional", "Implementation.websiteUrl", IGNORED),
        ("field-added-optional", "SamplingMessage._meta", IGNORED),
        ("capability-added", "ClientCapabilities.sampling.context", IGNORED),
        (
            "field-added-optional",
            "ElicitRequestFormParams.mode or ElicitRequest.params|ElicitRequestFormParams.mode"
            " or ElicitRequest.params.mode",
            IGNORED,
        ),
        ("union-member-added or type-widened", "ElicitResult.content{} or ElicitResult.content{}|string[]", BREAKS),
        ("union-member-added or type-widened", "CreateMessageResult.content|SamplingMessageContentBlock[]", BREAKS),
        ("union-member-added or type-widened", "SamplingMessage.content|SamplingMessageContentBlock[]", BREAKS),
        ("union-member-added", "client->server request tools/call|CreateTaskResult", RISKY),
        ("union-member-added", "server->client request sampling/createMessage|CreateTaskResult", RISKY),
        ("union-member-added", "server->client request elicitation/create|CreateTaskResult", RISKY),
    ],
    "2026-07-28": [
        ("field-became-required", "CancelledNotification.params.requestId", BREAKS),
        ("constraint-tightened", "CompleteResult.completion.values", BREAKS),
        ("message-direction-removed", "client->server notification notifications/progress", RISKY),
        ("error-code-removed", "-32042 URLElicitationRequired"),
        ("capability-removed", "ClientCapabilities.roots.listChanged", RISKY),
        ("field-became-required", "CallToolRequest.params._meta", BREAKS),
        ("field-became-required", "CompleteRequest.params._meta", BREAKS),
        ("field-became-required", "GetPromptRequest.params._meta", BREAKS),
        ("field-became-required", "ReadResourceRequest.params._meta", BREAKS),
        ("field-became-required", "PaginatedRequestParams._meta", BREAKS),
        *each(
            "field-became-required",
            "@.params",
            "ListToolsRequest ListPromptsRequest ListResourcesRequest ListResourceTemplatesRequest",
            BREAKS,
        ),
        ("field-removed-optional", "CreateMessageRequest.params._meta", IGNORED),
        ("field-removed-optional", "ListRootsRequest.params._meta.progressToken", IGNORED),
        *each("field-removed-optional", "@.task", "ElicitRequestFormParams ElicitRequestURLParams", IGNORED),
        *each("field-removed-optional", "@._meta", "ElicitRequestFormParams ElicitRequestURLParams", IGNORED),
        ("field-removed-optional", "ElicitResult._meta", IGNORED),
        ("field-removed-optional", "ListRootsResult._meta", IGNORED),
        ("union-member-removed", "client->server request tools/call|CreateTaskResult", IGNORED),
    ],
}

# --- what looks like a change on the wire, and is none --------------------------------------------------------------

_MESSAGES = [
    "CallToolRequest",
    "CancelledNotification",
    "CompleteRequest",
    "GetPromptRequest",
    "InitializeRequest",
    "InitializedNotification",
    "ListPromptsRequest",
    "ListResourceTemplatesRequest",
    "ListResourcesRequest",
    "ListToolsRequest",
    "LoggingMessageNotification",
    "PingRequest",
    "ProgressNotification",
    "PromptListChangedNotification",
    "ReadResourceRequest",
    "ResourceListChangedNotification",
    "ResourceUpdatedNotification",
    "RootsListChangedNotification",
    "SetLevelRequest",
    "SubscribeRequest",
    "ToolListChangedNotification",
    "UnsubscribeRequest",
    "CreateMessageRequest",
    "ListRootsRequest",
    "ElicitRequest",
]

TRAPS: dict[str, list[str]] = {
    "2025-03-26": [
        # annotations moved out of line
        "TextContent.annotations",
        "ImageContent.annotations",
        "EmbeddedResource.annotations",
        "Resource.annotations",
        "ResourceTemplate.annotations",
        # unchanged
        "LoggingLevel",
        "Role",
        "RequestId",
    ],
    "2025-06-18": [
        # "open" written in another way
        "JSONRPCRequest.params._meta",
        "ListRootsRequest.params._meta",
        "PingRequest.params._meta",
        "Request.params._meta",
        # a union got a name, and a member of one another
        "CallToolResult.content",
        "CallToolResult.content[]",
        "PromptMessage.content",
        "CompleteRequest.params.ref",
        "CompleteRequest.params.ref|ResourceReference",
        "CompleteRequest.params.ref|ResourceTemplateReference",
        # the role unions are not types of the wire
        "ServerRequest",
        "ServerRequest|ElicitRequest",
        "ClientResult|ElicitResult",
    ],
    "2025-11-25": [
        # the envelope was written into every message
        *(f"{message}.{member}" for message in _MESSAGES for member in ("jsonrpc", "id")),
        # params were extracted
        *(f"{message}.params" for message in _MESSAGES if message != "ElicitRequest"),
        "CallToolRequest.params.name",
        "CallToolRequest.params.arguments",
        "CompleteRequest.params.argument",
        "CompleteRequest.params.argument.name",
        "CreateMessageRequest.params.messages",
        "PingRequest.params._meta",
        "PingRequest.params._meta.progressToken",
        "ListRootsRequest.params._meta",
        "ToolListChangedNotification.params._meta",
        "ListToolsRequest.params.cursor",
        # definitions under other names
        "JSONRPCMessage",
        "JSONRPCMessage|JSONRPCResponse",
        "JSONRPCMessage|JSONRPCResultResponse",
        "JSONRPCMessage|JSONRPCError",
        "JSONRPCMessage|JSONRPCErrorResponse",
        "PrimitiveSchemaDefinition|EnumSchema",
        "PrimitiveSchemaDefinition|LegacyTitledEnumSchema",
        "JSONRPCError.error",
        "JSONRPCErrorResponse.error",
        # capabilities that only grew
        "ClientCapabilities.elicitation",
        "ClientCapabilities.sampling",
    ],
    "2026-07-28": [
        # `_meta` got a name
        *(
            f"{name}._meta"
            for name in (
                "AudioContent",
                "BlobResourceContents",
                "EmbeddedResource",
                "ImageContent",
                "Prompt",
                "Resource",
                "ResourceLink",
                "ResourceTemplate",
                "Root",
                "SamplingMessage",
                "TextContent",
                "TextResourceContents",
                "Tool",
                "ToolResultContent",
                "ToolUseContent",
                "CreateMessageResult",
                "CallToolResult",
                "ListToolsResult",
                "Result",
            )
        ),
        # any object, written in another way
        "CreateMessageRequest.params.metadata",
        "ClientCapabilities.sampling.context",
        "ClientCapabilities.sampling.tools",
        "ClientCapabilities.elicitation.form",
        "ClientCapabilities.experimental",
        "ClientCapabilities.experimental{}",
        "ServerCapabilities.completions",
        "ServerCapabilities.logging",
        "ServerCapabilities.experimental",
        # members in another order, a union of one inlined
        "ElicitRequestParams",
        "ElicitResult.content",
        "ElicitResult.content{}",
        "ClientNotification",
        # the envelope of messages that stayed messages
        *(f"{message}.{member}" for message in ("CallToolRequest", "ListToolsRequest") for member in ("jsonrpc", "id")),
        # embedded requests lost their envelope with their carrier, which is one change
        *(
            f"{message}.{member}"
            for message in ("CreateMessageRequest", "ListRootsRequest", "ElicitRequest")
            for member in ("jsonrpc", "id")
        ),
        # only published correctly now, which we had patched
        "NumberSchema.minimum",
        "NumberSchema.maximum",
        "NumberSchema.default",
        # error codes that the schema now spells out
        "-32700 ParseError",
        "-32600 InvalidRequest",
        "-32601 MethodNotFound",
        "-32602 InvalidParams",
        "-32603 InternalError",
    ],
}

PROSE: dict[str, list[str]] = {
    # words in rules, subjects and what was old and new that only a reader of the changelog's prose could write
    "2025-03-26": ["oauth", "authoriz", "streamable"],
    "2025-06-18": ["oauth", "header", "authoriz", "security"],
    "2025-11-25": ["openid", "www-authenticate", "sse", "origin", "stderr", "governance", "toolname"],
    "2026-07-28": [
        "traceparent",
        "tracestate",
        "baggage",
        "x-mcp-header",
        "mcp-method",
        "session",
        "last-event",
        "iss ",
        "thisserver",
        "allservers",
    ],
}

FACTS = {"2025-03-26": (15, 40), "2025-06-18": (40, 90), "2025-11-25": (100, 230), "2026-07-28": (200, 420)}
"""How many findings there may be: roughly 20, 50, 150 and 300."""


def matching(findings: Iterable[Finding], rule: str, subject: str) -> list[Finding]:
    rules, subjects = rule.split(" or "), subject.split(" or ")
    return [finding for finding in findings if finding.rule in rules and finding.subject in subjects]


def neighbours(findings: Iterable[Finding], subject: str) -> str:
    """What was found in the vicinity, for the message of a failed test."""
    word = subject.split(" or ")[0].split("|")[-1].split(".")[-1].split("/")[-1]
    near = [f"{finding.rule} {finding.subject}" for finding in findings if word in finding.subject]
    return "; ".join(near[:8]) or "nothing near it"


def problems(facts: list[Fact], found: Comparison) -> list[str]:
    wrong: list[str] = []
    for rule, subject, *least in facts:
        hits = matching(found.findings, rule, subject)
        if len(hits) != 1:
            wrong.append(f"{len(hits)} x {rule} {subject} -- found: {neighbours(found.findings, subject)}")
        elif least and max(hits[0].old_client, hits[0].new_client) < least[0]:
            worst = max(hits[0].old_client, hits[0].new_client)
            wrong.append(f"{rule} {subject} is {worst.name}, should be at least {least[0].name}")
    return wrong


pair = pytest.mark.parametrize(("old", "new"), PAIRS, ids=[new for _, new in PAIRS])


@pair
def test_what_the_changelog_names_is_found_once(old: str, new: str) -> None:
    wrong = problems(NAMED[new], comparison(old, new))
    assert not wrong, f"{len(wrong)} of {len(NAMED[new])}:\n" + "\n".join(wrong)


@pair
def test_what_only_the_schema_says_is_found_once(old: str, new: str) -> None:
    wrong = problems(UNNAMED[new], comparison(old, new))
    assert not wrong, f"{len(wrong)} of {len(UNNAMED[new])}:\n" + "\n".join(wrong)


@pair
def test_what_only_looks_like_a_change_is_not_found_on_the_wire(old: str, new: str) -> None:
    about = set(TRAPS[new])
    caught = [
        f"{finding.rule} {finding.subject}: {finding.old} -> {finding.new}"
        for finding in comparison(old, new).findings
        if finding.plane is Plane.WIRE
        and finding.subject in about
        # these are facts of their own at the same place
        and (finding.rule, finding.subject) not in {fact[:2] for fact in (*NAMED[new], *UNNAMED[new])}
    ]
    assert not caught, "\n".join(caught)


@pair
def test_what_is_prose_is_not_found(old: str, new: str) -> None:
    for finding in comparison(old, new).findings:
        words = f"{finding.rule} {finding.subject} ".lower()
        assert not [word for word in PROSE[new] if word in words], finding


@pair
def test_there_are_about_as_many_facts_as_there_should_be(old: str, new: str) -> None:
    least, most = FACTS[new]
    found = comparison(old, new).findings
    assert least <= len(found) <= most, f"{len(found)}: {Counter(finding.rule for finding in found)}"


@pair
def test_every_finding_is_found_once(old: str, new: str) -> None:
    seen = Counter((finding.rule, finding.subject) for finding in comparison(old, new).findings)
    assert [key for key, times in seen.items() if times > 1] == []
    prints = [finding.fingerprint for finding in comparison(old, new).findings]
    assert len(set(prints)) == len(prints)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_revision_does_not_differ_from_itself(revision: str) -> None:
    same = comparison(revision, revision)
    assert same.findings == ()
    assert (same.old_client.outcome, same.new_client.outcome) == (Outcome.WORKS, Outcome.WORKS)
    again = compare(protocol(revision), build(STORE.effective(revision)))
    assert again.findings == ()


def test_the_new_eras_do_not_talk_to_each_other() -> None:
    crossed = comparison("2025-11-25", "2026-07-28")
    assert (crossed.old_client.outcome, crossed.new_client.outcome) == (Outcome.CANNOT_TALK, Outcome.CANNOT_TALK)
    for old, new in PAIRS[:3]:
        pairing = comparison(old, new)
        assert Outcome.CANNOT_TALK not in (pairing.old_client.outcome, pairing.new_client.outcome), (old, new)


def test_a_message_that_something_else_replaces_is_removed_with_a_hint() -> None:
    findings = comparison("2025-11-25", "2026-07-28").findings
    for gone, instead in (("ping", "server/discover"), ("resources/subscribe", "subscriptions/listen")):
        (finding,) = matching(findings, "request-method-removed", f"client->server request {gone}")
        assert instead in finding.hint
    renamed = [finding.subject for finding in findings if finding.rule == "definition-renamed"]
    assert not {"PingRequest", "SubscribeRequest", "InitializeRequest"} & set(renamed)


# --- there and back -------------------------------------------------------------------------------------------------

_OPPOSITES = (
    ("added", "removed"),
    ("became-required", "became-optional"),
    ("narrowed", "widened"),
    ("became-non-nullable", "became-nullable"),
    ("number-to-integer", "integer-to-number"),
    ("tightened", "loosened"),
    ("closed", "opened"),
    ("extracted", "inlined"),
)

_ONE_SIDED = ("capability-added", "capability-removed", "error-code-added", "error-code-removed")
"""What is gone may be missed, what is new may be left alone: these are not the same seen from either end."""


def opposite(rule: str) -> str:
    """The rule that finds the same change in the other direction."""
    for one, other in _OPPOSITES:
        for word, mirrored in ((one, other), (other, one)):
            if word in rule:
                return rule.replace(word, mirrored)
    return rule


def test_opposites_are_opposite() -> None:
    for rule in ("field-added-required", "type-narrowed", "became-nullable", "became-non-nullable", "const-changed"):
        assert opposite(opposite(rule)) == rule
    assert opposite("became-nullable") == "became-non-nullable"


@pytest.mark.parametrize(("old", "new"), list(combinations(REVISIONS, 2)))
def test_the_way_back_mirrors_the_way_there(old: str, new: str) -> None:
    renamed = renames(old, new)
    assert {after: before for before, after in renames(new, old).items()} == renamed
    there = Counter(key(finding, opposite(finding.rule), renamed, back=False) for finding in wired(old, new))
    back = Counter(key(finding, finding.rule, renamed, back=True) for finding in wired(new, old))
    missing, extra = there - back, back - there
    assert not missing, f"the way back lacks {list(missing)[:10]}, it has {list(extra)[:10]}"
    assert not extra, f"the way back also has {list(extra)[:10]}"


def wired(old: str, new: str) -> list[Finding]:
    """What changes on the wire or in generated code; words only ever get newer."""
    return [finding for finding in comparison(old, new).findings if finding.plane is not Plane.DOC]


def renames(old: str, new: str) -> dict[str, str]:
    """Old name -> new name."""
    found = [finding for finding in comparison(old, new).findings if finding.rule == "definition-renamed"]
    return {finding.definition_old: finding.definition_new for finding in found}


def key(finding: Finding, rule: str, renamed: dict[str, str], *, back: bool) -> tuple[object, ...]:
    """A finding as the other direction sees it: a pairing of an old client is one of a new client there."""
    impacts = (finding.new_client, finding.old_client) if back else (finding.old_client, finding.new_client)
    reaches = frozenset(finding.reaches)
    # what a definition holds is called after its new name, whichever that is
    subject = re.sub("[A-Z][A-Za-z]+", lambda word: renamed.get(word[0], word[0]), finding.subject)
    return rule, subject, None if rule in _ONE_SIDED else impacts, reaches
