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

	"github.com/liftlock/liftlock/internal/config"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/strictyaml"
	"github.com/liftlock/liftlock/internal/wording"
)

// checkPipelines checks the pipeline files on the tracked branch, and what they need of the forge;
// where a probe is wanted, it is made too.
func (k *repositoryCheck) checkPipelines(ctx context.Context) {
	checkout := k.openCheckout(ctx)
	if checkout == nil {
		return
	}
	m := checkout.Mirror
	if p := k.Probers[k.forgeOf.Name]; p != nil {
		k.probe(ctx, m, p)
	}
	ctx, cancel := k.limit(ctx)
	defer cancel()
	head, ok, err := m.Head(ctx, k.config.Branch)
	if err != nil {
		k.found.add("git-unread", k.where, err.Error(), "try again")
		return
	}
	if !ok {
		if k.settings.DefaultBranch != "" { // else it is empty, which was found
			k.found.add("branch-missing", k.where, "it has no branch "+k.config.Branch, "correct repositories[].branch in the server's file")
		}
		return
	}
	tree := m.Tree(head)
	pipes, ok := k.loadPipelines(tree)
	if !ok {
		return
	}
	heads, err := m.Heads(ctx, "")
	if err != nil {
		k.found.add("git-unread", k.where, err.Error(), "try again")
		return
	}
	k.checkRules(ctx, pipes, heads)
	k.checkGuards(ctx, pipes)
	ran := k.readRecentChecks(ctx, pipes)
	for _, p := range pipes {
		before := len(k.found)
		where := fmt.Sprintf("pipeline %s in %s", p.Name(), k.config.Name)
		if k.checkSources(where, p, tree); len(k.found) == before {
			checkout.usable = append(checkout.usable, p.Name())
		}
		for _, branch := range p.EnvironmentBranches() {
			if _, ok := heads[branch]; !ok {
				k.found.add("branch-missing", where, "there is no branch "+branch+", on which an environment is said to be", "make the branch, or correct environments[].branch")
			}
		}
		if p.Spec.Commands == pipeline.CommandsBare && k.forgeOf.Type == config.GitLab {
			k.found.add("commands-bare", where, "commands: bare lets commands be written as /promote, and GitLab takes lines with the names of its quick actions, such as /promote, out of comments: those commands never reach Liftlock", "remove commands: bare, and write /liftlock promote, which always works")
		}
		k.checkGates(ctx, where, p, tree, ran)
		how := "it acts"
		if p.Spec.Mode == pipeline.ModeDryRun {
			how = "it observes, and opens nothing"
		}
		k.found.addOK(before, CodePipeline, where, fmt.Sprintf("%s on %s", how, wording.Plural(len(p.Spec.Environments), "environment", "environments")))
	}
}

// loadPipelines reads the pipeline files; false: there is none that can be used.
func (k *repositoryCheck) loadPipelines(tree fs.FS) ([]*pipeline.Pipeline, bool) {
	pipes, err := pipeline.Load(tree)
	var wrong strictyaml.Errors
	switch {
	case errors.Is(err, pipeline.ErrNoPipeline):
		k.found.add("pipeline-missing", k.where, fmt.Sprintf("its branch %s has no pipeline file: Liftlock does nothing there", k.config.Branch), "liftlock init proposes one; commit it as "+pipeline.FileName)
		return nil, false
	case errors.As(err, &wrong):
		k.found.add("pipeline-invalid", k.where, describeErrors(wrong), "correct it: nothing is opened or merged until then; liftlock validate checks it before it is pushed")
		return nil, false
	case err != nil:
		k.found.add("git-unread", k.where, err.Error(), "try again")
		return nil, false
	}
	if err := pipeline.CheckAllNames(tree, serverNames(k.Config)); errors.As(err, &wrong) {
		k.found.add("pipeline-names", k.where, describeErrors(wrong), "add what is missing to the server's file, or correct the name")
	}
	if odd, err := pipeline.FindAllWarnings(tree); err == nil && len(odd) > 0 {
		k.found.add("pipeline-odd", k.where, describeErrors(odd), "see whether that is meant")
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
func (k *repositoryCheck) checkManifests(where, at string, m pipeline.ManifestSource, tree fs.FS) {
	if m.Kustomize != "" && !hasKustomization(tree, m.Kustomize) {
		k.found.add("sets-missing", where, fmt.Sprintf("no kustomization is in %s on the branch %s, so it has no targets from there", m.Kustomize, k.config.Branch), "correct "+at+".kustomize, a folder from the repository's root; liftlock resolve shows what is built of it")
	}
	if m.Path == "" {
		return
	}
	found, err := doublestar.Glob(tree, strings.TrimPrefix(m.Path, "./"), doublestar.WithFilesOnly())
	if err != nil || len(found) == 0 {
		k.found.add("sets-missing", where, fmt.Sprintf("no file is named %s on the branch %s, so it has no targets from there", m.Path, k.config.Branch), "correct "+at+".path, from the repository's root; liftlock resolve shows what is found")
	}
}

// checkSources checks where a pipeline's targets come from: that there are such files, and that
// the server's file has such an Argo CD.
func (k *repositoryCheck) checkSources(where string, p *pipeline.Pipeline, tree fs.FS) {
	var argocds []string
	for i := range p.Spec.ApplicationSets {
		argocds = append(argocds, p.Spec.ApplicationSets[i].ArgoCDName())
		k.checkManifests(where, "applicationSets[]", p.Spec.ApplicationSets[i].Manifests(), tree)
	}
	for i := range p.Spec.Applications {
		argocds = append(argocds, p.Spec.Applications[i].ArgoCDName())
		k.checkManifests(where, "applications[]", p.Spec.Applications[i].Manifests(), tree)
	}
	slices.Sort(argocds)
	for _, name := range slices.Compact(argocds) {
		if k.Config.ArgoCDByName(name) == nil {
			k.found.add("argocd-unnamed", where, fmt.Sprintf("the server's file has no Argo CD %q", name), "add it under argocd, or correct the name in the pipeline file")
		}
	}
}
