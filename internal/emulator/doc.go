// Package emulator is a world in one process, for the demo and for tests: a
// forge that answers as GitHub or as GitLab does, and an Argo CD that deploys what
// is in its repositories.
//
// The Forge has real bare repositories behind smart HTTP, the REST calls that
// Liftlock's drivers make, branch protection, reviews, statuses, three
// merge methods carried out in Git, and signed webhooks. Its answers to what
// goes wrong (404, 405, 409, 422, conditional requests, rate limits) have
// the forge's own shape and words, because those are what a driver gets wrong. Of GitHub it
// has Apps too (RegisterApp, InstallApp): their signatures are checked, installations' tokens
// end, are good for what they were asked for, and count against limits of their own. Its face
// is a choice (ForgeOptions.Face): world, Git and people are the same under both. What
// the files called wire_gitlab hold is GitLab's. githubshape and gitlabshape have the forges'
// own descriptions, against which every answer is held.
//
// The ArgoCD serves Applications over the Kubernetes list and watch API and
// follows branches of the forge's repositories: it notices, compares, syncs and
// rolls out, each after a time that Pace sets. It is no more reliable than the
// real one: right after a sync it still reports the health from before.
//
// People in a story and in tests act through methods (CommitAs, Approve,
// Comment); programs under test only ever see HTTP. Faults are injected at the
// same border.
//
// It never serves production: nothing that "liftlock serve" runs imports it. It
// knows nothing of ApplicationSets either; its Applications are given to it.
//
// The invariant: what a client is told has happened in the bare repository
// and in the memory behind it, in this order, under one lock. A client that is
// killed in the middle of a call leaves either nothing or all of its effect.
package emulator
