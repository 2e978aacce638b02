"""Documentation site: stages handwritten and generated pages, and builds them with Zensical."""
