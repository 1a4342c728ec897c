#!/usr/bin/env bash
# Make sure of a program that pip cannot install: `browser` for the PDF and the tests of the
# rendered book, `fonts` for the Chinese characters of the PDF, `jail` for the sandbox that submissions
# run in.
set -euo pipefail

found() {
  local command
  for command in "${commands[@]}"; do
    command -v "$command" >/dev/null && return
  done
  return 1
}

case "${1:-}" in
  browser)
    commands=(chromium-headless-shell chromium chromium-browser google-chrome)
    packages=(chromium-headless-shell chromium chromium-browser)  # Debian's two, and Ubuntu's
    missing="No Chromium here (looked for the commands ${commands[*]}): install it"
    ;;
  fonts)
    found() { [[ $OSTYPE == darwin* || $(fc-list :lang=zh-cn 2>/dev/null) ]]; }
    packages=(fontconfig fonts-noto-cjk)
    missing="No font with Chinese characters here (asked fc-list for one): install it, such as Noto CJK"
    ;;
  jail)
    commands=(bwrap)
    packages=(bubblewrap)
    missing="No bubblewrap here (looked for the command bwrap): install it, which needs Linux"
    ;;
  *)
    echo "Say what is needed: tools/system.sh browser, or fonts, or jail"
    exit 2
    ;;
esac

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
