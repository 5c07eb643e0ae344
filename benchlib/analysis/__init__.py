"""From stored rows to intervals, ratios, plans and the verdicts of certificates. Nothing here measures or shows."""
