"""The emitter of TypeScript: npm packages with types, validators, methods and adapters for the official SDK."""
