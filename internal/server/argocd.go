package server

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/server/config"
)

// argocdConnection is one Argo CD of the server's file with what reaches it.
type argocdConnection struct {
	config  config.ArgoCD
	version appset.Version // as the file says; not known: what the watcher finds
	watcher *argocd.Watcher
	kube    *appset.Kube
}

// newArgoCD builds what reaches one Argo CD. Nothing is dialled.
func (s *Server) newArgoCD(a config.ArgoCD) (*argocdConnection, error) {
	o, err := argocdOptions(a)
	if err != nil {
		return nil, fmt.Errorf("argocd %s: %w", a.Name, err)
	}
	if o.API != nil {
		s.argocdTokens.tokens[a.Name] = o.API
	}
	o.Caches, o.Log = &s.caches, s.log.Named("argocd")
	o.OnChange, o.OnVersionChange, o.OnWindowsChange, o.OnReady = s.appChanged, s.inputsChanged, s.windowsChanged,
		func() { s.argocdReconnected(a.Name) }
	if !a.APIAlone {
		if o.Config, err = argocd.RESTConfig(a.Kubernetes.Kubeconfig, a.Kubernetes.Context); err != nil {
			s.log.Error("an Argo CD can't be reached yet; its kubeconfig, which argocd[].kubernetes names in the server's file, is read "+
				"again until it can be", zap.String("argocd", a.Name), zap.Error(err))
			o.Config = argocd.AwaitedRESTConfig(a.Kubernetes.Kubeconfig, a.Kubernetes.Context)
		}
	}
	return newConnection(a, o)
}

// newConnection builds it of options that have its Kubernetes access, where it is used.
func newConnection(a config.ArgoCD, o argocd.Options) (*argocdConnection, error) {
	out := &argocdConnection{config: a}
	var err error
	if !a.APIAlone {
		if out.kube, err = appset.NewKube(o.Config); err != nil {
			return nil, err
		}
	}
	if a.Version != "" {
		if out.version, err = appset.ParseVersion(a.Version); err != nil {
			return nil, err
		}
	}
	out.watcher, err = argocd.New(o)
	return out, err
}

// argocdOptions are what the server's file says of an Argo CD, without its Kubernetes access,
// which is read when it is needed.
func argocdOptions(a config.ArgoCD) (argocd.Options, error) {
	client, err := newArgoCDAPI(a.API)
	if err != nil {
		return argocd.Options{}, err
	}
	o := argocd.Options{Name: a.Name, API: client, APIAlone: a.APIAlone, Namespaces: a.Kubernetes.Namespaces, Clusters: a.Clusters.Live,
		Refresh: a.Refresh}
	if a.APIAlone {
		o.Projects = a.API.Projects
	}
	return o, nil
}

// newArgoCDAPI builds what reaches an Argo CD's API; nil where the file names none.
func newArgoCDAPI(a *config.ArgoCDAPI) (*api.Client, error) {
	if a == nil {
		return nil, nil
	}
	ca, err := api.ReadCAFile(a.CAFile)
	if err != nil {
		return nil, err
	}
	return api.New(api.Options{URL: a.URL, Token: a.Token.Reveal(), CA: ca, Insecure: a.Insecure})
}

// factsArgoCD is the Argo CD as the observer knows it.
func (a *argocdConnection) factsArgoCD() branch.ArgoCD {
	out := branch.ArgoCD{
		Apps: a.watcher, Live: a.watcher, Windows: a.watcher, Follower: a.watcher, Trees: a.watcher, Rights: a.watcher,
		Namespace: a.config.Namespace(), Globbing: a.config.Globbing, Version: a.version,
		Policy:    appset.ControllerPolicy{Sync: a.config.ApplicationSetPolicy, Override: a.config.ApplicationSetPolicyOverride},
		NoRefresh: a.config.Refresh == config.RefreshOff, ClustersFile: a.config.Clusters.File, Kube: a.kube,
		ClusterAliases: a.config.Clusters.Aliases(), MayRender: a.config.API != nil,
	}
	if a.config.Render == config.RenderArgoCD {
		out.Manifests = a.watcher
	}
	return out
}

func (s *Server) appChanged(a verification.App, deleted bool) {
	if e := s.runningEngine(); e != nil {
		e.AppChanged(a, deleted)
	}
}

func (s *Server) windowsChanged(apps []verification.App) {
	if e := s.runningEngine(); e != nil {
		e.WindowsChanged(apps)
	}
}

func (s *Server) inputsChanged() {
	if e := s.runningEngine(); e != nil {
		e.InputsChanged()
	}
}

func (s *Server) argocdReconnected(name string) {
	if e := s.runningEngine(); e != nil {
		e.ArgoCDReachable(name)
	}
}

// partStatus is how one part of the server is; nil: well.
type partStatus struct {
	name string
	err  error
}

// argocdStatuses says how the Argo CDs are, by name. Parts that may be forbidden (their
// ApplicationSets and projects) are only reported of an Argo CD that can be reached.
func (s *Server) argocdStatuses() []partStatus {
	names := make([]string, 0, len(s.argocds))
	for name := range s.argocds {
		names = append(names, name)
	}
	sort.Strings(names)
	var out []partStatus
	for _, name := range names {
		a := s.argocds[name]
		at := "argocd " + name
		ready := a.watcher.Ready()
		out = append(out, partStatus{at, ready})
		if ready != nil {
			continue
		}
		_, sets := a.watcher.Sets()
		_, projects := a.watcher.Projects()
		for _, p := range []partStatus{{at + " applicationsets", sets}, {at + " appprojects", projects},
			{at + " clusters", a.watcher.ClustersTrouble()}} {
			if p.err != nil {
				out = append(out, p)
			}
		}
	}
	return out
}

// argocdCollector shows which Argo CDs can be asked, by their names; each function says
// why that one can't, or nil.
type argocdCollector map[string]func() error

var argocdReachable = prometheus.NewDesc("liftlock_argocd_reachable",
	"Whether what an Argo CD says of its Applications is heard: 1, or 0 while it can't be reached.", []string{"argocd"}, nil)

// Describe implements prometheus.Collector.
func (a argocdCollector) Describe(ch chan<- *prometheus.Desc) { ch <- argocdReachable }

// Collect implements prometheus.Collector.
func (a argocdCollector) Collect(ch chan<- prometheus.Metric) {
	for name, ready := range a {
		value := 0.0
		if ready() == nil {
			value = 1
		}
		ch <- prometheus.MustNewConstMetric(argocdReachable, prometheus.GaugeValue, value, name)
	}
}

// clusterFileStatuses says which files of cluster Secrets can't be used, as of the last
// look at them.
func (s *Server) clusterFileStatuses() []partStatus {
	e := s.runningEngine()
	if e == nil {
		return nil
	}
	var out []partStatus
	for file, why := range e.ClusterFileProblems() {
		out = append(out, partStatus{"clusters file " + file, fmt.Errorf("%s", why)})
	}
	slices.SortFunc(out, func(a, b partStatus) int { return strings.Compare(a.name, b.name) })
	return out
}
