// Package argocd looks at one Argo CD over the Kubernetes API of the cluster it
// runs in, over Argo CD's own API (api), or both: it lists and watches Applications and
// keeps of each the few fields of verification.App, and says when one of those changed. It
// asks for refreshes and syncs by patching the Application or by the API, which is all it
// ever writes.
//
// Beside the Applications it knows what a resolver of ApplicationSets asks of a
// running Argo CD: the ApplicationSets themselves, the names of the AppProjects
// and, only where that is allowed and from when it is first asked, the clusters
// as their Secrets describe them, without the credentials. Each of these may be
// forbidden: then it is unknown, with the reason, and the rest works. What an
// Application is as a whole is not kept but listed anew when it is wanted (Each).
//
// By the API it also says which resources of an Application are unhealthy, and what
// their pods say (UnhealthyResources), and has Argo CD render an Application at other
// revisions (Manifests). The API's stream of changes replays nothing and
// loses some: it is a hint, and the list, which is asked for from time to time, the truth.
//
// What a state means for a commit is decided in verification; what to do about
// it, elsewhere. The package imports nothing of Argo CD.
//
// The invariant: what Get, List and Sets return is what the API server said last,
// in its order, and Ready and the errors tell when that may no longer be so.
//
// client-go's Reflector lists, watches and lists again. What it is given is decoded
// one object at a time from the stream of a page, and only an object's few fields
// are kept, so that ten thousand Applications cost tens of megabytes and a list
// costs little more (BenchmarkList10000). A list asks for the newest state
// (resourceVersion unset): at resourceVersion 0, which the Reflector would start
// with, the server ignores the limit and sends everything at once.
package argocd
