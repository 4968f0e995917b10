"""Views of the result model."""
