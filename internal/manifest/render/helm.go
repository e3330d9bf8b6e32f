package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
)

// renderHelm renders a chart as `helm template` does with the Application's options.
func (r *rendering) renderHelm(dir string, o *helmOptions, env buildEnv) error {
	if o.Version != "" && o.Version != "v3" {
		return fmt.Errorf("helm.version %q is not known to Argo CD", o.Version)
	}
	vals, err := r.collectValues(dir, o, env)
	if err != nil {
		return err
	}
	c, err := r.loadChart(dir)
	if err != nil {
		return err
	}
	if c.Metadata.Type != "" && c.Metadata.Type != "application" {
		return fmt.Errorf("the chart %s is of type %s, which gives no objects", c.Name(), c.Metadata.Type)
	}
	caps, err := r.clusterCapabilities(o)
	if err != nil {
		return err
	}
	if err := chartutil.ProcessDependenciesWithMerge(c, vals); err != nil {
		return fmt.Errorf("the chart's dependencies: %w", err)
	}
	if want := c.Metadata.KubeVersion; want != "" && !chartutil.IsCompatibleRange(want, caps.KubeVersion.String()) {
		return fmt.Errorf("the chart asks for Kubernetes %s; the target's is %s", want, caps.KubeVersion.String())
	}
	if !o.SkipSchemaValidation {
		if err := makeSchemasLocal(c); err != nil {
			return err
		}
	}
	top, err := chartutil.ToRenderValuesWithSchemaValidation(c, vals, r.releaseOptions(o), caps, o.SkipSchemaValidation)
	if err != nil {
		return fmt.Errorf("the chart's values: %w", err)
	}
	return r.renderTemplates(c, top, o)
}

func (r *rendering) releaseOptions(o *helmOptions) chartutil.ReleaseOptions {
	return chartutil.ReleaseOptions{Name: cmp.Or(o.ReleaseName, r.in.Application), Namespace: cmp.Or(o.Namespace, r.in.Namespace),
		Revision: 1, IsInstall: true}
}

// clusterCapabilities are the cluster's version and APIs, as far as they are known.
func (r *rendering) clusterCapabilities(o *helmOptions) (*chartutil.Capabilities, error) {
	version := cmp.Or(o.KubeVersion, r.in.KubeVersion, DefaultKubeVersion)
	parsed, err := chartutil.ParseKubeVersion(version)
	if err != nil {
		return nil, fmt.Errorf("the Kubernetes version %q: %w", version, err)
	}
	caps := chartutil.DefaultCapabilities.Copy()
	caps.KubeVersion = *parsed
	apis := r.in.APIVersions
	if len(o.APIVersions) > 0 {
		apis = o.APIVersions
	}
	caps.APIVersions = append(slices.Clip(caps.APIVersions), apis...)
	return caps, nil
}

// renderTemplates executes the chart and takes its objects: custom resource
// definitions, manifests and hooks.
func (r *rendering) renderTemplates(c *chart.Chart, top chartutil.Values, o *helmOptions) error {
	e := newEngine(r.files.ctx)
	rendered, err := e.render(c, top)
	if err != nil {
		return err
	}
	if e.nondeterministic {
		r.out.addNote("templates ask for random values or the time; stand-ins take their place here")
	}
	if e.usesCapabilities && r.in.KubeVersion == "" && o.KubeVersion == "" {
		r.out.addNote("templates ask what the cluster is able to do; Kubernetes " + DefaultKubeVersion +
			" without further APIs was assumed")
	}
	if e.usesLookup {
		r.out.addNote("templates look objects up in the cluster; nothing is found here, as in Argo CD")
	}
	for name, text := range rendered {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(rendered, name)
		} else if err := checkAliases([]byte(text)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(rendered, nil, releaseutil.InstallOrder)
	if err != nil {
		return fmt.Errorf("the chart's manifests: %w", err)
	}
	var all []releaseutil.Manifest
	if !o.SkipCrds {
		for _, crd := range c.CRDObjects() {
			all = append(all, releaseutil.Manifest{Name: crd.Filename, Content: string(crd.File.Data)})
		}
	}
	all = append(all, manifests...)
	for _, h := range hooks {
		if !o.SkipTests || !slices.Contains(h.Events, release.HookTest) {
			all = append(all, releaseutil.Manifest{Name: h.Path, Content: h.Manifest})
		}
	}
	for _, m := range all {
		if err := r.out.addYAML([]byte(m.Content)); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}
