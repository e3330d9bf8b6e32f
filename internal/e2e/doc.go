// Package e2e tells Liftlock's stories in the real world. It runs the `liftlock serve` program
// against a real Gitea and a real Argo CD over a real Kubernetes API, which deploy/lab brings up.
// `make e2e` runs it; everything is behind the build tag e2e.
//
// A story is one test. It makes its own repository, its own ApplicationSets and namespaces, and
// starts its own server, so stories run side by side and twice in a row. Results are read where
// people would see them: in pull requests, in Git, in the Applications, and through the API. A
// story that wants to show that something does not happen waits for a later event instead, never
// for a time.
//
// The world itself is not made here. It uses only names, the API's types, and sets at random of
// other packages.
package e2e
