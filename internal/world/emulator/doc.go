// Package emulator is a world in one process, for the demo and for tests. It has a forge that
// answers as GitHub or as GitLab does, and an Argo CD (argoemulator) that deploys from its repositories.
//
// The Forge has real bare repositories behind smart HTTP, the REST calls that Liftlock's drivers
// make, branch protection, reviews and statuses. It carries out three merge methods in Git, and
// signs its webhooks. Its answers to faults (404, 405, 409, 422, conditional requests, rate limits)
// have the forge's own shape and words, because those are what a driver gets wrong. It also has
// GitHub's Apps (RegisterApp, InstallApp). Their signatures are checked. Installations' tokens end,
// are good for the rights that were asked for, and count against limits of their own. Its face is a
// choice (ForgeOptions.Face): world, Git and people are the same under both. The files called
// wire_gitlab are GitLab's. githubshape and gitlabshape have the forges' own descriptions, against
// which every answer is held.
//
// People in a story and in tests act through methods (CommitAs, Approve, Comment); programs under
// test only ever see HTTP. Faults are injected at the same border.
//
// It never serves production: nothing that "liftlock serve" runs imports it.
//
// The invariant: what a client is told has happened in the bare repository and in the memory behind
// it, in this order, under one lock. A client that is killed in the middle of a call leaves either
// nothing or all of its effect.
package emulator
