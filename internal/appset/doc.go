// Package appset turns ApplicationSets into targets: which Argo CD Applications
// a commit stands for, which component and environment each belongs to, and
// where each reads its manifests.
//
// It is the only package that imports Argo CD's generator packages, and it
// runs the same functions as the ApplicationSet controller does, over a commit
// instead of a checkout and over snapshots instead of a cluster. Which files a
// target's sources pull in is not known here (package manifest/deps knows), nor is
// anything about the live Applications.
//
// The invariant: what is returned is what the controller would create from
// the same inputs, or there is a [Problem] that says why not. A set that can
// only be understood in part yields no targets at all.
package appset
