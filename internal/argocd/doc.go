// Package argocd reads one Argo CD over the Kubernetes API of the cluster it runs in, over Argo
// CD's own API (api), or both. It lists and watches Applications, keeps the few fields of
// verification.App for each, and says when one of those changed. It asks for refreshes and syncs by
// patching the Application or by the API, and writes nothing else.
//
// Beside the Applications it knows what a resolver of ApplicationSets asks of a running Argo CD:
// the ApplicationSets themselves and the names of the AppProjects. Only where that is allowed, and
// from the first request on, it also knows the clusters as their Secrets describe them, without the
// credentials. Each of these may be forbidden: then it is unknown, with the reason, and the rest
// works. A whole Application is not kept but listed anew when it is wanted (Each).
//
// By the API it also says which resources of an Application are unhealthy and what their pods say
// (UnhealthyResources). It also has Argo CD render an Application at other revisions (Manifests).
// The API's stream of changes replays nothing and loses some: it is a hint, and the list, which is
// asked for from time to time, the truth.
//
// Package verification decides what a state means for a commit; its callers decide what to do about
// it. The package imports nothing of Argo CD.
//
// The invariant: Get, List and Sets return what the API server said last, in its order. Ready and
// the errors tell when that may no longer be so.
//
// client-go's Reflector lists, watches and lists again. Its input is decoded one object at a time
// from the stream of a page, and only an object's few fields are kept. So ten thousand Applications
// cost tens of megabytes and a list costs little more (BenchmarkList10000). A list asks for the
// newest state (resourceVersion unset): at resourceVersion 0, which the Reflector would start with,
// the server ignores the limit and sends everything at once.
package argocd
