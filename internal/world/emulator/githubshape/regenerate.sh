#!/bin/sh
# Makes extract.json and extract.graphql anew, from releases of GitHub's description of its API and
# of its GraphQL schema as npm has them.
# Needs npm and Go. A newer release: write its number here, and read what the tests say.
set -eu
version=23.0.2
graphql=15.26.1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for npm in "openapi@$version" "graphql-schema@$graphql"; do
	mkdir "${npm%@*}"
	tar -xzf "$(npm pack --silent "@octokit/$npm")" -C "${npm%@*}"
done
cd "$here"
go run ./extract -package "$work/openapi/package" -operations operations.txt -out extract.json
go run ./extract/graphql -package "$work/graphql-schema/package" -fields graphql-fields.txt -out extract.graphql
