package appset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/wording"
)

const kindApplication = "Application"

// manifestFile is what a file has, or what is built of files in its stead.
type manifestFile struct {
	name    string
	madeOf  []string
	objects []json.RawMessage
}

// resolveApplications takes the plain Applications of one entry of applications.
func (r *Resolver) resolveApplications(ctx context.Context, in *Input, i int, e *pipelineEntry, c *commit) setOutcome {
	a := &in.Pipeline.Spec.Applications[i]
	if a.Live != nil {
		return r.resolveLiveApplications(ctx, in, i, e, c)
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	files, o := in.readApplications(ctx, i)
	count := 0
	for _, f := range files {
		s := &appSet{file: f.name, madeOf: f.madeOf}
		for _, raw := range f.objects {
			count++
			g, unknown, err := decodeApplication(raw)
			if err != nil {
				o.problems = append(o.problems, Problem{File: f.name, Message: fmt.Sprintf("an Application: %v", err)})
				continue
			}
			if unknown != nil {
				o.problems = append(o.problems, s.newProblem(g.app.Name, unknown.Error()))
			}
			before := len(o.problems)
			t := e.buildTarget(in, s, g, c.isThisRepository, &o)
			for n := before; n < len(o.problems); n++ {
				o.problems[n].Message += plainParamsHint
			}
			o.targets = append(o.targets, t)
		}
	}
	at := fmt.Sprintf("applications[%d]", i)
	switch m := a.Manifests(); {
	case count > 0, len(o.problems) > 0:
	case m.IsBuilt():
		o.problems = []Problem{in.missingAmong(at, kindApplication, m, &Built{Objects: files[0].objects})}
	case len(files) > 0: // none: a later entry has all that this one matches
		var names []string
		for _, f := range files {
			names = append(names, f.name)
		}
		o.problems = []Problem{{File: in.Pipeline.File, Message: fmt.Sprintf("%s.path %q: no Application in %s", at, m.Path,
			wording.JoinFew(names, 3))}}
	}
	return o
}

// plainParamsHint explains a template's error over an Application that no set makes.
const plainParamsHint = "; it is a plain Application, which has no generator parameters: write the template over .application, as in {{ " +
	".application.metadata.labels.team }}"

// readApplications reads the Applications of one entry's files, or builds them.
func (in *Input) readApplications(ctx context.Context, i int) (files []manifestFile, o setOutcome) {
	at, m := fmt.Sprintf("applications[%d]", i), in.Pipeline.Spec.Applications[i].Manifests()
	if m.IsBuilt() {
		file, built, problem, transient := in.buildEntry(ctx, at, m)
		o.transient = transient
		if problem != nil {
			o.problems = []Problem{*problem}
			return nil, o
		}
		return []manifestFile{{name: file, madeOf: built.Files, objects: applicationsAmong(built.Objects)}}, o
	}
	names, err := globManifests(in.Tree, m.Path)
	if err == nil && len(names) == 0 {
		err = errors.New("no file of that path exists" + describeFolder(in.Tree, m.Path))
	}
	if err != nil {
		o.transient = errors.Is(err, errTree)
		o.problems = []Problem{{File: in.Pipeline.File, Message: fmt.Sprintf("%s.path %q: %v", at, m.Path, err)}}
		return nil, o
	}
	later := in.Pipeline.Spec.Applications[i+1:]
	for _, name := range names {
		if slices.ContainsFunc(later, func(a pipeline.ApplicationSource) bool {
			ok, err := doublestar.Match(path.Clean(a.Path), name)
			return a.Path != "" && err == nil && ok
		}) {
			continue // of the entries that match it the last one has it, as with ApplicationSets
		}
		objects, err := readDocuments(in.Tree, name)
		if err != nil {
			o.transient = o.transient || errors.Is(err, errTree)
			o.problems = append(o.problems, Problem{File: name, Message: err.Error()})
		}
		files = append(files, manifestFile{name: name, objects: applicationsAmong(objects)})
	}
	return files, o
}

// applicationsAmong are the Applications of some objects, those in lists too.
func applicationsAmong(objects []json.RawMessage) (out []json.RawMessage) {
	for _, raw := range objects {
		var meta struct {
			APIVersion string            `json:"apiVersion"`
			Kind       string            `json:"kind"`
			Items      []json.RawMessage `json:"items"`
		}
		_ = json.Unmarshal(raw, &meta) // what has no kind is none
		switch meta.Kind {
		case kindApplication:
			if meta.APIVersion == apiVersion {
				out = append(out, raw)
			}
		case "List", kindApplication + "List":
			out = append(out, applicationsAmong(meta.Items)...)
		}
	}
	return out
}
