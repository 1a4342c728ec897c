"""The frame of the pages that instructors read: one file each, in light and dark, on any width."""

from __future__ import annotations

import jinja2

ENVIRONMENT = jinja2.Environment(
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    loader=jinja2.DictLoader(
        {
            "frame": """\
<!doctype html>
<html lang="en">
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
  --paper: light-dark(#ffffff, #16181b);
}
body { max-width: 52rem; margin: 2rem auto; padding: 0 1rem; background: var(--paper);
  overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.25; }
h2 { font-size: 1.25rem; margin-top: 2.5rem; }
h3 { font-size: 1.0625rem; margin-top: 1.75rem; }
.quiet { color: var(--quiet); }
.wide { overflow-x: auto; }
.wide:focus-visible { outline: 2px solid var(--bar); }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; color: var(--quiet); padding-bottom: .25rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0;
  border-bottom: 1px solid var(--line); font-weight: normal; }
thead th { color: var(--quiet); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.bar { min-width: 5rem; width: 25%; }
.bar span { display: block; height: .75rem; margin-top: .4rem; background: var(--bar); }
svg { display: block; width: 100%; max-width: 36rem; height: auto; margin-bottom: .75rem; }
svg rect { fill: var(--bar); } svg text { fill: currentColor; font-size: 11px; }
svg line { stroke: var(--line); }
pre { overflow-x: auto; font-size: .8125rem; line-height: 1.4; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr));
  gap: 1rem; }
.pair > * { min-width: 0; }
/* The bars repeat the numbers beside them: on a phone, the words need the room. */
@media (max-width: 36rem) {
  .bar { display: none; } table { font-size: .9375rem; }
  th, td { padding-right: .5rem; } :is(th, td):last-child { padding-right: 0; }
  thead .number { white-space: normal; }
}
@media print { .bar span, svg rect { print-color-adjust: exact; } }
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
        }
    ),
)
