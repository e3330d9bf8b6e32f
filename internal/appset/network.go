package appset

import (
	"cmp"
	"errors"
	"fmt"
	"maps"

	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argoproj/argo-cd/v2/applicationset/generators"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// Generators says which generators that ask the network may. The zero value
// is none: they send tokens from the cluster's Secrets to addresses that the
// ApplicationSet names.
type Generators struct {
	SCMProvider bool
	PullRequest bool
	Plugin      bool
}

// defaultNamespace is where Argo CD's own manifests put it.
const defaultNamespace = "argocd"

// ArgoCD is what is known of one Argo CD. Clusters, Projects, Globbing and Version are
// as in [Input].
type ArgoCD struct {
	Namespace string // where it runs; empty means argocd
	Clusters  []Cluster
	Projects  []string
	Globbing  string
	Version   Version
	Policy    ControllerPolicy
	// Placements are as in [Input].
	Placements *Placements
	// Kube reads from the cluster that it runs in, for generators that need
	// more of it than the above; nil: there is no connection.
	Kube *Kube
}

// argoCD is what is known of the Argo CD that an entry names.
func (in *Input) argoCD(name string) ArgoCD {
	a, known := in.ArgoCDs[cmp.Or(name, in.Main)]
	if !known {
		a = ArgoCD{Clusters: in.Clusters, Projects: in.Projects, Globbing: in.Globbing, Version: in.Version}
	}
	if a.Placements == nil {
		a.Placements = in.Placements
	}
	a.Namespace, a.Globbing = cmp.Or(a.Namespace, defaultNamespace), cmp.Or(a.Globbing, GlobbingGit)
	return a
}

// newSnapshots makes one for every Argo CD that the pipeline names, by the
// name that its entries use.
func newSnapshots(in *Input) map[string]*snapshot {
	out := map[string]*snapshot{}
	scope, _ := in.Scope.digest() // strings can be written down
	for i := range in.Pipeline.Spec.ApplicationSets {
		name := in.Pipeline.Spec.ApplicationSets[i].ArgoCDName()
		if out[name] == nil {
			a := in.argoCD(name)
			s := newSnapshot(a.Version.exposedAnnotations(a.Clusters), a.Projects)
			s.name, s.argocd, s.allowed = cmp.Or(name, in.Main), a, in.Generators
			s.scope, s.scopeDigest = in.Scope, scope
			out[name] = s
		}
	}
	return out
}

// checkGenerators says why a set's generators can't be run with what is known, if so.
func (s *snapshot) checkGenerators(set *argov1alpha1.ApplicationSet) error {
	var err error
	walkGenerators(set, func(g *argov1alpha1.ApplicationSetGenerator, _ bool) {
		if err == nil {
			err = s.checkGenerator(g)
		}
	})
	return err
}

func (s *snapshot) checkGenerator(g *argov1alpha1.ApplicationSetGenerator) error {
	network := func(kind string, on bool) error {
		switch {
		case !on:
			return fmt.Errorf("its %s generator asks the network, and such generators are off: the server's file turns them on with "+
				"generators.%s; on the command line "+
				"no such generator is asked, and its Applications can be taken as they run, by applications: [{live: {selector: …}}] and "+
				"--clusters live", kind, kind)
		case s.argocd.Kube == nil:
			return fmt.Errorf("its %s generator needs Secrets and ConfigMaps of the cluster that Argo CD runs in, and there is no "+
				"connection to it", kind)
		}
		return nil
	}
	switch {
	case g.SCMProvider != nil:
		return network("scmProvider", s.allowed.SCMProvider)
	case g.PullRequest != nil:
		return network("pullRequest", s.allowed.PullRequest)
	case g.Plugin != nil:
		return network("plugin", s.allowed.Plugin)
	case g.ClusterDecisionResource != nil && s.argocd.Kube == nil && s.argocd.Placements == nil:
		return errors.New("its clusterDecisionResource generator needs a ConfigMap and a resource of the cluster that Argo CD runs in, " +
			"and there is no connection to it; " +
			"on the command line --placements takes a file of them, as kubectl get placementdecisions -o yaml prints it")
	case (g.Clusters != nil || g.ClusterDecisionResource != nil) && !s.clustersKnown:
		return errors.New("it generates from Argo CD's clusters, and those are not known here: argocd[].clusters in the server's file " +
			"says where from; " +
			"on the command line --clusters does, or clusters: in the pipeline file, and liftlock init --clusters-example prints a file " +
			"to begin with")
	}
	return nil
}

// newGenerators are the library's generators over the snapshot, or their replacements. The matrix
// is ours, git generators reuse earlier results where they can, and generators that need more than
// the snapshot has ask through a.
func (s *snapshot) newGenerators(g *generatorRun, a *generatorAccess) (client.Client, map[string]generators.Generator) {
	namespace := s.argocd.Namespace
	c := &snapshotClient{secrets: s.secrets, projects: s.projects, kube: s.argocd.Kube, namespace: namespace}
	clientset := &snapshotClientset{secrets: s.secrets, kube: s.argocd.Kube, placements: s.argocd.Placements}
	var dyn dynamic.Interface
	if s.argocd.Kube != nil {
		dyn = s.argocd.Kube.dynamic
	}
	scm := generators.NewSCMConfig("", nil, true, appCredentials{c}, false)
	asking := func(kind string, g generators.Generator) generators.Generator {
		return &cachedGenerator{Generator: g, kind: kind, argocd: s.name, access: a}
	}
	terminal := map[string]generators.Generator{
		"List": &listGenerator{generators.NewListGenerator()},
		"Clusters": &clustersGenerator{generators.NewClusterGenerator(c, g.ctx, clientset, namespace), g.render,
			g.version, g.scope},
		"Git":                     newGitGenerator(g, namespace, false),
		"SCMProvider":             asking("scmProvider", generators.NewSCMProviderGenerator(c, scm)),
		"ClusterDecisionResource": asking("clusterDecisionResource", generators.NewDuckTypeGenerator(g.ctx, dyn, clientset, namespace)),
		"PullRequest":             asking("pullRequest", generators.NewPullRequestGenerator(c, scm)),
		"Plugin":                  asking("plugin", generators.NewPluginGenerator(c, g.ctx, clientset, namespace)),
	}
	if s.argocd.Kube == nil && s.argocd.Placements != nil {
		terminal["ClusterDecisionResource"] = &placementGenerator{terminal["ClusterDecisionResource"], g.ctx, clientset,
			s.argocd.Placements, namespace}
	}
	fresh := maps.Clone(terminal)
	fresh["Git"] = newGitGenerator(g, namespace, true)
	return c, addCombiningGenerators(g, terminal, fresh)
}

// addCombiningGenerators adds the combining generators, which nest each other once. A merge
// writes into what its children give, which those in fresh give to nobody else.
func addCombiningGenerators(g *generatorRun, terminal, fresh map[string]generators.Generator) map[string]generators.Generator {
	nested := maps.Clone(terminal)
	nested["Matrix"], nested["Merge"] = newMatrixGenerator(g, terminal, false), newMergeGenerator(g, terminal, fresh, false)
	merged := maps.Clone(fresh)
	merged["Matrix"], merged["Merge"] = newMatrixGenerator(g, fresh, true), newMergeGenerator(g, fresh, fresh, true)
	out := maps.Clone(terminal)
	out["Matrix"], out["Merge"] = newMatrixGenerator(g, nested, false), newMergeGenerator(g, terminal, merged, false)
	return out
}
