// Package charts fetches packed charts of Helm repositories and registries, for renderings of
// targets that deploy them.
//
// Only the repositories that the server's file lists are asked, and no other host than theirs and
// those that are listed beside them, whatever an index or a redirect says. Answers are bounded, and
// every call has a time. A packed chart is kept under its checksum, in a folder of bounded size.
// The checksum of each version is recorded, and a version that has another one by now is refused.
// Nothing is unpacked here, and the caller names who reads an index: both are for a process that
// may die of them.
//
// Helm's own downloader isn't used (helm: pkg/getter). It reads an answer into memory without a
// bound, has no context, and takes an http.Transport alone. So it can bound neither the hosts of
// redirects nor the length of an answer. A constraint of versions has semver's meaning, as with
// Helm.
package charts
