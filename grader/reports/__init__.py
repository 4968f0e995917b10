"""Write reports from results."""
