package pipeline

import (
	"errors"
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
	"github.com/liftlock/liftlock/internal/wording"
)

// Parse reads the pipelines of one file, one a document, with their defaults
// filled in. file is from the repository's root. The error is a
// [strictyaml.Errors] with everything that is wrong, and then no pipeline is
// returned: a file is in force as a whole or not at all.
func Parse(file string, data []byte) ([]*Pipeline, error) {
	documents, err := parseDocuments(file, data)
	if err != nil {
		return nil, err
	}
	if err := findDuplicateNames(documents).Err(); err != nil {
		return nil, err
	}
	return pipelinesOf(documents), nil
}

// document is a pipeline with the positions of its values.
type document struct {
	*strictyaml.Document
	pipeline *Pipeline
}

func pipelinesOf(documents []document) []*Pipeline {
	var all []*Pipeline
	for _, d := range documents {
		all = append(all, d.pipeline)
	}
	return all
}

func parseDocuments(file string, data []byte) ([]document, error) {
	docs, err := strictyaml.Parse(file, data)
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		return nil, strictyaml.Errors{{File: file, Message: "the file is empty; a pipeline file begins with apiVersion: " + APIVersion}}
	}
	var all []document
	var errs strictyaml.Errors
	for _, d := range docs {
		p := &Pipeline{File: file}
		var found strictyaml.Errors
		if err := d.Decode(p, strictyaml.UnsupportedKeys(unsupportedKeys)); err != nil && !errors.As(err, &found) {
			return nil, fmt.Errorf("read the pipeline file %s: %w", file, err)
		}
		if kind := describeOtherKind(p); kind != "" {
			errs = append(errs, d.Errorf("", "%s is no pipeline file, which has apiVersion: %s and kind: %s", kind, APIVersion, Kind))
			continue
		}
		errs = append(errs, found...)
		errs = append(errs, strictyaml.DropSameLineErrors(validatePipeline(d, p), found)...)
		p.applyDependentDefaults()
		all = append(all, document{Document: d, pipeline: p})
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return all, nil
}

// describeOtherKind says what kind of object a document is, where it is another one's; "" where it means to be a
// pipeline.
func describeOtherKind(p *Pipeline) string {
	group, _, _ := strings.Cut(p.APIVersion, "/")
	ours, _, _ := strings.Cut(APIVersion, "/")
	switch {
	case p.APIVersion == "" || p.Kind == "" || p.Kind == Kind || group == ours:
		return ""
	case group == "argoproj.io":
		return fmt.Sprintf("this is Argo CD's %s: name its path in a pipeline file, under applicationSets or applications; it",
			wording.ClipLine(p.Kind, maxNameLength))
	}
	return fmt.Sprintf("this %s of %s", wording.ClipLine(p.Kind, maxNameLength), wording.ClipLine(p.APIVersion, maxNameLength))
}

// findDuplicateNames reports pipelines that have the name of an earlier one.
func findDuplicateNames(documents []document) strictyaml.Errors {
	var errs strictyaml.Errors
	first := map[string]document{}
	for _, d := range documents {
		name := d.pipeline.Name()
		before, repeated := first[name]
		if !repeated {
			first[name] = d
			continue
		}
		where := before.Errorf("metadata.name", "")
		errs = append(errs, d.Errorf("metadata.name", "the pipeline %q is already defined at %s:%d", name, where.File, where.Line))
	}
	return errs
}
