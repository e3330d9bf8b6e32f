// Package provenance makes and checks statements: what was verified in an environment, which images ran there, who approved
// it and by which gates. A [Record] becomes two statements of in-toto's over the same subjects, signed as DSSE envelopes.
//
// It is pure: no file, no network and no clock; times are arguments. A statement counts as a whole or not at all: what is
// signed is read only after its signature was verified, and nothing of a refused one is returned.
package provenance
