package checkout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cli/propose"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/wording"
)

// untoldChart is a chart with objects of Argo CD's among its templates, of which no Application here tells how it is
// installed.
type untoldChart struct {
	path, template string
	valueFiles     []string // that lie beside its own
}

// untoldCharts are the charts that some files are templates of, sorted.
func (t *Tree) untoldCharts(templates []string) []untoldChart {
	var out []untoldChart
	for _, name := range slices.Sorted(slices.Values(templates)) {
		chart := t.chartOf(name)
		if slices.ContainsFunc(out, func(c untoldChart) bool { return c.path == chart }) {
			continue
		}
		out = append(out, untoldChart{chart, name, slices.Concat(t.valueFilesOf(chart)...)})
	}
	return out
}

// example is an entry of a pipeline file that names the chart, with one of its values files.
func (u *untoldChart) example() *pipeline.HelmSource {
	out := &pipeline.HelmSource{Path: u.path, ValueFiles: u.valueFiles[:min(len(u.valueFiles), 1)]}
	out.SetDefaults()
	return out
}

// toProblem says that the chart is left out, and what to write in a pipeline file to have it; key is that of the list of entries.
func (u *untoldChart) toProblem(key string) appset.Problem {
	entry := fmt.Sprintf("%s: [{helm: {%s}}]", key, propose.HelmText(u.example()))
	return appset.Problem{File: u.template, Message: fmt.Sprintf("left out, because it is a template of a Helm chart, and no Application "+
		"here tells how that is installed: say it in the pipeline file, as in %s, or render it and name the result with -f", entry)}
}

// findUntold takes charts by their own values, or by a values file that lies beside them, where
// there is nothing else. The pipeline file says that a person has to check that. Where none can be
// built, the file begins with the charts.
func (d *deployed) findUntold(ctx context.Context, kind string, templates []string) error {
	found, charts := &runningSets{kind: kind}, d.tree.untoldCharts(templates)
	tried := 0
	var why error
	for i := range charts {
		chart, err := d.buildUntold(ctx, &charts[i], kind, &tried)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("build the chart %s: %w", charts[i].path, ctx.Err())
		case err != nil:
			why = err
		case chart != nil:
			found.charts = append(found.charts, *chart)
		}
	}
	d.proposal.Open.Charts = openCharts(charts, why)
	if !found.isEmpty() {
		if err := d.take(ctx, found); !errors.Is(err, propose.ErrNothingUsable) {
			return err
		}
		found.charts = nil
	}
	for i := range charts {
		found.charts = append(found.charts, installedChart{HelmSource: *charts[i].example()})
	}
	d.sets, d.targets, d.proposal.Plain = found, &appset.TargetSet{}, found.isPlain()
	d.proposal.Name = d.pipelineName()
	d.proposal.Sets = d.setEntries(nil)
	d.proposal.Open.Templates = &propose.ChoiceError{Question: "what are component and environment? That can be told once the charts can " +
		"be built"}
	d.writeDraft(d.proposal.Open.Charts, "")
	return d.proposal.Open.Charts
}

// buildUntold builds a chart by the first of its values files with which it has objects of a kind; nil where it has none
// with any. The error is why the last couldn't be built.
func (d *deployed) buildUntold(ctx context.Context, c *untoldChart, kind string, tried *int) (*installedChart, error) {
	build := d.repository.manifestBuilder(nil, d.tree)
	var why error
	for _, files := range d.tree.valueFilesOf(c.path) {
		if *tried++; *tried > maxTried {
			break
		}
		chart, q, err := chartToBuild(c.path, files)
		if err != nil {
			return nil, err
		}
		built, err := build(ctx, d.tree.FS, q)
		if err == nil && len(objectsAmong(built.Objects, kind)) > 0 {
			return chart, nil
		}
		if why = err; ctx.Err() != nil {
			break
		}
	}
	return nil, why
}

// openCharts is the question how charts are installed, with what was seen of them; why is that some couldn't be built.
func openCharts(charts []untoldChart, why error) *propose.ChoiceError {
	var paths []string
	out := &propose.ChoiceError{Other: "helm takes valueFiles, values, releaseName and namespace, as the Application or the command that " +
		"installs the chart gives them"}
	for _, c := range charts {
		paths = append(paths, c.path)
		if len(c.valueFiles) > 0 {
			out.Seen = append(out.Seen, fmt.Sprintf("%s has the values files %s beside its own", c.path, wording.JoinFew(c.valueFiles, 5)))
		}
	}
	out.Question = "with what are these charts installed? No Application here says it: " + strings.Join(paths, ", ") + "."
	if len(paths) == 1 {
		out.Question = fmt.Sprintf("with what is the chart %s installed? No Application here says it.", paths[0])
	}
	if why != nil {
		out.Seen = append(out.Seen, why.Error())
	}
	return out
}
