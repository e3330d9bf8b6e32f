// Package fieldpath is the grammar of addresses: how people write the place of
// a value in a YAML or JSON document, and how such a place is written back.
//
// It knows the text only. Following an address through a document, and what is
// refused on the way, belongs to the packages that read documents.
//
// The invariant: what String writes, Parse (ParsePattern) reads back as the
// same address, so that a path can be kept as text.
package fieldpath
