package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/wording"
)

// checkPipelines checks the pipeline files on the tracked branch, and what they need of the forge;
// where a probe is wanted, it is made too.
func (r *repositoryCheck) checkPipelines(ctx context.Context) {
	checkout := r.openCheckout(ctx)
	if checkout == nil {
		return
	}
	m := checkout.Mirror
	if p := r.Probers[r.forgeOf.Name]; p != nil {
		r.probe(ctx, m, p)
	}
	ctx, cancel := r.limit(ctx)
	defer cancel()
	head, ok, err := m.Head(ctx, r.config.Branch)
	if err != nil {
		r.found.add("git-unread", r.where, err.Error(), "try again")
		return
	}
	if !ok {
		if r.settings.DefaultBranch != "" { // else it is empty, which was found
			r.found.add("branch-missing", r.where, "it has no branch "+r.config.Branch,
				"correct repositories[].branch in the server's file")
		}
		return
	}
	tree := m.Tree(head)
	pipes, ok := r.loadPipelines(tree)
	if !ok {
		return
	}
	heads, err := m.Heads(ctx, "")
	if err != nil {
		r.found.add("git-unread", r.where, err.Error(), "try again")
		return
	}
	r.checkRules(ctx, pipes, heads)
	r.checkGuards(ctx, pipes)
	ran := r.readRecentChecks(ctx, pipes)
	for _, p := range pipes {
		before := len(r.found)
		where := fmt.Sprintf("pipeline %s in %s", p.Name(), r.config.Name)
		if r.checkSources(where, p, tree); len(r.found) == before {
			checkout.usable = append(checkout.usable, p.Name())
		}
		for _, branch := range p.EnvironmentBranches() {
			if _, ok := heads[branch]; !ok {
				r.found.add("branch-missing", where, "there is no branch "+branch+", on which an environment is said to be",
					"make the branch, or correct environments[].branch")
			}
		}
		if p.Spec.Commands == pipeline.CommandsBare && r.forgeOf.Type == config.GitLab {
			r.found.add("commands-bare", where, "commands: bare lets commands be written as /promote, and GitLab takes lines with the "+
				"names of its quick actions, such as /promote, out of comments: those commands never reach Liftlock",
				"remove commands: bare, and write /liftlock promote, which always works")
		}
		r.checkGates(ctx, where, p, tree, ran)
		how := "it acts"
		if p.Spec.Mode == pipeline.ModeDryRun {
			how = "it observes, and opens nothing"
		}
		r.found.addOK(before, CodePipeline, where, fmt.Sprintf("%s on %s", how, wording.Plural(len(p.Spec.Environments), "environment",
			"environments")))
	}
}

// loadPipelines reads the pipeline files; false: there is none that can be used.
func (r *repositoryCheck) loadPipelines(tree fs.FS) ([]*pipeline.Pipeline, bool) {
	pipes, err := pipeline.Load(tree)
	var wrong strictyaml.Errors
	switch {
	case errors.Is(err, pipeline.ErrNoPipeline) && r.config.Onboard:
		r.found.add("pipeline-proposed", r.where, fmt.Sprintf("its branch %s has no pipeline file yet: the server proposes one from %s",
			r.config.Branch, promotion.OnboardingBranch), "merge that pull request, or close it for a no; the console says why there is none")
		return nil, false
	case errors.Is(err, pipeline.ErrNoPipeline):
		r.found.add("pipeline-missing", r.where, fmt.Sprintf("its branch %s has no pipeline file: Liftlock does nothing there",
			r.config.Branch), "liftlock init proposes one; commit it as "+pipeline.FileName)
		return nil, false
	case errors.As(err, &wrong):
		r.found.add("pipeline-invalid", r.where, describeErrors(wrong),
			"correct it: nothing is opened or merged until then; liftlock validate checks it before it is pushed")
		return nil, false
	case err != nil:
		r.found.add("git-unread", r.where, err.Error(), "try again")
		return nil, false
	}
	if err := pipeline.CheckAllNames(tree, serverNames(r.Config)); errors.As(err, &wrong) {
		r.found.add("pipeline-names", r.where, describeErrors(wrong), "add what is missing to the server's file, or correct the name")
	}
	if odd, err := pipeline.FindAllWarnings(tree); err == nil && len(odd) > 0 {
		r.found.add("pipeline-odd", r.where, describeErrors(odd), "see whether that is meant")
	}
	return pipes, true
}

// maxErrorsShown bounds how much of what is wrong with a file is repeated.
const maxErrorsShown = 3

func describeErrors(all strictyaml.Errors) string {
	lines := make([]string, len(all))
	for i := range all {
		lines[i] = all[i].Error()
	}
	if len(lines) > maxErrorsShown {
		lines = append(lines[:maxErrorsShown], fmt.Sprintf("and %d more", len(all)-maxErrorsShown))
	}
	return strings.Join(lines, "; ")
}

// serverNames are the names of the server's file that pipelines may use.
func serverNames(c *config.Config) pipeline.ServerNames {
	var names pipeline.ServerNames
	for i := range c.Channels {
		names.Channels = append(names.Channels, c.Channels[i].Name)
	}
	for i := range c.Prometheus {
		names.Prometheus = append(names.Prometheus, c.Prometheus[i].Name)
	}
	for i := range c.Endpoints {
		names.Endpoints = append(names.Endpoints, c.Endpoints[i].Name)
	}
	return names
}

// hasKustomization says that a folder has a kustomization.
func hasKustomization(tree fs.FS, folder string) bool {
	return slices.ContainsFunc([]string{"kustomization.yaml", "kustomization.yml", "Kustomization"}, func(name string) bool {
		_, err := fs.Stat(tree, path.Join(folder, name))
		return err == nil
	})
}

// checkManifests checks that what an entry names is there.
func (r *repositoryCheck) checkManifests(where, at string, m pipeline.ManifestSource, tree fs.FS) {
	if m.Kustomize != "" && !hasKustomization(tree, m.Kustomize) {
		r.found.add("sets-missing", where, fmt.Sprintf("no kustomization is in %s on the branch %s, so it has no targets from there",
			m.Kustomize, r.config.Branch), "correct "+at+".kustomize, a folder from the repository's root; liftlock resolve shows what "+
			"is built of it")
	}
	if m.Path == "" {
		return
	}
	found, err := doublestar.Glob(tree, strings.TrimPrefix(m.Path, "./"), doublestar.WithFilesOnly())
	if err != nil || len(found) == 0 {
		r.found.add("sets-missing", where, fmt.Sprintf("no file is named %s on the branch %s, so it has no targets from there", m.Path,
			r.config.Branch), "correct "+at+".path, from the repository's root; liftlock resolve shows what is found")
	}
}

// checkSources checks where a pipeline's targets come from: that there are such files, and that
// the server's file has such an Argo CD.
func (r *repositoryCheck) checkSources(where string, p *pipeline.Pipeline, tree fs.FS) {
	var argocds []string
	for i := range p.Spec.ApplicationSets {
		argocds = append(argocds, p.Spec.ApplicationSets[i].ArgoCDName())
		r.checkManifests(where, "applicationSets[]", p.Spec.ApplicationSets[i].Manifests(), tree)
	}
	for i := range p.Spec.Applications {
		argocds = append(argocds, p.Spec.Applications[i].ArgoCDName())
		r.checkManifests(where, "applications[]", p.Spec.Applications[i].Manifests(), tree)
	}
	slices.Sort(argocds)
	for _, name := range slices.Compact(argocds) {
		if r.Config.ArgoCDByName(name) == nil {
			r.found.add("argocd-unnamed", where, fmt.Sprintf("the server's file has no Argo CD %q", name),
				"add it under argocd, or correct the name in the pipeline file")
		}
	}
}
