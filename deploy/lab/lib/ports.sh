# A world's ports: fixed by a variable, else what the world had before, else free ones.
# shellcheck shell=bash

# PORTS names each port's variable and the program that listens on it.
PORTS=(
  API_PORT:kube-apiserver ETCD_PORT:etcd ETCD_PEER_PORT:etcd KWOK_PORT:kwok REDIS_PORT:redis
  REPO_PORT:argocd-repo-server REPO_METRICS_PORT:argocd-repo-server CONTROLLER_METRICS_PORT:argocd-application-controller
  SETS_METRICS_PORT:argocd-applicationset-controller SETS_PROBE_PORT:argocd-applicationset-controller
  SETS_WEBHOOK_PORT:argocd-applicationset-controller
  COMMIT_PORT:argocd-commit-server COMMIT_METRICS_PORT:argocd-commit-server ARGO_PORT:argocd-server ARGO_METRICS_PORT:argocd-server GITEA_PORT:gitea
)

taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# reserved PORT: is it some world's, whether that runs or not?
reserved() { cat "${ROOT:?}"/worlds/*/ports 2>/dev/null | grep -q "=$1\$"; }

# choose_ports sets every port's variable and writes them down. It ends with a
# message when a program that isn't running finds its port taken.
choose_ports() {
  local entry name program port try old='' lines=''
  exec 7>"$ROOT/ports.lock"
  flock -w 60 7 || die "another lab command holds $ROOT/ports.lock"
  [ -f "$WORLD/ports" ] && old=$(<"$WORLD/ports")
  try=$((20000 + RANDOM % 10000))
  for entry in "${PORTS[@]}"; do
    name=${entry%%:*} program=${entry##*:}
    port=${!name:-$(sed -n "s/^$name=//p" <<<"$old")}
    if [ -z "$port" ]; then
      # Below 32768, where the kernel takes ports for outgoing connections.
      while reserved "$try" || taken "$try"; do try=$((try + 1)); ((try < 32768)) || die "no free port between 20000 and 32768"; done
      port=$try try=$((try + 1))
    elif ! alive "$program" && taken "$port"; then
      die "$program needs port $port, and another program listens there: end that, or set $name to a free port, or forget this world with lab wipe"
    fi
    printf -v "$name" %s "$port"
    lines+="$name=$port"$'\n'
  done
  printf %s "$lines" >"$WORLD/ports"
  exec 7>&-
}
