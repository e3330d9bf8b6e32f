package pipeline

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
)

// ServerNames are the names of a server's file that pipeline files may use.
type ServerNames struct {
	Channels   []string // of notify
	Prometheus []string // of the gate metric
	Endpoints  []string // of the gate http
	// NoDeployments are the types of the forges, where none of them keeps deployments.
	NoDeployments []string
}

// CheckNames checks that a valid pipeline file on disk uses only names that a server's
// file has. The error is a [strictyaml.Errors], or one of reading the file.
func CheckNames(file string, names ServerNames) error {
	data, err := strictyaml.ReadFile(os.Open(file))
	if err != nil {
		return fmt.Errorf("read the pipeline file: %w", err)
	}
	documents, err := parseDocuments(file, data)
	if err != nil {
		return err
	}
	return checkNames(documents, names)
}

// CheckAllNames is CheckNames for a repository's pipeline files, which Load has read.
func CheckAllNames(fsys fs.FS, names ServerNames) error {
	all, err := loadDocuments(fsys)
	if err != nil {
		return err
	}
	return checkNames(all, names)
}

func checkNames(documents []document, names ServerNames) error {
	var errs strictyaml.Errors
	for _, d := range documents {
		c := &checker{strictyaml.Checker{Doc: d.Document}}
		if d.pipeline.Spec.Deployments && len(names.NoDeployments) > 0 {
			c.Errorf("spec.deployments", "no forge of the server's file keeps deployments (%s): leave it out",
				strings.Join(names.NoDeployments, ", "))
		}
		for i, n := range d.pipeline.Spec.Notify {
			c.checkServerName(fmt.Sprintf("spec.notify[%d].to", i), "channel", n.To, names.Channels)
		}
		for i, e := range d.pipeline.Spec.Environments {
			for k, g := range e.Gates {
				at := fmt.Sprintf("spec.environments[%d].gates[%d]", i, k)
				if g.Metric != nil {
					c.checkServerName(at+".metric.prometheus", "prometheus", g.Metric.Prometheus, names.Prometheus)
				}
				if g.HTTP != nil {
					c.checkServerName(at+".http.endpoint", "endpoint", g.HTTP.Endpoint, names.Endpoints)
				}
			}
		}
		errs = append(errs, c.Errs...)
	}
	return errs.Err()
}

// checkServerName checks one name of a kind.
func (c *checker) checkServerName(path, kind, name string, known []string) {
	for _, k := range known {
		if k == name {
			return
		}
	}
	c.Errorf(path, "the server's file has no %s %q%s", kind, name, strictyaml.DidYouMean(name, known))
}
