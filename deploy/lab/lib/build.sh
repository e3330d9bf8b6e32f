# The lab's programs: where they come from, and building what is missing.
# shellcheck shell=bash

GITEA_VERSION=v1.23.8 KUBERNETES_VERSION=v1.31.0
KWOK_VERSION=v0.7.0 KUSTOMIZE_VERSION=v5.6.0 HELM_VERSION=v3.17.0

# Argo CD is of the line that ARGOCD names: the pinned ones are the folders of argocd/.
# Each line's program and files have its version in their names, so that worlds of
# several lines run side by side.
ARGOCD_PINNED=$HERE/argocd/${ARGOCD#v} ARGOCD_BIN=$BIN/argocd-$ARGOCD ARGOCD_SHARE=$ROOT/argocd/$ARGOCD
ARGOCD_MODULE=github.com/argoproj/argo-cd/$(cut -d. -f1 <<<"$ARGOCD")

check_line() {
  local pinned=("$HERE"/argocd/*/)
  [ -f "$ARGOCD_PINNED/go.mod" ] && return
  pinned=("${pinned[@]%/}"); pinned=("${pinned[@]##*/}")
  die "ARGOCD is '$ARGOCD'; the lab can be built with ${pinned[*]/#/v}"
}

# need_package COMMAND PACKAGE...: notes the packages as missing when the command is.
need_package() {
  local command=$1; shift
  command -v "$command" >/dev/null || missing+=("$@")
}

install_packages() {
  local missing=()
  need_package git git
  need_package curl curl
  need_package etcd etcd-server
  need_package redis-server redis-server
  need_package openssl openssl
  need_package gpg gnupg
  need_package gcc gcc libc6-dev
  need_package setsid util-linux
  [ "${#missing[@]}" -eq 0 ] && return
  command -v apt-get >/dev/null || die "needs ${missing[*]} (Debian's names), and there is no apt-get here to install them: install them by hand"
  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || die "needs ${missing[*]}; installing them takes root: apt-get install ${missing[*]}"
    root=(sudo -n)
  fi
  say "installing ${missing[*]}"
  { "${root[@]}" apt-get -o Acquire::Retries=3 update -qq && "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 install -y -qq --no-install-recommends "${missing[@]}"; } >&2 ||
    die "apt-get could not install ${missing[*]}: see above, or install them by hand"
}

# built NAME VERSION: is this program there in this version?
built() { [ -x "$BIN/$1" ] && [ "$(cat "${ROOT:?}/versions/$1" 2>/dev/null)" = "$2" ]; }
mark_built() { mkdir -p "$ROOT/versions"; echo "$2" >"$ROOT/versions/$1"; }

# from_module NAME MODULE VERSION PACKAGE [LDFLAGS]: builds one of the programs that a
# go.mod of ours pins. A copy is built: the checkout may be read-only.
from_module() {
  local name=$1 module=$2 version=$3 package=$4 ldflags=${5:-}
  built "$name" "$version" && return
  say "building $name $version"
  rm -rf "${SRC:?}/$module"; mkdir -p "$(dirname "$SRC/$module")"; cp -R "$HERE/$module" "$SRC/$module"; chmod -R u+w "$SRC/$module"
  (cd "$SRC/$module" && GOFLAGS="-mod=mod -buildvcs=false" go build -ldflags "$ldflags" -o "$BIN/$name" "$package")
  mark_built "$name" "$version"
}

# from_install NAME VERSION PACKAGE: builds a program whose module stands alone.
from_install() {
  built "$1" "$2" && return
  say "building $1 $2"
  (cd "$ROOT" && GOBIN=$BIN GOFLAGS='' go install "$3@$2")
  mark_built "$1" "$2"
}

# Gitea's go.mod has replacements, which go install refuses; it also needs its
# templates and locales beside it, to be told its version, which clients ask for, and C for its SQLite.
build_gitea() {
  local version="main.Version=${GITEA_VERSION#v}"
  built gitea "$version" && [ -d "$SRC/gitea/templates" ] && return
  say "building gitea $GITEA_VERSION"
  rm -rf "$SRC/gitea"; mkdir -p "$SRC"
  cp -R "$(module_dir "code.gitea.io/gitea@$GITEA_VERSION")" "$SRC/gitea"; chmod -R u+w "$SRC/gitea"
  (cd "$SRC/gitea" && CGO_ENABLED=1 GOFLAGS="-mod=mod -buildvcs=false" go build -tags 'sqlite sqlite_unlock_notify' -ldflags "-X $version" -o "$BIN/gitea" .)
  mark_built gitea "$version"
}

# module_dir MODULE@VERSION: downloads a module and prints its folder.
module_dir() {
  local json
  json=$(cd "$ROOT" && GOFLAGS="-mod=mod -buildvcs=false" go mod download -json "$1") || die "could not download $1: $json"
  sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p' <<<"$json"
}

# build_line keeps what a world needs of its Argo CD besides the program. The module
# cache drops the run bits of the scripts, without which newer ones compare nothing.
build_line() {
  local argocd
  [ -f "$ARGOCD_SHARE/done" ] && return
  argocd=$(module_dir "$ARGOCD_MODULE@$ARGOCD")
  rm -rf "$ARGOCD_SHARE"; mkdir -p "$ARGOCD_SHARE/hack"
  "$BIN/kubectl" kustomize "$argocd/manifests/crds" >"$ARGOCD_SHARE/crds.yaml"
  cp "$argocd"/hack/{git-ask-pass,git-verify-wrapper,gpg-wrapper}.sh "$ARGOCD_SHARE/hack/"; chmod -R u+wx "$ARGOCD_SHARE/hack"
  touch "$ARGOCD_SHARE/done"
}

# What a world needs besides programs, kept so that up needs neither Go nor the module cache.
build_share() {
  local version kwok
  version="$KWOK_VERSION $(cksum <"$HERE/manifests/stages.yaml")"
  [ "$(cat "$SHARE/version" 2>/dev/null)" = "$version" ] && return
  kwok=$(module_dir "sigs.k8s.io/kwok@$KWOK_VERSION")
  mkdir -p "$SHARE"
  # kwok's own stages, with its pod-ready told to leave alone the pods that our pod-broken takes.
  local broken; broken=$(sed -n "s/.*{key: '\(.*\"broken\".*\)', operator: Exists}.*/\1/p" "$HERE/manifests/stages.yaml")
  { "$BIN/kubectl" kustomize "$kwok/kustomize/stage/fast" | KEY=$broken awk '
      /^  name: /                    { ready = $2 == "pod-ready" }
                                     { print }
      /matchExpressions:/ && ready   { print "    - {key: \047" ENVIRON["KEY"] "\047, operator: DoesNotExist}" }'
    echo ---
    cat "$HERE/manifests/stages.yaml"; } >"$SHARE/stages.yaml"
  echo "$version" >"$SHARE/version"
}

build() {
  check_line
  install_packages
  mkdir -p "$BIN"
  exec 8>"$ROOT/build.lock"
  flock -w 3600 8 || die "another build in $ROOT doesn't end"
  local k
  for k in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
    from_module "$k" kubernetes "$KUBERNETES_VERSION" "k8s.io/kubernetes/cmd/$k"
  done
  # Argo CD is told its version, which clients ask for.
  CGO_ENABLED=0 from_module "argocd-$ARGOCD" "argocd/${ARGOCD#v}" "$ARGOCD" "$ARGOCD_MODULE/cmd" "-X $ARGOCD_MODULE/common.version=${ARGOCD#v}"
  build_gitea
  from_install kwok "$KWOK_VERSION" sigs.k8s.io/kwok/cmd/kwok
  from_install kustomize "$KUSTOMIZE_VERSION" sigs.k8s.io/kustomize/kustomize/v5
  from_install helm "$HELM_VERSION" helm.sh/helm/v3/cmd/helm
  build_line
  build_share
  exec 8>&-
}
