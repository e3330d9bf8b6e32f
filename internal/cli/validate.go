package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cli/checkout"
	"github.com/liftlock/liftlock/internal/config"
	"github.com/liftlock/liftlock/internal/pipeline"
)

func validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate [FILE...]",
		Short: "Check pipeline and server files",
		Long:  "Checks pipeline files and server files, told apart by their content. Given a server's\nfile too, pipeline files may name only the channels, Prometheus servers and endpoints\nthat it has. Without files, those of\nthe checkout in the current folder: .liftlock.yaml or .liftlock/*.yaml.\nThen the targets are checked\ntoo: one that follows a tag, a commit or another branch is reached by no merge.\nPrints file:line: messages and exits with 1 when anything is wrong. A warning is none of that:\nit names what means something else than it looks like, such as a gate that is always true.",
		RunE: func(cmd *cobra.Command, files []string) error {
			whole := len(files) == 0
			if whole {
				var err error
				if files, err = checkoutFiles(); err != nil {
					return err
				}
			}
			bad := false
			names, err := serverNames(files)
			if err != nil {
				return err
			}
			for _, f := range files {
				if err := validateFile(f, names); err != nil {
					bad = true
					fmt.Fprintln(cmd.ErrOrStderr(), err)
					continue
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: ok\n", f)
				if err := printWarnings(cmd.ErrOrStderr(), f); err != nil {
					return err
				}
			}
			if whole && !bad {
				unreached, err := checkout.UnreachedTargets(cmd.Context())
				if err != nil {
					return err
				}
				for _, p := range unreached {
					fmt.Fprintln(cmd.ErrOrStderr(), appset.Printable(p.String()))
				}
				bad = len(unreached) > 0
			}
			if bad {
				return exitError{1}
			}
			return nil
		},
	}
}

func checkoutFiles() ([]string, error) {
	if _, err := os.Stat(pipeline.FileName); err == nil {
		return []string{pipeline.FileName}, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(pipeline.FolderName, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w in the current folder; name the files to check", pipeline.ErrNoPipeline)
	}
	return files, nil
}

// serverNames are the names that pipeline files may use of the one server's file among
// some; nil where there is none, or none that can be read, which is said of that file.
func serverNames(files []string) (*pipeline.ServerNames, error) {
	var names *pipeline.ServerNames
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil || pipeline.LooksLikePipeline(data) {
			continue
		}
		c, err := config.Load(f, os.LookupEnv)
		if err != nil {
			continue
		}
		if names != nil {
			return nil, errors.New("two server's files are given, and which of them runs the pipelines can't be told; check one at a time")
		}
		names = &pipeline.ServerNames{}
		for _, n := range c.Channels {
			names.Channels = append(names.Channels, n.Name)
		}
		for i := range c.Prometheus {
			names.Prometheus = append(names.Prometheus, c.Prometheus[i].Name)
		}
		for i := range c.Endpoints {
			names.Endpoints = append(names.Endpoints, c.Endpoints[i].Name)
		}
		names.NoDeployments = forgesWithoutDeployments(c)
	}
	return names, nil
}

// forgesWithoutDeployments are the types of a server's forges, where none keeps deployments.
func forgesWithoutDeployments(c *config.Config) []string {
	var types []string
	for i := range c.Forges {
		switch t := c.Forges[i].Type; {
		case t == config.GitHub:
			return nil
		case !slices.Contains(types, t):
			types = append(types, t)
		}
	}
	return types
}

// printWarnings prints what a valid pipeline file says that most likely isn't meant; of another
// file nothing.
func printWarnings(w io.Writer, file string) error {
	data, err := os.ReadFile(file)
	if err != nil || !pipeline.LooksLikePipeline(data) {
		return err
	}
	warnings, err := pipeline.FindWarnings(file)
	for _, e := range warnings {
		e.Message = "warning: " + e.Message
		fmt.Fprintln(w, e)
	}
	return err
}

// validateFile checks a file; names are nil where no server's file is known.
func validateFile(file string, names *pipeline.ServerNames) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !pipeline.LooksLikePipeline(data) {
		return config.ValidateFile(file, os.LookupEnv)
	}
	if err := pipeline.ValidateFile(file); err != nil || names == nil {
		return err
	}
	return pipeline.CheckNames(file, *names)
}
