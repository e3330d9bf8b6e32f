package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/cli/checkout"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
	"github.com/liftlock/liftlock/internal/server/config"
)

func validateCommand() *cobra.Command {
	var format formatFlag
	var beside knownFlags
	var address addressFlags
	c := &cobra.Command{
		Use:   "validate [FILE...]",
		Short: "Check pipeline and server files",
		Long: "Checks pipeline files and server files, told apart by their content. Given a server's file too,\n" +
			"pipeline files may name only the channels, Prometheus servers and endpoints that it has.\n\n" +
			"Without files, those of the checkout that the current folder is in: .liftlock.yaml or\n" +
			".liftlock/*.yaml at its root. Then they are resolved too, as far as the checkout alone tells:\n" +
			"templates must fit the targets, what is carried must be there, and a target that follows a tag,\n" +
			"a commit or another branch is reached by no merge. ApplicationSets that need a cluster or a\n" +
			"network are named, and no failure; Argo CD's clusters are those of --clusters or of the file\n" +
			"that the pipeline file names as clusters.\n\n" +
			"Prints file:line: messages and exits with 1 when anything is wrong. A warning is none of that:\n" +
			"it names what means something else than it looks like, such as a gate that is always true.",
		Example: "  liftlock validate\n  liftlock validate .liftlock.yaml liftlock.yaml\n  liftlock validate -o json | jq -r " +
			"'.problems[].message'",
		RunE: func(cmd *cobra.Command, files []string) error {
			data, err := format.forPrograms()
			if err != nil {
				return err
			}
			v := newValidation()
			switch {
			case len(files) == 0:
				err = v.checkCheckout(cmd.Context(), &address, &beside)
			case beside != (knownFlags{}) || len(address.urls)+len(address.checkouts) > 0:
				err = errors.New("--clusters, --placements, --checkout and --repo-url are for the pipelines of a checkout, and files " +
					"that are named are checked by themselves: leave the files out, or the flags")
			default:
				err = v.checkFiles(files)
			}
			if err != nil {
				return err
			}
			if data == nil {
				v.print(cmd.OutOrStdout(), cmd.ErrOrStderr())
			} else if err := data(cmd.OutOrStdout(), v); err != nil {
				return err
			}
			if len(v.Problems) > 0 {
				return exitError{1}
			}
			return nil
		},
	}
	format.addFlag(c)
	beside.addFlags(c, "")
	address.addFlags(c)
	return c
}

// checkFiles checks files one by one. The error is that they can't be checked.
func (v *validation) checkFiles(files []string) error {
	names, err := serverNames(files)
	if err != nil {
		return err
	}
	for _, f := range files {
		invalid := validateFile(f, names)
		var warnings strictyaml.Errors
		if invalid == nil {
			if warnings, err = findWarnings(f); err != nil {
				return err
			}
		}
		v.addFile(f, invalid, warnings)
	}
	return nil
}

// checkCheckout checks the pipeline files of the checkout that the current folder is in, and
// what they come to. Outside of a checkout they are looked for in the current folder, and
// nothing more is known than what the flags name.
func (v *validation) checkCheckout(ctx context.Context, address *addressFlags, beside *knownFlags) error {
	if beside.clusters == clustersLive {
		return errors.New("--clusters live: validate asks no running Argo CD; give it a file")
	}
	var known checkout.Known
	if err := beside.read(&known); err != nil {
		return err
	}
	r, err := address.open(ctx, "")
	if err != nil && !errors.Is(err, checkout.ErrNoRepository) {
		return err
	}
	root := "."
	if err == nil {
		defer r.Close() // only read
		if root, err = relativeRoot(r.Dir()); err != nil {
			return err
		}
	}
	files, err := checkoutFiles(root)
	if err != nil {
		return err
	}
	if err := v.checkFiles(files); err != nil || r == nil || len(v.Problems) > 0 {
		return err
	}
	found, err := r.Check(ctx, known)
	if err != nil {
		return err
	}
	v.addResolution(found.Problems, found.Unresolved)
	return nil
}

// relativeRoot is a checkout's root as seen from the current folder: shorter, and what people
// can click.
func relativeRoot(root string) (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if here, err = filepath.EvalSymlinks(here); err != nil {
		return "", err
	}
	rel, err := filepath.Rel(here, root)
	if err != nil {
		return root, nil // on another volume
	}
	return rel, nil
}

// checkoutFiles are the pipeline files of a root.
func checkoutFiles(root string) ([]string, error) {
	files, err := pipeline.FindFiles(os.DirFS(root))
	switch {
	case errors.Is(err, pipeline.ErrNoPipeline):
		where := "the current folder"
		if root != "." {
			where = root
		}
		return nil, fmt.Errorf("%w in %s; name the files to check, or see liftlock init", pipeline.ErrNoPipeline, where)
	case err != nil:
		return nil, err
	}
	for i := range files {
		files[i] = filepath.Join(root, files[i])
	}
	return files, nil
}

// serverNames are the names that pipeline files may use of the one server's file among some. It is
// nil where there is none, or none that can be read, which is reported for that file.
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

// findWarnings finds what a valid file says that most likely isn't meant.
func findWarnings(file string) (strictyaml.Errors, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if !pipeline.LooksLikePipeline(data) {
		return config.FindWarnings(file, os.LookupEnv)
	}
	return pipeline.FindWarnings(file)
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
