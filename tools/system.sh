#!/usr/bin/env bash
# Make sure of a program that pip cannot install: `browser` for the PDF and the tests of the
# rendered book, `jail` for the sandbox that submissions run in.
set -euo pipefail

case "${1:-}" in
  browser)
    commands=(chromium chromium-browser google-chrome)
    packages=(chromium chromium-browser)  # Debian's name, and Ubuntu's
    missing="No Chromium here (looked for the commands ${commands[*]}): install it"
    ;;
  jail)
    commands=(bwrap)
    packages=(bubblewrap)
    missing="No bubblewrap here (looked for the command bwrap): install it, which needs Linux"
    ;;
  *)
    echo "Say what is needed: tools/system.sh browser, or tools/system.sh jail"
    exit 2
    ;;
esac

found() {
  local command
  for command in "${commands[@]}"; do
    command -v "$command" >/dev/null && return
  done
  return 1
}

found && exit
as_root=(env)
[ "$(id -u)" -eq 0 ] || as_root=(sudo --non-interactive)
if command -v apt-get >/dev/null && "${as_root[@]}" true 2>/dev/null; then
  "${as_root[@]}" apt-get update -qq || true  # the list from last time may do
  for package in "${packages[@]}"; do
    echo "Installing $package …"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq "$package" >/dev/null || continue
    found && exit
  done
fi
echo "$missing, then run the command again"
exit 1
