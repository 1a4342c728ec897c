#!/usr/bin/env bash
# Make sure of the two programs that pip cannot install: a browser for the tests of the rendered
# book, and the sandbox that submissions run in.
set -euo pipefail

packages=()
command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
  || command -v google-chrome >/dev/null || packages+=(chromium)
command -v bwrap >/dev/null || packages+=(bubblewrap)
[ ${#packages[@]} -eq 0 ] && exit 0

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo --non-interactive)
if command -v apt-get >/dev/null && { [ "$(id -u)" -eq 0 ] || sudo --non-interactive true 2>/dev/null; }; then
  echo "Installing ${packages[*]} …"
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq "${packages[@]}" >/dev/null && exit 0
fi
echo "Install these system packages first, then run the command again: ${packages[*]}"
exit 1
