package pipeline

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
	"github.com/liftlock/liftlock/policies"
)

// FindWarnings finds doubtful parts of a valid pipeline file on disk, each with file and line. They
// mean something, and most likely not what the author meant. None where the file isn't valid; the
// error is one of reading it.
func FindWarnings(file string) (strictyaml.Errors, error) {
	data, err := strictyaml.ReadFile(os.Open(file))
	if err != nil {
		return nil, fmt.Errorf("read the pipeline file: %w", err)
	}
	documents, err := parseDocuments(file, data)
	if err != nil {
		return nil, nil // ValidateFile says what is wrong
	}
	return warningsOf(documents), nil
}

// FindAllWarnings is FindWarnings for a repository's pipeline files, which Load has read.
func FindAllWarnings(fsys fs.FS) (strictyaml.Errors, error) {
	all, err := loadDocuments(fsys)
	if err != nil {
		return nil, err
	}
	return warningsOf(all), nil
}

func warningsOf(documents []document) (found strictyaml.Errors) {
	for _, d := range documents {
		c := &checker{strictyaml.Checker{Doc: d.Document}}
		for i, e := range d.pipeline.Spec.Environments {
			c.warnOfGates(fmt.Sprintf("spec.environments[%d].gates", i), e.Gates)
		}
		found = append(found, c.Errs...)
	}
	return found
}

func (c *checker) warnOfGates(path string, gates []policies.Gate) {
	for i := range gates {
		for _, w := range gates[i].Warnings() {
			c.Errorf(fmt.Sprintf("%s[%d].%s", path, i, w.Path), "%s", w.Message)
		}
	}
}
