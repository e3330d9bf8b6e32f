#!/usr/bin/env bash
# gitlab.sh: hold the GitLab driver to its contract on a GitLab that you have.
#
#   GITLAB_URL=https://gitlab.example.com GITLAB_TOKEN=... GITLAB_REVIEWER_TOKEN=... GITLAB_STRANGER=mallory \
#     deploy/lab/gitlab.sh [go test's flags, such as -run 'TestLiveContract/comments']
#
# Each case makes a private project of its own, liftlock-contract-..., below the first token's account, and deletes it
# when it is over; a GitLab that deletes later keeps it for some days, marked as deleted. Where the run is killed,
# delete them by hand. Cases that need what GitLab's API can't do are skipped, and say so.
#
# Variables:
#   GITLAB_URL             its address
#   GITLAB_TOKEN           a token with the scope api, of an account that may make projects
#   GITLAB_REVIEWER_TOKEN  one of a second account, which has a public email in its profile
#   GITLAB_STRANGER        the username of a third account, an administrator neither
#   GITLAB_TEAM            a group within a group, such as acme/sre, with the second of them in it and neither of the others;
#                          both tokens' accounts must see it (default: the case about teams is skipped)
#   GITLAB_HOOKS=1         GitLab runs on this machine and may send webhooks to 127.0.0.1 (default: the cases about
#                          webhooks are skipped)
#
# Exit code: 2 when a variable is missing, otherwise go test's.
set -euo pipefail

missing=()
for name in GITLAB_URL GITLAB_TOKEN GITLAB_REVIEWER_TOKEN GITLAB_STRANGER; do
  [ -n "${!name:-}" ] || missing+=("$name")
done
if [ ${#missing[@]} -gt 0 ]; then
  printf 'gitlab.sh: set %s first; the top of %s says what they are\n' "${missing[*]}" "${BASH_SOURCE[0]}" >&2
  exit 2
fi

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export LIFTLOCK_TEST_GITLAB_URL=$GITLAB_URL LIFTLOCK_TEST_GITLAB_TOKEN=$GITLAB_TOKEN
export LIFTLOCK_TEST_GITLAB_REVIEWER_TOKEN=$GITLAB_REVIEWER_TOKEN LIFTLOCK_TEST_GITLAB_STRANGER=$GITLAB_STRANGER
export LIFTLOCK_TEST_GITLAB_TEAM=${GITLAB_TEAM:-} LIFTLOCK_TEST_GITLAB_HOOKS=${GITLAB_HOOKS:-}
exec go test ./internal/forge/gitlab -count=1 -v -timeout 60m -run '^TestLiveContract$' "$@"
