# Argo CD, outside the cluster that it manages.
# shellcheck shell=bash

argocd_up() {
  local hydrator=false mutual=() cache=(--redis "127.0.0.1:$REDIS_PORT") repo=(--repo-server "127.0.0.1:$REPO_PORT" --repo-server-plaintext)
  kube get namespace argocd >/dev/null 2>&1 || kube create namespace argocd >/dev/null
  kube apply --server-side --force-conflicts -f "$ARGOCD_SHARE/crds.yaml" >/dev/null
  wait_for kube-apiserver 60 kube get applications.argoproj.io,applicationsets.argoproj.io,appprojects.argoproj.io -A
  sed "s/RESYNC/${RESYNC}s/" "$HERE/manifests/argocd.yaml" | kube apply -n argocd -f - >/dev/null
  argocd_secret argocd-secret server.secretkey=lab
  argocd_secret argocd-redis auth=

  mkdir -p "$DATA/bin"; ln -sfn "$ARGOCD_BIN" "$DATA/bin/argocd"
  mkdir -p "$DATA"/argocd/{tls,ssh,gpg/keys,gpg/source,plugins}
  chmod 700 "$DATA/argocd/gpg/keys"; touch "$DATA/argocd/ssh/ssh_known_hosts"
  [ -z "$HYDRATOR" ] || hydrator=true
  # FAKE_IN_CLUSTER makes https://kubernetes.default.svc the cluster of the kubeconfig.
  local common=(env PATH="$DATA/bin:$BIN:$ARGOCD_SHARE/hack:$PATH" KUBECONFIG="$KUBECONFIG" ARGOCD_FAKE_IN_CLUSTER=true HOSTNAME=lab-0
    ARGOCD_TLS_DATA_PATH="$DATA/argocd/tls" ARGOCD_SSH_DATA_PATH="$DATA/argocd/ssh" ARGOCD_PLUGINSOCKFILEPATH="$DATA/argocd/plugins"
    ARGOCD_GNUPGHOME="$DATA/argocd/gpg/keys" ARGOCD_GPG_DATA_PATH="$DATA/argocd/gpg/source" ARGOCD_GPG_ENABLED=false
    ARGOCD_HYDRATOR_ENABLED="$hydrator" ARGOCD_APPLICATION_CONTROLLER_COMMIT_SERVER="127.0.0.1:$COMMIT_PORT")
  # From 3.5 on the repo server wants clients' certificates, unless it is told that there are none.
  case $ARGOCD in v3.[5-9]* | v3.[1-9][0-9]*) mutual=(--client-ca-path '') ;; esac
  if [ "$hydrator" = true ]; then
    spawn argocd-commit-server "${common[@]}" ARGOCD_BINARY_NAME=argocd-commit-server "$ARGOCD_BIN" --address 127.0.0.1 --port "$COMMIT_PORT" \
      --metrics-address 127.0.0.1 --metrics-port "$COMMIT_METRICS_PORT" --loglevel warn
    wait_for argocd-commit-server 90 taken "$COMMIT_PORT"
  else
    signal argocd-commit-server TERM; stop argocd-commit-server
  fi
  spawn argocd-repo-server "${common[@]}" ARGOCD_BINARY_NAME=argocd-repo-server "$ARGOCD_BIN" --address 127.0.0.1 --port "$REPO_PORT" \
    --metrics-address 127.0.0.1 --metrics-port "$REPO_METRICS_PORT" "${cache[@]}" --revision-cache-expiration "$REVISION_CACHE" --loglevel warn --disable-tls "${mutual[@]}"
  spawn argocd-application-controller "${common[@]}" ARGOCD_BINARY_NAME=argocd-application-controller "$ARGOCD_BIN" -n argocd "${cache[@]}" "${repo[@]}" \
    --metrics-port "$CONTROLLER_METRICS_PORT" --loglevel warn --app-resync "$RESYNC"
  spawn argocd-applicationset-controller "${common[@]}" ARGOCD_BINARY_NAME=argocd-applicationset-controller "$ARGOCD_BIN" -n argocd \
    --metrics-addr "127.0.0.1:$SETS_METRICS_PORT" --probe-addr "127.0.0.1:$SETS_PROBE_PORT" --webhook-addr "127.0.0.1:$SETS_WEBHOOK_PORT" \
    --argocd-repo-server "127.0.0.1:$REPO_PORT" --repo-server-plaintext --enable-progressive-syncs --loglevel warn
  spawn argocd-server "${common[@]}" ARGOCD_BINARY_NAME=argocd-server "$ARGOCD_BIN" -n argocd "${cache[@]}" --disable-auth --insecure "${repo[@]}" \
    --address 127.0.0.1 --port "$ARGO_PORT" --metrics-address 127.0.0.1 --metrics-port "$ARGO_METRICS_PORT" --dex-server http://127.0.0.1:1 --loglevel warn
  wait_for argocd-repo-server 90 taken "$REPO_PORT"
  wait_for argocd-applicationset-controller 90 taken "$SETS_WEBHOOK_PORT"
  wait_for argocd-application-controller 90 curl -sf "http://127.0.0.1:$CONTROLLER_METRICS_PORT/healthz"
  wait_for argocd-server 90 curl -sf "http://127.0.0.1:$ARGO_PORT/healthz"
}

# argocd_secret NAME KEY=VALUE: creates a Secret that Argo CD expects, once a world.
argocd_secret() {
  kube -n argocd get secret "$1" >/dev/null 2>&1 && return
  kube -n argocd create secret generic "$1" --from-literal="$2" >/dev/null
  kube -n argocd label secret "$1" app.kubernetes.io/part-of=argocd >/dev/null
}
