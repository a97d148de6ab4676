# Sourced: where servers are unpacked. For root not in its home: PostgreSQL runs as another user then, who has no way into /root.
cache=${OPSCTL_TEST_SERVERS:-$([ "$(id -u)" = 0 ] && echo /var/cache || echo "${XDG_CACHE_HOME:-$HOME/.cache}")/opsctl-servers}
mkdir -p "$cache"; cache=$(cd "$cache" && pwd)
