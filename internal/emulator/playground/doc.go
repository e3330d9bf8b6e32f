// Package playground is a world to learn in: a forge with an empty repository, and an Argo CD
// that applies the ApplicationSets which somebody pushes to it, on one machine.
//
// What the emulator lacks is here: the ApplicationSet controller. It follows the default
// branch, resolves the sets in [SetsFolder] as Argo CD's own would, and adds and removes the
// simulated Applications. The people, their tokens and all addresses are in a file that a
// shell can read ([Playground.EnvFile]).
//
// It never serves production, and everything in it but the folder ends with the process.
package playground
