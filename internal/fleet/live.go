package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"io/fs"
	"slices"
)

// Live is what is known of the running Argo CDs' own objects.
type Live struct {
	// Sets are all ApplicationSet objects.
	Sets []LiveSet
	// Unknown says, by an Argo CD's name, why its objects are not known now.
	// While an Argo CD is in it, none of its ApplicationSets counts as missing.
	Unknown map[string]string
	// Applications lists the whole live Applications that an ApplicationSet
	// owns, by owner reference.
	Applications func(ctx context.Context, argocd, namespace, set string) ([]json.RawMessage, error)
	// Selected lists the whole live Applications of a namespace that a label
	// selector, as kubectl takes it, selects; an empty one selects all.
	Selected func(ctx context.Context, argocd, namespace, selector string) ([]json.RawMessage, error)
}

// LiveSet is one ApplicationSet object of a running Argo CD.
type LiveSet struct {
	ArgoCD    string // the Argo CD's name in the server's file
	Namespace string
	Name      string
	Object    json.RawMessage // the whole object; its status is not looked at
}

// Elsewhere is another repository, or another revision of this one, at a commit.
type Elsewhere struct {
	Tree   fs.FS
	Commit string // in full
}

// liveKey is what an answer depends on of Live.
type liveKey struct {
	Connected bool
	Sets      []LiveSet
	Unknown   map[string]string
}

// key identifies the objects without their order.
func (l *Live) key() liveKey {
	if l == nil {
		return liveKey{}
	}
	sets := slices.Clone(l.Sets)
	slices.SortFunc(sets, func(a, b LiveSet) int {
		return cmp.Or(cmp.Compare(a.ArgoCD, b.ArgoCD), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return liveKey{Connected: true, Sets: sets, Unknown: l.Unknown}
}
