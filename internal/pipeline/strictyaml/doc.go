// Package strictyaml decodes YAML into Go structs by their yaml tags and takes nothing that the
// struct doesn't have. An unknown or repeated key, a value of another type than expected, an empty
// value and a merge of the wrong thing are errors. Each has its file, line and column, and the key
// that was probably meant. All errors of a document are reported at once.
//
// Documents come from outside, so everything is bounded: bytes, nesting, the number of documents,
// and the number of values after aliases are expanded.
//
// The packages that own a file's types know its meaning (defaults beyond a type's own, rules
// between keys). They report through [Document.Errorf], so that their errors carry positions too.
// The invariant: no error of this package ever prints a value, because a value may be a secret;
// keys, paths, types and the names of variables only.
//
// yaml.v3's own strictness (KnownFields) was tried in place of the decoder here, over the 32
// mistakes of TestErrors. 7 go unnoticed (a number, a date or a boolean where text is wanted, a
// tag, nothing given), and 8 messages print the value. It knows neither paths, nor columns, nor the
// alias at which something went wrong. It doesn't hold for nodes, in which ${NAME} is replaced, and
// has no defaults for the elements of a list.
package strictyaml
