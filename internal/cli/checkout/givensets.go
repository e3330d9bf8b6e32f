package checkout

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// findGiven takes the ApplicationSets of manifests that were named. Where a chart of the tree makes
// exactly them, the pipeline file names the chart; where the tree has the files, it names these.
// Else it names them as they run, because nothing in the repository says what they are.
func (d *deployed) findGiven(ctx context.Context) error {
	var given []map[string]any
	for _, f := range d.query.Files {
		found, err := readSets(f)
		if err != nil {
			return err
		}
		given = append(given, found...)
	}
	if files, ok := d.filesInTree(); ok {
		return d.take(ctx, &runningSets{kind: kindApplicationSet, files: files})
	}
	chart, err := d.chartThatMakes(ctx, given)
	if err != nil {
		return err
	}
	if chart != nil {
		return d.take(ctx, &runningSets{kind: kindApplicationSet, charts: []installedChart{*chart}})
	}
	var sets []appset.LiveSet
	for _, set := range given {
		raw, err := json.Marshal(set)
		if err != nil {
			return fmt.Errorf("write down an ApplicationSet: %w", err)
		}
		metadata, _ := set["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		namespace, _ := metadata["namespace"].(string)
		sets = append(sets, appset.LiveSet{Namespace: cmp.Or(namespace, "argocd"), Name: name, Object: raw})
	}
	return d.findGivenLive(ctx, sets)
}

// findGivenLive takes ApplicationSets that were named as those that run.
func (d *deployed) findGivenLive(ctx context.Context, sets []appset.LiveSet) error {
	state := &argocd.SetsAndProjects{}
	for _, set := range sets {
		state.Sets = append(state.Sets, argocd.ApplicationSet{Namespace: set.Namespace, Name: set.Name, Object: set.Object})
		d.query.Known.given = append(d.query.Known.given, appset.LiveSet{Namespace: set.Namespace, Name: set.Name, Object: set.Object})
	}
	return d.findLive(ctx, state)
}

// readSets are the ApplicationSets of a manifest, those in lists as well.
func readSets(f File) ([]map[string]any, error) {
	documents, err := readDocuments(f.Data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	for i := 0; i < len(documents); i++ {
		documents = append(documents, itemsOf(documents[i])...)
	}
	sets := objectsAmong(documents, kindApplicationSet)
	if len(sets) == 0 {
		return nil, fmt.Errorf("%s holds no ApplicationSet", f.Name)
	}
	return sets, nil
}

// itemsOf are a list's objects; what is no list has none.
func itemsOf(document json.RawMessage) []json.RawMessage {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	_ = json.Unmarshal(document, &list) // what isn't a list has no items
	return list.Items
}

// readDocuments are a manifest's documents as JSON, up to one that can't be read.
func readDocuments(data []byte) (out []json.RawMessage, err error) {
	reader := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var object map[string]any
		if err := reader.Decode(&object); isEnd(err) {
			return out, nil
		} else if err != nil {
			return out, err
		}
		raw, err := json.Marshal(object)
		if err != nil {
			return out, err
		}
		out = append(out, raw)
	}
}

// filesInTree are the files that were named, where the tree has all of them.
func (d *deployed) filesInTree() (out []string, ok bool) {
	for _, f := range d.query.Files {
		file, inside := d.repository.pathOf(f.Path)
		if !inside {
			return nil, false
		}
		if _, err := fs.Stat(d.tree.FS, file); err != nil {
			return nil, false
		}
		out = append(out, file)
	}
	return appset.SortedUnique(out), true
}

// maxTried bounds how many ways are tried to build what was given.
const maxTried = 40

// chartThatMakes is a chart of the tree that makes exactly these sets, by itself or with one of the
// values files that lie beside its own. It is nil where none does.
func (d *deployed) chartThatMakes(ctx context.Context, given []map[string]any) (*installedChart, error) {
	_, templates, err := d.tree.findManifests(ctx, kindApplicationSet)
	if err != nil {
		return nil, err
	}
	var charts []string
	for _, name := range templates {
		charts = append(charts, d.tree.chartOf(name))
	}
	build, tried := d.repository.manifestBuilder(nil, d.tree), 0
	for _, chart := range appset.SortedUnique(charts) {
		for _, files := range d.tree.valueFilesOf(chart) {
			if tried++; tried > maxTried {
				return nil, nil
			}
			c, q, err := chartToBuild(chart, files)
			if err != nil {
				return nil, err
			}
			built, err := build(ctx, d.tree.FS, q)
			if ctx.Err() != nil {
				return nil, fmt.Errorf("build the chart %s: %w", chart, ctx.Err())
			}
			if err == nil && isSameObjects(objectsAmong(built.Objects, kindApplicationSet), given) {
				return c, nil
			}
		}
	}
	return nil, nil
}

// chartToBuild is a chart with some values files, and the request to build it so.
func chartToBuild(path string, files []string) (*installedChart, appset.BuildRequest, error) {
	c := &installedChart{HelmSource: pipeline.HelmSource{Path: path, ValueFiles: files}}
	c.SetDefaults()
	q, err := appset.NewBuildRequest(pipeline.ManifestSource{Helm: &c.HelmSource})
	return c, q, err
}

// valueFilesOf are the values files that a chart may be given: none, or one that lies beside its own.
func (t *Tree) valueFilesOf(chart string) [][]string {
	out := [][]string{nil}
	entries, err := fs.ReadDir(t.FS, chart)
	if err != nil {
		return out // the build says what is wrong
	}
	for _, e := range entries {
		isValues := slices.Contains([]string{".yaml", ".yml"}, path.Ext(e.Name())) &&
			!slices.Contains([]string{"Chart.yaml", "values.yaml"}, e.Name())
		if e.Type().IsRegular() && isValues {
			out = append(out, []string{e.Name()})
		}
	}
	return out
}
