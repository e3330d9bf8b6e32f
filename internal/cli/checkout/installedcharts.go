package checkout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// installedChart is a chart of the repository that has ApplicationSets or Applications among its
// templates, as an Application installs it.
type installedChart struct {
	pipeline.HelmSource
	argocd      string // a name for where it is installed, where several Argo CDs have it; "" else
	installedBy string // the file of the Application, or of the set that makes it
}

// file is what stands for the chart.
func (i *installedChart) file() string { return path.Join(i.Path, "Chart.yaml") }

// key tells an installation from the others, of this chart too.
func (i *installedChart) key() string { return i.file() + "\x00" + i.installedBy }

// uninstallable are the charts that are installed in a way that no pipeline file can say, or that can't be
// built so.
func (r *runningSets) uninstallable() []appset.Problem {
	if r == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.notes), func(p appset.Problem) bool { return p.Application == "" })
}

// installRounds bounds how far charts are followed that install charts.
const installRounds = 4

// chartOf is the folder of the chart that a file is a template of.
func (t *Tree) chartOf(name string) string {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if path.Base(dir) != "templates" {
			continue
		}
		if _, err := fs.Stat(t.FS, path.Join(path.Dir(dir), "Chart.yaml")); err == nil {
			return path.Dir(dir)
		}
	}
	return ""
}

// chartFinder finds how the charts of a tree are installed.
type chartFinder struct {
	repository *Repository
	tree       *Tree
	known      *Known
	resolver   *appset.Resolver
	build      appset.ManifestBuilder
	found      *runningSets

	charts  map[string]bool // that have objects of Argo CD's kinds
	seen    []pipeline.HelmSource
	clear   map[string]bool           // charts whose installation is understood
	targets map[int]appset.Target     // by found.charts, who installs each
	left    map[string]appset.Problem // by chart, why it can't be taken
}

// addInstalled adds the charts' objects of a kind where an Application that lies in the repository, or a
// set's, installs the chart: by what that gives it. Charts that nothing here installs are left, with a note.
func (r *Repository) addInstalled(ctx context.Context, t *Tree, known *Known, found *runningSets) error {
	if len(found.templates) == 0 {
		return nil
	}
	f := &chartFinder{repository: r, tree: t, known: known, found: found,
		resolver: appset.New(appset.Options{}), build: r.manifestBuilder(nil, t),
		charts: map[string]bool{}, clear: map[string]bool{}, targets: map[int]appset.Target{}, left: map[string]appset.Problem{}}
	pipes, err := f.begin(ctx)
	if err != nil {
		return err
	}
	for range installRounds {
		targets, err := f.resolve(ctx, pipes)
		if err != nil {
			return err
		}
		if pipes, err = f.follow(ctx, targets); err != nil {
			return err
		}
		if len(pipes) == 0 {
			break
		}
	}
	f.nameArgoCDs()
	found.templates = slices.DeleteFunc(found.templates, func(name string) bool { return f.clear[t.chartOf(name)] })
	for _, chart := range slices.Sorted(maps.Keys(f.left)) {
		if !f.clear[chart] {
			found.notes = append(found.notes, f.left[chart])
		}
	}
	for _, c := range t.untoldCharts(found.templates) {
		found.notes = append(found.notes, c.toProblem(found.key()))
	}
	return nil
}

// begin gives what the files have Argo CD run, and notes the charts that matter.
func (cf *chartFinder) begin(ctx context.Context) ([]*pipeline.Pipeline, error) {
	var out []*pipeline.Pipeline
	for _, kind := range []string{kindApplicationSet, kindApplication} {
		own := cf.found
		if kind != cf.found.kind {
			var err error
			if own, err = cf.repository.findInFiles(ctx, cf.tree, kind); err != nil {
				return nil, err
			}
		}
		for _, name := range own.templates {
			cf.charts[cf.tree.chartOf(name)] = true
		}
		if !own.isEmpty() {
			out = append(out, own.pipeline())
		}
	}
	return out, nil
}

func (cf *chartFinder) resolve(ctx context.Context, pipes []*pipeline.Pipeline) ([]appset.Target, error) {
	var out []appset.Target
	for _, p := range pipes {
		known, err := cf.known.resolverInput(cf.tree.FS, pipes)
		if err != nil {
			return nil, err
		}
		files, _ := cf.repository.overlayFiles(cf.tree, nil)
		set, err := cf.repository.resolvePipeline(ctx, cf.resolver, files, cf.tree, known.forPipeline(p), true)
		if err != nil {
			return nil, err
		}
		out = append(out, set.Targets...)
	}
	return out, nil
}

// follow takes the charts that Applications install, and gives what these have Argo CD run besides.
func (cf *chartFinder) follow(ctx context.Context, targets []appset.Target) ([]*pipeline.Pipeline, error) {
	var out []*pipeline.Pipeline
	for i := range targets {
		for n, s := range targets[i].Sources {
			chart := path.Clean(s.Path)
			if !s.Here || s.Chart != "" || s.Path == "" || !cf.charts[chart] {
				continue
			}
			helm, err := cf.tree.installationOf(&targets[i], n)
			if err != nil {
				cf.leaveOut(chart, &targets[i], err)
				continue
			}
			if slices.ContainsFunc(cf.seen, func(o pipeline.HelmSource) bool { return reflect.DeepEqual(o, helm) }) {
				continue
			}
			cf.seen = append(cf.seen, helm)
			next, err := cf.take(ctx, &targets[i], helm)
			if err != nil {
				return nil, err
			}
			out = append(out, next...)
		}
	}
	return out, nil
}

func (cf *chartFinder) leaveOut(chart string, by *appset.Target, err error) {
	cf.left[chart] = appset.Problem{File: chart, Application: by.Name,
		Message: fmt.Sprintf("it installs this chart, which is left out: %v", err)}
}

// take builds a chart as it is installed.
func (cf *chartFinder) take(ctx context.Context, by *appset.Target, helm pipeline.HelmSource) ([]*pipeline.Pipeline, error) {
	q, err := appset.NewBuildRequest(pipeline.ManifestSource{Helm: &helm})
	if err != nil {
		return nil, err
	}
	built, err := cf.build(ctx, cf.tree.FS, q)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("build the chart %s: %w", helm.Path, ctx.Err())
	}
	if err != nil {
		cf.leaveOut(helm.Path, by, err)
		return nil, nil
	}
	cf.clear[helm.Path] = true
	var out []*pipeline.Pipeline
	for _, kind := range []string{kindApplicationSet, kindApplication} {
		if len(objectsAmong(built.Objects, kind)) == 0 {
			continue
		}
		own := &runningSets{kind: kind, charts: []installedChart{{HelmSource: helm, installedBy: by.ApplicationSetFile}}}
		if kind == cf.found.kind {
			cf.targets[len(cf.found.charts)] = *by
			cf.found.charts = append(cf.found.charts, own.charts...)
		}
		out = append(out, own.pipeline())
	}
	return out, nil
}

// nameArgoCDs tells the Argo CDs apart that one chart is installed in.
func (cf *chartFinder) nameArgoCDs() {
	for i := range cf.found.charts {
		c, by := &cf.found.charts[i], cf.targets[i]
		for n := range cf.found.charts {
			other := cf.targets[n]
			isOtherCluster := by.Server != other.Server || by.Cluster != other.Cluster
			if n != i && cf.found.charts[n].Path == c.Path && isOtherCluster {
				c.argocd = strings.Trim(notName.ReplaceAllString(strings.ToLower(cmp.Or(by.Cluster, by.Name)), "-"), "-")
			}
		}
	}
}

// helmOptions are the options of an Application's source that say what a chart is given.
type helmOptions struct {
	ReleaseName             string          `json:"releaseName"`
	ValueFiles              []string        `json:"valueFiles"`
	IgnoreMissingValueFiles bool            `json:"ignoreMissingValueFiles"`
	Values                  string          `json:"values"`
	ValuesObject            map[string]any  `json:"valuesObject"`
	Parameters              []helmParameter `json:"parameters"`
	FileParameters          []any           `json:"fileParameters"`
}

type helmParameter struct {
	Name        string `json:"name"`
	Value       string `json:"value"`
	ForceString bool   `json:"forceString"`
}

// installationOf is the chart of an Application's n-th source as a pipeline file names it.
func (t *Tree) installationOf(by *appset.Target, n int) (pipeline.HelmSource, error) {
	s := &by.Sources[n]
	out := pipeline.HelmSource{Path: path.Clean(s.Path)}
	out.SetDefaults()
	var options struct {
		Helm helmOptions `json:"helm"`
	}
	if len(s.Options) > 0 {
		if err := json.Unmarshal(s.Options, &options); err != nil {
			return out, fmt.Errorf("its options can't be read: %w", err)
		}
	}
	o := &options.Helm
	if len(o.FileParameters) > 0 {
		return out, errors.New("it sets parameters from files, which a pipeline file can't say")
	}
	for _, name := range o.ValueFiles {
		file, err := valueFileOf(by, name)
		if err != nil {
			return out, err
		}
		at := strings.TrimPrefix(file, "/")
		if at == file {
			at = path.Join(out.Path, file)
		}
		if _, err := fs.Stat(t.FS, at); errors.Is(err, fs.ErrNotExist) && o.IgnoreMissingValueFiles {
			continue
		}
		out.ValueFiles = append(out.ValueFiles, file)
	}
	var err error
	if out.Values, err = o.values(); err != nil {
		return out, err
	}
	if t.chartReads(out.Path, ".Release.Name") {
		out.ReleaseName = cmp.Or(o.ReleaseName, by.Name)
		if out.ReleaseName == path.Base(out.Path) {
			out.ReleaseName = ""
		}
	}
	if by.DestNS != "" && t.chartReads(out.Path, ".Release.Namespace") {
		out.Namespace = by.DestNS
	}
	return out, nil
}

// valueFileOf is a values file as a pipeline file names it.
func valueFileOf(by *appset.Target, name string) (string, error) {
	if strings.Contains(name, "://") {
		return "", fmt.Errorf("it takes values from %s", appset.WithoutCredentials(name))
	}
	ref, rest, isRef := strings.Cut(name, "/")
	if !strings.HasPrefix(ref, "$") {
		return name, nil
	}
	isHere := slices.ContainsFunc(by.Sources, func(s appset.Source) bool { return s.Here && "$"+s.Ref == ref })
	if !isRef || !isHere {
		return "", fmt.Errorf("it takes the values file %s from another repository", name)
	}
	return "/" + rest, nil
}

// values are what an Application says of a chart's values itself.
func (h *helmOptions) values() (pipeline.HelmValues, error) {
	out := h.ValuesObject
	if out == nil && h.Values != "" {
		if err := yaml.Unmarshal([]byte(h.Values), &out); err != nil {
			return nil, fmt.Errorf("its helm.values can't be read: %w", err)
		}
	}
	if len(h.Parameters) > 0 && out == nil {
		out = map[string]any{}
	}
	for _, p := range h.Parameters {
		if err := evaluate.SetParameter(out, p.Name, p.Value, p.ForceString); err != nil {
			return nil, fmt.Errorf("its parameter %s: %w", p.Name, err)
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	// As a pipeline file gives them back.
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	var values pipeline.HelmValues
	return values, json.Unmarshal(raw, (*map[string]any)(&values))
}

// chartReads says that a chart's templates have a text, as those do that read the release's name.
func (t *Tree) chartReads(chart, text string) bool {
	found := false
	_ = fs.WalkDir(t.FS, path.Join(chart, "templates"), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || found || !entry.Type().IsRegular() {
			return nil // what can't be read is told where the chart is built
		}
		data, err := fs.ReadFile(t.FS, name)
		found = err == nil && strings.Contains(string(data), text)
		return nil
	})
	return found
}
