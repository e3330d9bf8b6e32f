// Package argoemulator is a simulated Argo CD 2.14 for the demo and for tests. It serves Applications
// over the list and watch API of a Kubernetes server, and resource trees, manifests and refreshes over
// Argo CD's own API, on a port of 127.0.0.1.
//
// It follows branches of repositories that it is given, notices, compares, syncs and rolls out, each
// after a time that Timings sets. It is no more reliable than the real one: right after a sync it still
// reports the health from before. Images with "broken" in their name or tag never get ready, and those
// with "late" fail after they were. Faults are injected where clients call (AppFault, FailRequests).
//
// It knows nothing of ApplicationSets: its Applications are given to it. It never serves production:
// nothing that "liftlock serve" runs imports it.
package argoemulator
