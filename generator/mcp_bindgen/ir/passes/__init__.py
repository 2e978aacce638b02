"""The passes that turn an effective schema into the protocol model, in the order in which they run."""

from collections.abc import Callable

from .build_state import BuildState
from .check_facts import check_facts
from .collect_errors import collect_errors
from .collect_extensions import collect_extensions
from .collect_facts import collect_facts
from .collect_methods import collect_methods
from .complete_messages import complete_messages
from .document import document
from .extract_inline_objects import extract_inline_objects
from .fill_defaults import fill_defaults
from .flatten_all_of import flatten_all_of
from .link_capabilities import collect_capabilities, link_capabilities
from .link_fields import link_fields
from .link_results import link_results
from .merge_inline_objects import merge_inline_objects
from .name_open_params import name_open_params
from .name_refinements import name_refinements
from .order_constants import order_constants
from .read_definitions import read_definitions
from .recognise_free import recognise_free
from .restore_unions import restore_unions
from .state_types import state_types
from .tag_unions import tag_unions

PASSES: tuple[Callable[[BuildState], BuildState], ...] = (
    # on JSON Schema
    restore_unions,
    flatten_all_of,
    complete_messages,
    state_types,
    extract_inline_objects,
    # from JSON Schema to types
    read_definitions,
    # on types
    order_constants,
    name_open_params,
    merge_inline_objects,
    recognise_free,
    tag_unions,
    name_refinements,
    fill_defaults,
    # from types to methods
    collect_methods,
    link_results,
    link_fields,
    collect_capabilities,
    link_capabilities,
    collect_errors,
    collect_facts,
    collect_extensions,
    check_facts,
    # words
    document,
)

__all__ = ["PASSES", "BuildState"]
