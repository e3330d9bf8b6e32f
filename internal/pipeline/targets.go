package pipeline

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// maxSelectorLength bounds a selector over labels.
const maxSelectorLength = 4096

// objectNamePattern is what Kubernetes takes for an object's name; at most 253 characters.
var objectNamePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// checkApplicationSets checks where the targets come from.
func (c *checker) checkApplicationSets(s *Spec) {
	if len(s.Applications) == 0 {
		c.NotEmpty("spec.applicationSets", len(s.ApplicationSets), "entry with ApplicationSets")
	}
	for i := range s.ApplicationSets {
		a, at := &s.ApplicationSets[i], fmt.Sprintf("spec.applicationSets[%d]", i)
		if c.checkEntry(at, "ApplicationSet manifests in this repository", "an object of a running Argo CD", a.Manifests(), a.ArgoCD) {
			c.checkLiveSet(at+".live", a.Live)
		}
		c.checkOverrides(at, s, a.Component, a.Environment)
	}
	for i := range s.Applications {
		a, at := &s.Applications[i], fmt.Sprintf("spec.applications[%d]", i)
		if c.checkEntry(at, "Application manifests in this repository", "those that a running Argo CD has", a.Manifests(), a.ArgoCD) {
			c.checkLiveApplications(at+".live", a.Live)
		}
		c.checkOverrides(at, s, a.Component, a.Environment)
	}
	c.checkConstantEnvironment("spec.environment", s.Environment, s)
	if c.Doc.Has("spec.clusters") {
		c.checkClusters("spec.clusters", s.Clusters)
	}
}

// checkClusters checks where the file of clusters is.
func (c *checker) checkClusters(at, file string) {
	switch {
	case file == "":
		c.Errorf(at, "a file is missing: one of Argo CD's cluster Secrets, which liftlock init --clusters-example gives an example of")
	case strings.Contains(file, "://"):
		c.Errorf(at, "%q is an address; clusters are read from a file of this repository", file)
	case !fs.ValidPath(path.Clean(file)):
		c.Errorf(at, "%q leaves the repository; write it from the root, without a leading / and without ..", file)
	case path.Clean(file) != file:
		c.Errorf(at, "%q is not in its shortest form; write %q", file, path.Clean(file))
	case IsPipelinePath(file):
		c.Errorf(at, "%q has the name of a pipeline file; keep the clusters as clusters.yaml or %s/argocd/clusters.yaml", file, FolderName)
	}
}

// checkEntry checks that an entry says in one way where its objects are, and which Argo CD runs
// them. It says that they are live ones, which the caller checks.
func (c *checker) checkEntry(at, manifests, objects string, m ManifestSource, argocd string) (live bool) {
	var given []string
	for _, key := range []string{"path", "kustomize", "helm", "live"} {
		if c.Doc.Has(at + "." + key) {
			given = append(given, key)
		}
	}
	hasArgoCD := c.Doc.Has(at + ".argocd")
	live = len(given) == 1 && given[0] == "live"
	switch {
	case len(given) > 1:
		c.Errorf(at, "%s are both given; an entry takes one of them", strings.Join(given[:2], " and "))
	case len(given) == 0:
		c.Errorf(at, "path is missing: a glob of %s; or kustomize or helm, for a folder or a chart that makes them; or live, for %s",
			manifests, objects)
	case live && hasArgoCD:
		c.Errorf(at+".argocd", "goes into live here, which says where the object runs")
	case live:
	case given[0] == "helm":
		c.checkChart(at+".helm", m.Helm)
	case given[0] == "kustomize":
		c.checkFolder(at+".kustomize", m.Kustomize)
	default:
		c.checkGlob(at+".path", m.Path)
	}
	if argocd != "" || hasArgoCD {
		c.checkArgoCDName(at+".argocd", argocd)
	}
	return live
}

// checkChart checks a chart and its values files.
func (c *checker) checkChart(at string, h *HelmSource) {
	if h == nil { // it has no value, which is an error already
		return
	}
	c.checkFolder(at+".path", h.Path)
	c.checkAtMost(at+".valueFiles", len(h.ValueFiles), maxNamed)
	for i, name := range h.ValueFiles {
		isAddress := name == "" || strings.Contains(name, "://")
		if isAddress || !strings.HasPrefix(name, "/") && !fs.ValidPath(path.Join(h.Path, name)) {
			c.Errorf(fmt.Sprintf("%s.valueFiles[%d]", at, i), "%q is no file of this repository, from the chart's folder or, with a "+
				"leading /, from the root", name)
		}
	}
}

// checkFolder checks a folder of the repository.
func (c *checker) checkFolder(at, folder string) {
	switch {
	case folder == "":
		c.Errorf(at, "a folder is missing")
	case strings.Contains(folder, "://"):
		c.Errorf(at, "%q is an address; only a folder of this repository is built", folder)
	case !fs.ValidPath(path.Clean(folder)):
		c.Errorf(at, "%q leaves the repository; write it from the root, without a leading / and without ..", folder)
	case path.Clean(folder) != folder:
		c.Errorf(at, "%q is not in its shortest form; write %q", folder, path.Clean(folder))
	}
}

// checkOverrides checks an entry's own templates, and that it has some.
func (c *checker) checkOverrides(at string, s *Spec, component, environment string) {
	c.checkTemplate(at+".component", component)
	c.checkTemplate(at+".environment", environment)
	if component == "" && s.Component == "" && !c.Doc.Has("spec.component") {
		c.Errorf(at, "no component template: give spec.component or one here")
	}
	if environment == "" && s.Environment == "" && !c.Doc.Has("spec.environment") {
		c.Errorf(at, "no environment template: give spec.environment or one here")
	}
	c.checkConstantEnvironment(at+".environment", environment, s)
}

func (c *checker) checkLiveSet(at string, l *LiveApplicationSet) {
	if l == nil { // it has no value, which is an error already
		return
	}
	c.checkLivePlace(at, l.ArgoCD, l.Namespace)
	c.checkObjectName(at+".name", "name", l.Name)
}

func (c *checker) checkLiveApplications(at string, l *LiveApplications) {
	if l == nil {
		return
	}
	c.checkLivePlace(at, l.ArgoCD, l.Namespace)
	switch _, err := labels.Parse(l.Selector); {
	case l.Selector == "":
		c.Errorf(at, "selector is missing: which labels the Applications have, like team=shop")
	case len(l.Selector) > maxSelectorLength:
		c.Errorf(at+".selector", "the selector is longer than %d characters", maxSelectorLength)
	case err != nil:
		c.Errorf(at+".selector", "%q is not a selector over labels, like team=shop,tier!=test: %s", l.Selector, err)
	}
}

// checkLivePlace checks where live objects are.
func (c *checker) checkLivePlace(at, argocd, namespace string) {
	if argocd != "" || c.Doc.Has(at+".argocd") {
		c.checkArgoCDName(at+".argocd", argocd)
	}
	c.checkObjectName(at+".namespace", "namespace", namespace)
}

func (c *checker) checkArgoCDName(at, name string) {
	if err := ValidName(name); err != nil {
		c.Errorf(at, "%s", err)
	}
}

func (c *checker) checkObjectName(at, what, name string) {
	switch {
	case name == "":
		c.Errorf(at, "a %s is missing", what)
	case !objectNamePattern.MatchString(name):
		c.Errorf(at, "%q is not a Kubernetes object's %s: lower-case letters, digits, hyphens and dots", name, what)
	}
}
