// Package argocd looks at one Argo CD over the Kubernetes API of the cluster it
// runs in: it lists and watches Applications (and, where an ApplicationSet owns
// one, ApplicationSets), keeps of each the few fields of verification.App, and
// says when one of those changed. It asks for refreshes and syncs by patching
// the Application, which is all it ever writes.
//
// What a state means for a commit is decided in verification; what to do about
// it, elsewhere. The package imports nothing of Argo CD.
//
// The invariant: what Get and List return is what the API server said last, in
// its order, and Ready tells when that may no longer be so.
//
// Objects are decoded one at a time from the stream of a paged list and only
// their few fields are kept, so that ten thousand Applications cost tens of
// megabytes and a list costs little more. A list asks for the newest state
// (resourceVersion unset): at resourceVersion 0, which client-go's reflector
// starts with, the server ignores the limit and sends everything at once.
package argocd
