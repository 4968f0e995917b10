"""What course authors run: the audit, and the release of the students' copy."""
