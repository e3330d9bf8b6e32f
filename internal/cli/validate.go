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
		Long: "Checks pipeline files and server files, told apart by their content. Given a server's file too,\n" +
			"pipeline files may name only the channels, Prometheus servers and endpoints that it has.\n\n" +
			"Without files, those of the checkout that the current folder is in: .liftlock.yaml or\n" +
			".liftlock/*.yaml at its root. Then they are resolved too, as far as the checkout alone tells:\n" +
			"templates must fit the targets, what is carried must be there, and a target that follows a tag,\n" +
			"a commit or another branch is reached by no merge. ApplicationSets that need a cluster or a\n" +
			"network are named, and no failure.\n\n" +
			"Prints file:line: messages and exits with 1 when anything is wrong. A warning is none of that:\n" +
			"it names what means something else than it looks like, such as a gate that is always true.",
		RunE: func(cmd *cobra.Command, files []string) error {
			if len(files) == 0 {
				return validateCheckout(cmd)
			}
			bad, err := validateFiles(cmd, files)
			if err == nil && bad {
				return exitError{1}
			}
			return err
		},
	}
}

// validateFiles checks files one by one, and says whether one is wrong.
func validateFiles(cmd *cobra.Command, files []string) (bad bool, err error) {
	names, err := serverNames(files)
	if err != nil {
		return false, err
	}
	for _, f := range files {
		if err := validateFile(f, names); err != nil {
			bad = true
			fmt.Fprintln(cmd.ErrOrStderr(), err)
			continue
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: ok\n", f)
		if err := printWarnings(cmd.ErrOrStderr(), f); err != nil {
			return bad, err
		}
	}
	return bad, nil
}

// validateCheckout checks the pipeline files of the checkout that the current folder is in, and
// what they come to. Outside of a checkout they are looked for in the current folder, and
// nothing more is known.
func validateCheckout(cmd *cobra.Command) error {
	r, err := checkout.Open(cmd.Context(), "", nil)
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
	bad, err := validateFiles(cmd, files)
	if err != nil {
		return err
	}
	if r != nil && !bad {
		found, err := r.Check(cmd.Context())
		if err != nil {
			return err
		}
		for _, p := range appset.GroupProblems(found.Problems, appset.NameFew) {
			fmt.Fprintln(cmd.ErrOrStderr(), appset.Printable(p.String()))
		}
		for _, p := range appset.GroupProblems(found.Unresolved, appset.NameFew) {
			fmt.Fprintln(cmd.ErrOrStderr(), "note: not resolved from the checkout alone: "+appset.Printable(p.String()))
		}
		bad = len(found.Problems) > 0
	}
	if bad {
		return exitError{1}
	}
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
	file := filepath.Join(root, pipeline.FileName)
	if _, err := os.Stat(file); err == nil {
		return []string{file}, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, pipeline.FolderName, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		where := "the current folder"
		if root != "." {
			where = root
		}
		return nil, fmt.Errorf("%w in %s; name the files to check, or see liftlock init", pipeline.ErrNoPipeline, where)
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
