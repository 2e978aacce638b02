"""The passes that turn an effective schema into the protocol model, in the order in which they run."""

from collections.abc import Callable

from .build_state import BuildState
from .collect_methods import collect_methods
from .complete_messages import complete_messages
from .document import document
from .facts import check_facts, collect_errors, collect_extensions, collect_facts
from .flatten_all_of import flatten_all_of
from .inline_types import extract_inline_objects, merge_inline_objects, name_open_params, name_refinements
from .links import collect_capabilities, link_capabilities, link_fields, link_results
from .read_definitions import read_definitions
from .state_types import state_types
from .unions import recognise_free, restore_unions, tag_unions
from .values import fill_defaults, order_constants

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
