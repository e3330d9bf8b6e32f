package fleet

import (
	"encoding/json"
	"fmt"
	"sort"

	corev1 "k8s.io/api/core/v1"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
	argoutil "github.com/argoproj/argo-cd/v2/util/argo"
)

// snapshot is what is known of the Argo CD that runs the sets.
type snapshot struct {
	secrets       []corev1.Secret
	clustersKnown bool
	servers       map[string][]string // by cluster name
	names         map[string][]string // by server
	projects      map[string]bool     // nil: not known

	name    string // the Argo CD's
	argocd  ArgoCD
	allowed Generators
}

func newSnapshot(clusters []Cluster, projects []string) *snapshot {
	s := &snapshot{
		secrets: clusterSecrets(clusters), clustersKnown: clusters != nil,
		servers: map[string][]string{}, names: map[string][]string{},
	}
	inCluster := false
	add := func(name, server string) {
		s.servers[name] = append(s.servers[name], server)
		s.names[server] = append(s.names[server], name)
	}
	for _, c := range clusters {
		add(c.Name, c.Server)
		inCluster = inCluster || c.Server == argov1alpha1.KubernetesInternalAPIServerAddr
	}
	if !inCluster {
		add("in-cluster", argov1alpha1.KubernetesInternalAPIServerAddr)
	}
	if projects != nil {
		s.projects = map[string]bool{}
		for _, p := range projects {
			s.projects[p] = true
		}
	}
	return s
}

// validate applies the controller's rules after generation: later duplicates
// by name, Applications of missing projects and of unknown destinations are
// dropped. The problems say which.
func (s *snapshot) validate(set *set, all []generated) (kept []generated, problems []Problem) {
	if hasMerge(&set.spec) {
		// A merge's order is random, there as here; ours must not be.
		all = sorted(all)
	}
	seen := map[string]bool{}
	for _, g := range all {
		err := s.check(&g.app)
		if seen[g.app.Name] {
			err = fmt.Errorf("the set generates more than one Application of this name; Argo CD keeps the first only")
		}
		seen[g.app.Name] = true
		if err != nil {
			problems = append(problems, Problem{File: set.file, ApplicationSet: set.spec.Name, Application: g.app.Name, Message: err.Error()})
			continue
		}
		// As the controller does before it writes the Application.
		g.app.Spec = *argoutil.NormalizeApplicationSpec(&g.app.Spec)
		kept = append(kept, g)
	}
	return kept, problems
}

func (s *snapshot) check(app *argov1alpha1.Application) error {
	if s.projects != nil && !s.projects[app.Spec.Project] {
		return fmt.Errorf("its project %q does not exist", app.Spec.Project)
	}
	switch dest := app.Spec.Destination; {
	case dest.Name != "" && dest.Server != "":
		return fmt.Errorf("its destination has both a name (%s) and a server (%s): Argo CD takes one", dest.Name, dest.Server)
	case dest.Name != "":
		return s.one(dest.Name, s.servers)
	case dest.Server != "":
		return s.one(dest.Server, s.names)
	}
	return nil
}

// one checks that a destination names exactly one cluster.
func (s *snapshot) one(dest string, in map[string][]string) error {
	if !s.clustersKnown {
		return nil
	}
	switch n := len(in[dest]); n {
	case 1:
		return nil
	case 0:
		return fmt.Errorf("its destination %s is not a cluster that Argo CD knows", dest)
	default:
		return fmt.Errorf("its destination %s is the name of %d clusters", dest, n)
	}
}

// sorted orders by name, and within one by content.
func sorted(all []generated) []generated {
	type keyed struct {
		generated
		content string
	}
	list := make([]keyed, len(all))
	for i := range all {
		content, err := json.Marshal(all[i].app)
		if err != nil {
			content = nil // can't be: it was rendered from JSON
		}
		list[i] = keyed{all[i], string(content)}
	}
	sort.SliceStable(list, func(i, j int) bool {
		if list[i].app.Name != list[j].app.Name {
			return list[i].app.Name < list[j].app.Name
		}
		return list[i].content < list[j].content
	})
	out := make([]generated, len(all))
	for i := range list {
		out[i] = list[i].generated
	}
	return out
}
