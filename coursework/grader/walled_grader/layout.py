"""The frame of all pages, for students and instructors: one file each, light or dark, any width."""

from __future__ import annotations

import jinja2

FRAME = """\
<!doctype html>
<html lang="{{ language or 'en' }}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
:root {
  color-scheme: light dark;
  font: 1.0625rem/1.5 system-ui, sans-serif;
  --quiet: light-dark(#595959, #b0b0b0);
  --line: light-dark(#d0d0d0, #4a4a4a);
  --bar: light-dark(#2f6fab, #6aaee6);
}
body { max-width: 52rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h2 { font-size: 1.25rem; margin-top: 2.5rem; }
.quiet { color: var(--quiet); }
.wide { overflow-x: auto; }
.wide:focus-visible { outline: 2px solid var(--bar); }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0;
  border-bottom: 1px solid var(--line); font-weight: normal; font-variant-numeric: tabular-nums; }
th { color: var(--quiet); }
td:nth-child(2) { min-width: 10rem; }
.bar { display: block; height: .3rem; background: var(--bar); print-color-adjust: exact; }
li { margin: .4rem 0; }
pre { overflow-x: auto; font-size: .8125rem; line-height: 1.4; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr));
  gap: 1rem; }
.pair > * { min-width: 0; }
</style>
</head>
<body>
<main>
<h1>{{ title }}</h1>
{% block content %}
{% endblock %}
</main>
</body>
</html>
"""
ENVIRONMENT = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
ENVIRONMENT.loader = jinja2.DictLoader({"frame": FRAME})
ENVIRONMENT.filters["points"] = lambda value: f"{value:.2f}".rstrip("0").rstrip(".")
ENVIRONMENT.filters["percent"] = lambda share: f"{100 * share:.0f} %"
