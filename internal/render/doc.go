// Package render turns a target's sources into Kubernetes objects, as Argo
// CD's repo server would from the same files, and says what changed between
// two renderings.
package render
