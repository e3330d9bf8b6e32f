#!/bin/sh
# Makes extract.json anew, from a release of GitHub's description as npm has it.
# Needs npm and Go. A newer release: write its number here, and read what the tests say.
set -eu
version=23.0.2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm pack --silent "@octokit/openapi@$version" >/dev/null
tar -xzf ./*.tgz
cd "$here"
go run ./extract -package "$work/package" -operations operations.txt -out extract.json
