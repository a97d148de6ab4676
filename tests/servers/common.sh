# Sourced by the recipes: `RECIPE DIR PORT [server option...]` becomes the server, in the foreground, on 127.0.0.1:PORT with its
# files in DIR, its administrator without a password. DIR/programs names the folder of its client programs.
# Nothing is installed: binaries come from the machine, or are unpacked once under $OPSCTL_TEST_SERVERS (see cache.sh).
set -euo pipefail
recipe=$(basename "$0") here=$(cd "$(dirname "$0")" && pwd)
. "$here/cache.sh"
mkdir -p "$1"; dir=$(cd "$1" && pwd) port=$2; shift 2
die() { echo "$recipe: $*" >&2; exit 1; }

# once LOCK COMMAND...: two runs at once wait for each other; the command itself must be whole-or-nothing.
once() {
  ( flock 8; shift; "$@" ) 8>"$cache/$1.lock"
}
# obtain SUITE PACKAGE...: sets root to the folder with the unpacked packages.
obtain() {
  root=$cache/$recipe-$(. /etc/os-release; [ "$1" = release ] && echo "${VERSION_CODENAME:-release}" || echo "$1")
  [ -d "$root" ] || once "${root##*/}" unpack_missing "$@"
}
unpack_missing() { [ -d "$root" ] || "$here/unpack" "$1" "$root" "${@:2}"; }
