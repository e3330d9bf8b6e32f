package appset

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
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

	scope       *Scope // nil: everything may be read
	scopeDigest string
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
		add(c.Name, strings.TrimRight(c.Server, "/"))
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

// validateTargets applies the controller's rules after generation: later duplicates
// by name, Applications of missing projects and of unknown destinations are
// dropped. The problems say which.
func (s *snapshot) validateTargets(set *appSet, all []*builtTarget) setOutcome {
	if hasMerge(&set.spec) {
		// A merge's order is random, there as here; ours must not be.
		slices.SortStableFunc(all, compareBuilt)
	}
	o := setOutcome{targets: make([]Target, 0, len(all))}
	problem := func(m *builtTarget, text string) {
		o.problems = append(o.problems, set.newProblem(m.target.Name, text))
	}
	kept := make([]*builtTarget, 0, len(all))
	var refused []ScopeKey
	seen, dropped := make(map[string]bool, len(all)), map[string]bool{}
	for _, m := range all {
		err := s.checkTarget(m, set.version)
		if seen[m.target.Name] {
			err = set.version.explainDuplicate()
		}
		seen[m.target.Name] = true
		if err != nil {
			problem(m, err.Error())
			refused = append(refused, targetKeys(s.name, &m.target)...)
			refused = append(refused, ScopeKey{Kind: scopeProject, ArgoCD: s.name, Name: m.project})
			dropped[m.target.Namespace+"/"+m.target.Name] = true
			continue
		}
		for _, text := range m.problems {
			problem(m, text)
		}
		kept = append(kept, m)
	}
	if set.version.dropsDuplicates() {
		kept = slices.DeleteFunc(kept, func(m *builtTarget) bool { return dropped[m.target.Namespace+"/"+m.target.Name] })
	}
	slices.SortFunc(kept, func(a, b *builtTarget) int { return cmp.Compare(a.target.Name, b.target.Name) })
	for _, m := range kept {
		o.targets = append(o.targets, m.target)
	}
	o.notes = set.noteLeftovers(kept)
	if len(refused) > 0 {
		o.scope = &setScope{keys: refused}
	}
	return o
}

// compareBuilt orders by name, and within one by parameters.
func compareBuilt(a, b *builtTarget) int {
	if c := cmp.Compare(a.target.Name, b.target.Name); c != 0 {
		return c
	}
	// What JSON can't write down is equal: the first that came stays first.
	ra, _ := json.Marshal(a.params)
	rb, _ := json.Marshal(b.params)
	return bytes.Compare(ra, rb)
}

// explainDuplicate says what becomes of several Applications of one name.
func (v Version) explainDuplicate() error {
	if v.dropsDuplicates() {
		return errors.New("the set generates more than one Application of this name; Argo CD creates none of them")
	}
	return errors.New("the set generates more than one Application of this name; Argo CD keeps the first only")
}

func (s *snapshot) checkTarget(m *builtTarget, v Version) error {
	if s.projects != nil && !s.projects[m.project] && s.scope.has(ScopeKey{Kind: scopeProject, ArgoCD: s.name, Name: m.project}) {
		return fmt.Errorf("its project %q does not exist", m.project)
	}
	switch name, server := m.target.Cluster, m.target.Server; {
	case name != "" && server != "":
		return fmt.Errorf("its destination has both a name (%s) and a server (%s): Argo CD takes one", name, server)
	case name != "":
		return s.checkDestination(name, s.servers)
	case server != "" && v.needsDestination():
		if s.clustersKnown && len(s.names[strings.TrimRight(server, "/")]) == 0 && s.isInScope(server) {
			return fmt.Errorf("its destination %s is not a cluster that Argo CD knows", server)
		}
	case server != "":
		return s.checkDestination(server, s.names)
	case v.needsDestination():
		return errors.New("it has no destination: Argo CD wants a cluster's server or name")
	}
	return nil
}

// isInScope says that it may be told whether a destination is a cluster.
func (s *snapshot) isInScope(dest string) bool {
	return s.scope.has(ScopeKey{Kind: scopeDestination, ArgoCD: s.name, Name: strings.TrimRight(dest, "/")})
}

// checkDestination checks that a destination names exactly one cluster.
func (s *snapshot) checkDestination(dest string, in map[string][]string) error {
	if !s.clustersKnown || !s.isInScope(dest) {
		return nil
	}
	switch n := len(in[dest]); {
	case n == 1 && in[dest][0] != "": // Argo CD finds no cluster that has no name
		return nil
	case n <= 1:
		return fmt.Errorf("its destination %s is not a cluster that Argo CD knows", dest)
	default:
		return fmt.Errorf("its destination %s is the name of %d clusters", dest, n)
	}
}
