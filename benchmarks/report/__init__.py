"""reports/README.md, its pictures and the figures at the top of README.md, from the JSON in reports/."""
