# Gitea. Its front end isn't built, so pages have no style; API, webhooks and Git are whole.
# shellcheck shell=bash

gitea_up() {
  local conf=$DATA/gitea/conf/app.ini url=http://127.0.0.1:$GITEA_PORT password token
  mkdir -p "$DATA/gitea/conf"
  cat >"$conf" <<INI
APP_NAME = lab
RUN_USER = $(id -un)
RUN_MODE = prod
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
WORK_PATH = $DATA/gitea
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = $GITEA_PORT
ROOT_URL = $url/
STATIC_ROOT_PATH = $SRC/gitea
OFFLINE_MODE = true
DISABLE_SSH = true
[database]
DB_TYPE = sqlite3
PATH = $DATA/gitea/gitea.db
SQLITE_TIMEOUT = 10000
SQLITE_JOURNAL_MODE = WAL
[security]
INSTALL_LOCK = true
SECRET_KEY = lab
INTERNAL_TOKEN = eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJuYmYiOjE3MDAwMDAwMDB9.lab-lab-lab-lab-lab-lab-lab-lab-lab-lab-lab
PASSWORD_COMPLEXITY = off
[service]
DISABLE_REGISTRATION = true
[webhook]
ALLOWED_HOST_LIST = *
[repository]
DEFAULT_BRANCH = main
[log]
LEVEL = warn
INI
  local gitea=(env USER="$(id -un)" GITEA_WORK_DIR="$DATA/gitea" "$BIN/gitea" --config "$conf" --work-path "$DATA/gitea")
  spawn gitea "${gitea[@]}" web
  wait_for gitea 90 curl -sf "$url/api/healthz"
  [ -s "$DATA/gitea/token" ] && return
  # The administrator's token, through a password that is forgotten at once.
  password=$(openssl rand -hex 16)
  HOME=$DATA/home "${gitea[@]}" admin user create --admin --username lab --password "$password" --email lab@example.com --must-change-password=false >>"$LOGS/gitea-admin.log" 2>&1 ||
    HOME=$DATA/home "${gitea[@]}" admin user change-password --username lab --password "$password" --must-change-password=false >>"$LOGS/gitea-admin.log" 2>&1 ||
    die "could not create Gitea's administrator: see $LOGS/gitea-admin.log"
  token=$(curl -sf -u "lab:$password" -H 'Content-Type: application/json' -d "{\"name\":\"lab-$RANDOM\",\"scopes\":[\"all\"]}" "$url/api/v1/users/lab/tokens" |
    sed -n 's/.*"sha1":"\([^"]*\)".*/\1/p')
  [ -n "$token" ] || die "Gitea gave its administrator no token: see $LOGS/gitea.log"
  (umask 077; echo "$token" >"$DATA/gitea/token")
}
