package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
		Long:  "Checks pipeline files and server files, told apart by their content. Without files, those of\nthe checkout in the current folder: .liftlock.yaml or .liftlock/*.yaml.\nThen the targets are checked\ntoo: one that follows a tag, a commit or another branch is reached by no merge.\nPrints file:line: messages and exits with 1 when anything is wrong.",
		RunE: func(cmd *cobra.Command, files []string) error {
			whole := len(files) == 0
			if whole {
				var err error
				if files, err = checkoutFiles(); err != nil {
					return err
				}
			}
			bad := false
			for _, f := range files {
				if err := validateFile(f); err != nil {
					bad = true
					fmt.Fprintln(cmd.ErrOrStderr(), err)
					continue
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: ok\n", f)
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

func validateFile(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if pipeline.LooksLikePipeline(data) {
		return pipeline.ValidateFile(file)
	}
	return config.ValidateFile(file, os.LookupEnv)
}
