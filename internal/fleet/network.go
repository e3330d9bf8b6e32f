package fleet

import "cmp"

// Generators says which generators that ask the network may. The zero value
// is none: they send tokens from the cluster's Secrets to addresses that the
// ApplicationSet names.
type Generators struct {
	SCMProvider bool
	PullRequest bool
	Plugin      bool
}

// ArgoCD is what is known of one Argo CD. Clusters, Projects and Globbing are
// as in [Input].
type ArgoCD struct {
	Namespace string // where it runs; empty means argocd
	Clusters  []Cluster
	Projects  []string
	Globbing  string
	// Kube reads from the cluster that it runs in, for generators that need
	// more of it than the above; nil: there is no connection.
	Kube *Kube
}

// argoCD is what is known of the Argo CD that an entry names.
func (in *Input) argoCD(name string) ArgoCD {
	if a, known := in.ArgoCDs[cmp.Or(name, in.Main)]; known {
		a.Globbing = cmp.Or(a.Globbing, GlobbingGit)
		return a
	}
	return ArgoCD{Clusters: in.Clusters, Projects: in.Projects, Globbing: in.Globbing}
}
