# etcd, the Kubernetes control plane and kwok.
# shellcheck shell=bash

# kube runs the lab's own kubectl against the world.
kube() { "$BIN/kubectl" --kubeconfig "$KUBECONFIG" "$@"; }

# certificates makes a certificate authority, the API server's certificate and
# the key that signs service accounts' tokens, once a world.
certificates() {
  local pki=$DATA/pki
  if [ ! -f "$pki/done" ]; then
    mkdir -p "$pki"
    openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=lab-ca -keyout "$pki/ca.key" -out "$pki/ca.crt" 2>/dev/null
    openssl req -newkey rsa:2048 -nodes -subj /CN=kube-apiserver -keyout "$pki/api.key" -out "$pki/api.csr" 2>/dev/null
    openssl x509 -req -in "$pki/api.csr" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -days 3650 -out "$pki/api.crt" \
      -extfile <(echo 'subjectAltName=DNS:localhost,DNS:kubernetes,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.0.0.1') 2>/dev/null
    openssl genrsa -out "$pki/sa.key" 2048 2>/dev/null
    printf '%s,admin,admin,system:masters\n' "$(openssl rand -hex 16)" >"$pki/tokens.csv"
    touch "$pki/done"
  fi
  cat >"$KUBECONFIG" <<YAML
apiVersion: v1
kind: Config
current-context: lab
clusters: [{name: lab, cluster: {server: "https://127.0.0.1:$API_PORT", certificate-authority: "$pki/ca.crt"}}]
users: [{name: admin, user: {token: "$(cut -d, -f1 "$pki/tokens.csv")"}}]
contexts: [{name: lab, context: {cluster: lab, user: admin, namespace: argocd}}]
YAML
  chmod 600 "$KUBECONFIG"
}

kubernetes_up() {
  local etcd=http://127.0.0.1:$ETCD_PORT peer=http://127.0.0.1:$ETCD_PEER_PORT pki=$DATA/pki
  certificates
  spawn etcd etcd --data-dir "$DATA/etcd" --listen-client-urls "$etcd" --advertise-client-urls "$etcd" \
    --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer" --unsafe-no-fsync
  # redis would write its title over the environment, where its mark is.
  spawn redis redis-server --set-proc-title no --port "$REDIS_PORT" --bind 127.0.0.1 --save "" --appendonly no --dir "$DATA"
  wait_for etcd 30 curl -sf "$etcd/health"
  spawn kube-apiserver "$BIN/kube-apiserver" --etcd-servers "$etcd" --bind-address 127.0.0.1 --advertise-address 127.0.0.1 --secure-port "$API_PORT" \
    --tls-cert-file "$pki/api.crt" --tls-private-key-file "$pki/api.key" --client-ca-file "$pki/ca.crt" --token-auth-file "$pki/tokens.csv" \
    --service-account-key-file "$pki/sa.key" --service-account-signing-key-file "$pki/sa.key" --service-account-issuer https://kubernetes.default.svc \
    --authorization-mode RBAC --disable-admission-plugins TaintNodesByCondition --service-cluster-ip-range 10.0.0.0/24 --endpoint-reconciler-type none
  wait_for kube-apiserver 90 kube get --raw /readyz
  # Nodes are kwok's: nothing here may judge or provision them. Port 0: no health port of its own.
  spawn kube-controller-manager "$BIN/kube-controller-manager" --kubeconfig "$KUBECONFIG" --leader-elect=false --service-account-private-key-file "$pki/sa.key" \
    --root-ca-file "$pki/ca.crt" --use-service-account-credentials --secure-port 0 --controllers='*,-nodelifecycle,-node-ipam-controller,-cloud-node-lifecycle'
  spawn kube-scheduler "$BIN/kube-scheduler" --kubeconfig "$KUBECONFIG" --leader-elect=false --secure-port 0
  spawn kwok "$BIN/kwok" --kubeconfig "$KUBECONFIG" --manage-all-nodes --config "$SHARE/stages.yaml" --server-address "127.0.0.1:$KWOK_PORT"
  kube apply -f "$HERE/manifests/node.yaml" -f "$HERE/manifests/rollouts.yaml" >/dev/null
}
