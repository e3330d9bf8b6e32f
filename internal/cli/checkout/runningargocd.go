package checkout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// Connection says how to reach a running Argo CD. It is only read.
type Connection struct {
	Kubeconfig, Context string   // empty: what kubectl would use
	Namespaces          []string // with Applications and ApplicationSets; the first is Argo CD's own
	Clusters            bool     // its cluster Secrets are read too, without their credentials
	API                 API      // asked instead of the cluster's API server; without URL it isn't
}

// API is how Argo CD's own API is reached. It tells of the clusters too; where Connection
// doesn't insist on them, as far as the token may see them.
type API struct {
	URL, Token string
	Source     string   // where people said both, for what is wrong with them
	CAFile     string   // authorities besides the system's; empty: none
	Insecure   bool     // Argo CD's certificate isn't checked
	Projects   []string // whose Applications are asked for; none: all
}

// Running is an Argo CD as it was when it was asked.
type Running struct {
	watcher   *argocd.Watcher
	namespace string
	liveState *argocd.SetsAndProjects
	clusters  []appset.Cluster // nil: not known
	// clustersErr is why they aren't, where nobody insists on them.
	clustersErr error
}

// Connect asks a running Argo CD for its ApplicationSets, its projects and,
// where that is wanted, its clusters.
func Connect(ctx context.Context, c Connection) (*Running, error) {
	o := argocd.Options{Name: "of this kubeconfig", Kubeconfig: c.Kubeconfig, Context: c.Context, Namespaces: c.Namespaces,
		Clusters: c.Clusters, Refresh: argocd.RefreshOff}
	if c.API.URL != "" {
		ca, err := api.ReadCAFile(c.API.CAFile)
		if err != nil {
			return nil, err
		}
		if o.API, err = api.New(api.Options{URL: c.API.URL, Token: c.API.Token, CA: ca, Insecure: c.API.Insecure,
			Source: c.API.Source}); err != nil {
			return nil, fmt.Errorf("%s: %w", c.API.Source, err)
		}
		o.Name, o.APIAlone, o.Projects, o.Clusters = "of this address", true, c.API.Projects, true
	}
	w, err := argocd.New(o)
	var unread *argocd.KubeconfigError
	if errors.As(err, &unread) {
		return nil, fmt.Errorf("%w; name one with --kubeconfig and --context, or ask Argo CD itself with --argocd-url", err)
	}
	if err != nil {
		return nil, err
	}
	r := &Running{watcher: w, namespace: c.Namespaces[0]}
	if r.liveState, err = w.ListSetsAndProjects(ctx); err != nil {
		return nil, err
	}
	if o.Clusters {
		found, err := w.Clusters(ctx)
		if err != nil && c.Clusters {
			return nil, err
		}
		if err != nil {
			r.clustersErr = err
			return r, nil
		}
		r.clusters = []appset.Cluster{}
		for _, f := range found {
			r.clusters = append(r.clusters, appset.Cluster(f))
		}
	}
	return r, nil
}

// Known is what is known of Argo CD besides the checkout.
type Known struct {
	Clusters []appset.Cluster // nil: not known
	// ClustersFile is the file that Clusters came from, absolute; "" where they didn't come from one.
	ClustersFile string
	Placements   *appset.Placements // nil: not known
	Globbing     string             // how git file generators match paths; "" is the controller's default
	Version      appset.Version     // not known: what Running shows, if that is known

	Running *Running // nil: no connection
	ArgoCD  string   // the pipelines' name of the Argo CD that Running is; "" where they name one at most

	given []appset.LiveSet // ApplicationSets that were named, as if they ran; none with Running
}

// uncheckedNotes say what could not be asked, and what follows from that.
func (k *Known) uncheckedNotes() []appset.Problem {
	if k.Running == nil {
		return nil
	}
	var out []appset.Problem
	if err := k.Running.liveState.ProjectsErr; err != nil {
		out = append(out, appset.Problem{Message: fmt.Sprintf("whether the Applications' projects exist is not checked: %v", err)})
	}
	if err := k.Running.clustersErr; err != nil && k.Clusters == nil {
		out = append(out, appset.Problem{Message: fmt.Sprintf("the clusters are not known: %v", err)})
	}
	return out
}

// settledVersion is the version that was said, or else the line that the running Argo CD is of.
func (k *Known) settledVersion() appset.Version {
	if k.Version.IsKnown() || k.Running == nil {
		return k.Version
	}
	v, err := appset.ParseVersion(k.Running.liveState.Line)
	if err != nil {
		return appset.Version{} // it could not be found out
	}
	return v
}

// resolverInput is a resolver's view of what is known, for some pipelines of a tree.
func (k *Known) resolverInput(tree fs.FS, pipes []*pipeline.Pipeline) (*knownInput, error) {
	in, err := k.argoCDInput(pipes)
	if err != nil {
		return nil, err
	}
	out := &knownInput{Input: in}
	out.readClusters(tree, pipes)
	return out, nil
}

// argoCDInput is resolverInput without what the tree itself says.
func (k *Known) argoCDInput(pipes []*pipeline.Pipeline) (appset.Input, error) {
	in := appset.Input{Clusters: k.Clusters, Placements: k.Placements, Globbing: k.Globbing, Version: k.Version}
	if k.Running == nil {
		if len(k.given) > 0 {
			in.Live = &appset.Live{Sets: k.given}
		}
		return in, nil
	}
	names := argoCDs(pipes)
	main := k.ArgoCD
	if named := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "" }); main == "" && len(named) > 0 {
		if len(named) < len(names) {
			named = append(named, "and the server's first one")
		}
		if len(named) > 1 {
			return in, fmt.Errorf("the pipelines name several Argo CDs (%s): say with --argocd which one this connection is to",
				strings.Join(named, ", "))
		}
		main = named[0]
	}
	clusters := k.Clusters
	if k.Running.clusters != nil && clusters == nil { // a file says more
		clusters = k.Running.clusters
	}
	in.Main = main
	in.ArgoCDs = map[string]appset.ArgoCD{main: {Namespace: k.Running.namespace, Clusters: clusters, Projects: k.Running.liveState.Projects,
		Globbing: k.Globbing, Version: k.settledVersion()}}
	in.Live = k.Running.liveObjects(main, names)
	return in, nil
}

// argoCDs are the names of Argo CDs that pipelines use, sorted.
func argoCDs(pipes []*pipeline.Pipeline) []string {
	var out []string
	for _, p := range pipes {
		for i := range p.Spec.ApplicationSets {
			out = append(out, p.Spec.ApplicationSets[i].ArgoCDName())
		}
		for i := range p.Spec.Applications {
			out = append(out, p.Spec.Applications[i].ArgoCDName())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// liveObjects is what the resolver may know of the running objects; names are all
// Argo CDs that it may ask for.
func (r *Running) liveObjects(name string, names []string) *appset.Live {
	l := &appset.Live{
		Unknown: map[string]string{},
		Applications: func(ctx context.Context, _, namespace, set string) ([]json.RawMessage, error) {
			return r.watcher.Owned(ctx, namespace, set)
		},
		Selected: func(ctx context.Context, _, namespace, selector string) ([]json.RawMessage, error) {
			return r.watcher.Selected(ctx, namespace, selector)
		},
	}
	if err := r.liveState.SetsErr; err != nil {
		l.Unknown[name] = err.Error()
	}
	for _, n := range names {
		if n != name && n != "" {
			l.Unknown[n] = "the connection is to " + cmp.Or(name, "another one")
		}
	}
	for _, s := range r.liveState.Sets {
		l.Sets = append(l.Sets, appset.LiveSet{ArgoCD: name, Namespace: s.Namespace, Name: s.Name, Object: s.Object})
	}
	return l
}

// Differences compares what the ApplicationSets generate with the Applications that run. Sets that
// could not be resolved are in the answer, and are not compared.
func (r *Repository) Differences(ctx context.Context, q Query) (*appset.Differences, *Resolution, error) {
	t, err := r.At(ctx, q.Rev)
	if err != nil {
		return nil, nil, err
	}
	a := &Resolution{Tree: t.Name, Notes: q.Known.uncheckedNotes()}
	g, pipes, err := r.selectPipelines(ctx, t, q, a)
	if err != nil {
		return nil, nil, err
	}
	known, err := q.Known.resolverInput(t.FS, pipes)
	if err != nil {
		return nil, nil, err
	}
	if err := r.refuseUnread(ctx, g, t, known, pipes); err != nil {
		return nil, nil, err
	}
	a.Problems = append(a.Problems, known.problems...)
	// All sets in one: what two pipelines take from one set differs once.
	in := known.forPipeline(mergePipelines(pipes, known.Main))
	f, err := r.resolvePipeline(ctx, appset.New(appset.Options{}), g, t, in, true)
	if err != nil {
		return nil, nil, err
	}
	c, err := appset.NewComparison(in, f)
	if err != nil {
		return nil, nil, err
	}
	if err := q.Known.Running.watcher.Each(ctx, func(raw json.RawMessage) error { return c.CompareLive(in.Main, raw) }); err != nil {
		return nil, nil, err
	}
	d := c.Differences()
	for _, list := range [][]appset.Difference{d.Missing, d.Extra, d.Different} {
		for i := range list {
			list[i].File = cmp.Or(g.names[list[i].File], list[i].File)
		}
	}
	a.addTargets("", g.restoreNames(f))
	return d, a, nil
}

// mergePipelines is a pipeline of all sets that one Argo CD runs.
func mergePipelines(pipes []*pipeline.Pipeline, argocd string) *pipeline.Pipeline {
	out := &pipeline.Pipeline{}
	seen := map[string]bool{}
	for _, p := range pipes {
		out.File, out.Spec.Clusters = cmp.Or(out.File, p.File), cmp.Or(out.Spec.Clusters, p.Spec.Clusters)
		for _, e := range p.Spec.ApplicationSets {
			e.Component, e.Environment = "", ""
			key := cmp.Or(e.Path, "\x00\x00"+e.Kustomize)
			if e.Helm != nil {
				key = fmt.Sprintf("\x00\x00%v", *e.Helm)
			}
			if e.Live != nil {
				key = "\x00" + e.Live.Namespace + "/" + e.Live.Name
			}
			if name := e.ArgoCDName(); name != "" && name != argocd || seen[key] {
				continue
			}
			seen[key] = true
			out.Spec.ApplicationSets = append(out.Spec.ApplicationSets, e)
		}
	}
	return out
}
