// Package forge is the small neutral interface to a Git hosting service and the errors that its
// drivers return. Nothing here knows a forge by name. Every difference between GitHub, Gitea and
// the others lives in a driver below this folder and in forgetest, the contract suite that all
// drivers and the emulator pass.
package forge
