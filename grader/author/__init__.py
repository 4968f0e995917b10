"""The commands of course authors, such as the audit and the release of the students' copy."""
