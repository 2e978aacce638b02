"""Contract code in the form that the generator writes, for one revision and for all revisions."""
