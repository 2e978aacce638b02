"""Generated npm packages: validators beside the JSON Schema, types under the compiler, and conversations."""
