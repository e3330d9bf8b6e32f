#!/bin/sh
# Makes examples.jsonl.gz anew: every payload of npm's @octokit/webhooks-examples, one a line,
# with its event and the release of GitHub that it is of. Needs npm and jq.
set -eu
version=7.6.1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm pack --silent "@octokit/webhooks-examples@$version" >/dev/null
tar -xzf ./*.tgz
for index in package/*/index.json; do
	jq -c --arg release "$(basename "$(dirname "$index")")" \
		'.[] | .name as $event | .examples[] | {release: $release, event: $event, payload: .}' "$index"
done | jq -c -s 'sort_by(.event, (.payload | tostring), .release)[]' | gzip -9n >"$here/examples.jsonl.gz"
