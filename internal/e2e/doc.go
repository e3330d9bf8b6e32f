// Package e2e tells Liftlock's stories in the real world: the `liftlock serve`
// program against a real Gitea and a real Argo CD over a real Kubernetes API,
// which deploy/lab brings up. `make e2e` runs it; everything is behind the build
// tag e2e.
//
// A story is one test: it makes its own repository, its own ApplicationSets and
// namespaces, and starts its own server, so stories run side by side and twice in
// a row. What happened is read where people would see it: in pull requests, in
// Git, in the Applications, and through the API. A story that wants to show that
// something does not happen waits for something that happens later in its stead,
// never for a time.
//
// The world itself is not made here, and no other package's internals are used but
// names, the API's types, and sets at random.
package e2e
