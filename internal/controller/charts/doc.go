// Package charts fetches packed charts of Helm repositories and registries, for renderings of
// targets that deploy them.
//
// Only the repositories that the server's file lists are asked, and no other host than theirs and
// those that are listed beside them, whatever an index or a redirect says. Answers are bounded, and
// every call has a time. A packed chart is kept under its checksum, in a folder of bounded size; which
// checksum a version has is written down, and a version that has another one by now is refused.
// Nothing is unpacked here, and an index is read by whom the caller says: both are for a process that
// may die of them.
//
// Helm's own downloader isn't used (helm: pkg/getter): it reads an answer into memory without a bound, has
// no context, and takes an http.Transport alone, so that neither the hosts of redirects nor the length
// of an answer can be held. What a constraint of versions means is semver's, as it is Helm's.
package charts
