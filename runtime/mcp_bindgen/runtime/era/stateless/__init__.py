"""Revisions in which every request speaks for itself (from 2026-07-28). Imports `core`."""
