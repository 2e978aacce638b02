"""Write tasks as the extension has them on the wire (extension "Tasks": Task, DetailedTask, CreateTaskResult)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from .record import TaskRecord


def task(record: TaskRecord) -> dict[str, Any]:
    """Return what is known of a task, whatever its status."""
    message = {} if record.message is None else {"statusMessage": record.message}
    return {
        "taskId": record.id,
        "status": record.status,
        **message,
        "createdAt": time_of(record.created),
        "lastUpdatedAt": time_of(record.updated),
        "ttlMs": record.ttl,
        "pollIntervalMs": record.poll,
    }


def created(record: TaskRecord) -> dict[str, Any]:
    """Return the result that a task was created."""
    return {**task(record), "resultType": "task"}


def detailed(record: TaskRecord) -> dict[str, Any]:
    """Return a task with what its status brings: questions, result or error."""
    more: dict[str, Any] = {}
    if record.status == "input_required":
        more["inputRequests"] = record.questions
    elif record.status == "completed":
        more["result"] = record.result
    elif record.status == "failed":
        more["error"] = record.error
    return {**task(record), **more}


def time_of(milliseconds: int) -> str:
    """Return a time of a record in ISO 8601."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
