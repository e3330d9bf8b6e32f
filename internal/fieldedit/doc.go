// Package fieldedit knows the carried fields of an environment. It finds them, reads them as a
// release and sets them byte-exactly. It composes the edits that carry a release into an
// environment, and the edits that take it back.
//
// It is pure: an fs.FS (a commit) and bytes come in, values come out. It doesn't know Git, forges,
// Argo CD, or which target reads which file. Callers give it the roots it works under, and it
// writes nothing.
//
// The invariant: an edit replaces the bytes of the scalars it names and nothing else. Every edit is
// parsed again and compared with the document it came from, as a tree, before it is returned. An
// edit that can't surely be made is refused with file, line and reason, and no file is half-edited.
//
// All functions may be called concurrently; none keeps state between calls.
package fieldedit
