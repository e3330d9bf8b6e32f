// Package playground is a world to learn in, on one machine: a forge with an empty repository, a
// registry of images, and an Argo CD that applies the ApplicationSets that its user pushes to it.
//
// The emulator lacks the ApplicationSet controller, which is here. It follows the default branch,
// resolves the sets in [SetsFolder] as Argo CD's own would, and adds and removes the simulated
// Applications. The people, their tokens and all addresses are in a file that a shell can read
// ([Playground.EnvFile]).
//
// It never serves production, and everything in it but the folder ends with the process.
package playground
