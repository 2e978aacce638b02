"""Python bindings of a protocol model: one template for each file; datamodel-code-generator writes the types."""
