package cli

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/fieldedit"
)

// exitNothing is the code of --exit-code when there was nothing to do.
const exitNothing = 3

// setAnswer is what set prints for programs.
type setAnswer struct {
	Changes []fieldedit.Change `json:"changes"` // none: there was nothing to do
}

func setCommand() *cobra.Command {
	var images []string
	var existing, exitCode bool
	var format formatFlag
	c := &cobra.Command{
		Use:   "set FILE [PATH=VALUE...] [--image NAME=TAG]",
		Short: "Set fields in a YAML, kustomization or JSON file, byte for byte",
		Long: "Sets fields and leaves every other byte as it is: what a build job runs to release into dev.\n" +
			"PATH is dotted (image.tag, hosts[0].name, containers[name=web].image), a JSON Pointer (with a\n" +
			"leading slash) or simple JSONPath ($.images[?(@.name=='web')].tag). A file that can't be edited\n" +
			"surely is refused and left untouched.\n\n" +
			"A key that isn't there is added, and a warning says which one was probably meant; with\n" +
			"--existing it is refused, as in a build job, whose paths are always there.",
		Example: "  liftlock set overlays/dev/kustomization.yaml --image registry.example/web=1.4.2\n  liftlock set values.yaml " +
			"image.tag=1.4.2",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := format.forPrograms()
			if err != nil {
				return err
			}
			ops := make([]fieldedit.Op, 0, len(args)+len(images))
			for _, a := range args[1:] {
				op, err := fieldedit.ParseOp(a)
				if err != nil {
					return err
				}
				ops = append(ops, op)
			}
			for _, a := range images {
				op, err := fieldedit.ParseImageOp(a)
				if err != nil {
					return err
				}
				ops = append(ops, op)
			}
			if len(ops) == 0 {
				return fmt.Errorf("nothing to set: give PATH=VALUE or --image NAME=TAG")
			}
			changes, warnings, err := setFile(args[0], ops, existing)
			if err != nil {
				return err
			}
			for _, w := range warnings {
				fmt.Fprintln(cmd.ErrOrStderr(), "warning: "+w)
			}
			if data != nil {
				if err := data(cmd.OutOrStdout(), setAnswer{listed(changes)}); err != nil {
					return err
				}
			} else {
				for _, line := range fieldedit.ChangeLines(changes) {
					fmt.Fprintln(cmd.OutOrStdout(), line)
				}
			}
			if exitCode && len(changes) == 0 {
				return exitError{exitNothing}
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(&images, "image", nil, "image of a kustomization: NAME=TAG, NAME=NEWNAME:TAG, either with @DIGEST, or "+
		"NAME@DIGEST; may be repeated")
	format.addFlag(c)
	c.Flags().BoolVar(&existing, "existing", false, "refuse a path that isn't in the file, instead of adding it")
	c.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 3 when there was nothing to do")
	return c
}

// setFile sets fields in a file. Where nothing changes the file isn't written. A path that isn't in
// the file is refused where all must be existing ones. Else there are warnings for paths that were
// added beside a key of nearly that name, and for values that are set beside one of the same name.
func setFile(file string, ops []fieldedit.Op, existing bool) (changes []fieldedit.Change, warnings []string, err error) {
	f, err := openPlainFile(file)
	if err != nil {
		return nil, nil, err
	}
	name, shown := filepath.ToSlash(file), fieldedit.DisplayFileName(file)
	after, changes, err := fieldedit.Set(f.data, name, ops)
	if err != nil || bytes.Equal(after, f.data) {
		return changes, nil, err
	}
	missing, err := fieldedit.FindMissing(f.data, name, ops)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range missing {
		switch {
		case existing:
			return nil, nil, m.Refuse(name)
		case m.Spelled != "":
			warnings = append(warnings, fmt.Sprintf("%s was added to %s; did you mean %s, which is there? --existing refuses what isn't",
				m.Path, shown, m.Spelled))
		case m.Near() != "":
			warnings = append(warnings, fmt.Sprintf("%s was added to %s; did you mean %q, which is there? --existing refuses what isn't",
				m.Path, shown, m.Near()))
		}
	}
	beside, err := fieldedit.FindOtherSpellings(f.data, name, ops)
	if err != nil {
		return nil, nil, err
	}
	for _, b := range beside {
		warnings = append(warnings, fmt.Sprintf("%s was set in %s, which also has %s: that one stays as it is", b.Path, shown, b.Spelled))
	}
	return changes, warnings, f.replace(after)
}
