"""Write the reports on results: pages, tables, the gradebook and feedback."""
