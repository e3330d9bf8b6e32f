# What the job templates beside this file run: it clones the fleet's repository and releases into it.
# Everything comes from the environment, so that no text of a build becomes a command.
set -eu
fleet=$(mktemp -d)
trap 'rm -rf "$fleet"' EXIT
host=$(printf '%s' "$REPOSITORY" | sed -E 's#^([a-z]+://[^/]*/).*#\1#')
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="http.$host.extraHeader"
GIT_CONFIG_VALUE_0="Authorization: Basic $(printf '%s:%s' "$USERNAME" "$TOKEN" | base64 | tr -d '\n')"
export GIT_CONFIG_VALUE_0 GIT_TERMINAL_PROMPT=0
export GIT_AUTHOR_NAME="$COMMITTER_NAME" GIT_AUTHOR_EMAIL="$COMMITTER_EMAIL"
export GIT_COMMITTER_NAME="$COMMITTER_NAME" GIT_COMMITTER_EMAIL="$COMMITTER_EMAIL"
git clone --quiet --no-checkout -- "$REPOSITORY" "$fleet"
set -f # images and charts are words, one a line or with spaces between, and no globs
set --
for image in $IMAGES; do set -- "$@" --image "$image"; done
for chart in $CHARTS; do set -- "$@" --chart "$chart"; done
if [ -n "$AUTHOR" ]; then set -- "$@" --co-author "$AUTHOR"; fi
liftlock release --repo "$fleet" --into "$INTO" "$@" -- "$COMPONENT"
