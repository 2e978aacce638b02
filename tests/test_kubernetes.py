"""Kubernetes manifests: valid YAML, existing fields with values of their types, consistent references."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from ruamel.yaml import YAML

from mcp_bindgen.http import HttpLimits
from mcp_bindgen.http.server import app, serve
from tests.harness.commands import ROOT

FOLDER = ROOT / "examples" / "kubernetes"
FILES = sorted(FOLDER.glob("*.yaml"))
VERSION = "1.34"


@cache
def documents() -> list[Any]:
    """Return the objects in all manifests."""
    yaml = YAML(typ="safe", pure=True)
    return [one for path in FILES for one in yaml.load_all(path.read_text("utf-8"))]


def find(kind: str, name: str) -> Any:
    """Return the object with a kind and a name."""
    (found,) = [one for one in documents() if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


def check(document: Any) -> None:
    """Validate an object against the schemas of Kubernetes; unknown fields are errors (`ValidationError`)."""
    from kubernetes_validate import validate  # type: ignore[import-untyped]  # takes seconds

    validate(document, VERSION, strict=True)


@pytest.mark.full
def test_manifests_have_only_fields_that_exist() -> None:
    for document in documents():
        check(document)


@pytest.mark.full
@pytest.mark.parametrize("change", [{"replicaz": 3}, {"replicas": "3"}, {"template": {"spec": {}}}])
def test_mistakes_in_manifests_are_found(change: Any) -> None:
    from kubernetes_validate import ValidationError

    deployment = find("Deployment", "mcp-server")
    with pytest.raises(ValidationError):
        check({**deployment, "spec": {**deployment["spec"], **change}})


def test_probes_use_the_health_paths_of_the_server() -> None:
    (container,) = find("Deployment", "mcp-server")["spec"]["template"]["spec"]["containers"]
    asked = {name: container[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert asked == {"startupProbe": app.HEALTHZ, "livenessProbe": app.HEALTHZ, "readinessProbe": app.READYZ}
    assert container["readinessProbe"]["timeoutSeconds"] > app.PROBE_TIMEOUT_SECONDS


def test_the_termination_grace_period_covers_the_shutdown() -> None:
    spec = find("Deployment", "mcp-server")["spec"]["template"]["spec"]
    pause = spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pause + serve.GRACE_SECONDS + 5 <= spec["terminationGracePeriodSeconds"]


def test_references_between_objects_are_consistent() -> None:
    deployment, service = find("Deployment", "mcp-server"), find("Service", "mcp-server")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels == service["spec"]["selector"]
    assert find("PodDisruptionBudget", "mcp-server")["spec"]["selector"]["matchLabels"] == labels
    assert find("HorizontalPodAutoscaler", "mcp-server")["spec"]["scaleTargetRef"]["name"] == "mcp-server"
    redis = find("StatefulSet", "mcp-redis")["spec"]
    assert redis["serviceName"] == find("Service", "mcp-redis")["metadata"]["name"]
    (rule,) = find("NetworkPolicy", "mcp-redis")["spec"]["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": labels}}]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    allowed = [one["value"] for one in container["env"] if one["name"] == "ALLOWED_HOSTS"]
    assert allowed == [one["host"] for one in find("Ingress", "mcp-server")["spec"]["rules"]]
    (paths,) = [one["http"]["paths"] for one in find("Ingress", "mcp-server")["spec"]["rules"]]
    assert [(one["path"], one["backend"]["service"]["name"]) for one in paths] == [("/mcp", "mcp-server")]


def test_sessions_are_not_sticky_and_no_container_runs_as_root() -> None:
    assert find("Service", "mcp-server")["spec"]["sessionAffinity"] == "None"
    for document in documents():
        spec = document.get("spec", {}).get("template", {}).get("spec")
        if spec is not None:
            assert spec["securityContext"]["runAsNonRoot"]
            assert spec["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    annotations = find("Ingress", "mcp-server")["metadata"]["annotations"]
    assert not [name for name in annotations if re.search("affinity|session|hash", name)]


def test_the_proxy_and_the_server_have_the_same_message_limit() -> None:
    size = find("Ingress", "mcp-server")["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-body-size"]
    assert size == f"{HttpLimits().message // 1024**2}m"


def test_redis_persists_each_write_and_evicts_no_key() -> None:
    lines = find("ConfigMap", "mcp-redis")["data"]["redis.conf"].splitlines()
    assert {"appendonly yes", "appendfsync always", "maxmemory-policy noeviction"} <= set(lines)
