package cli

import (
	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/server"
	"github.com/liftlock/liftlock/internal/server/doctor"
)

func doctorCommand() *cobra.Command {
	var file string
	var probe bool
	var format formatFlag
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check an installation, and say what to change",
		Long: "Checks what the server's file names, as the server would use it: this machine, the forges'\n" +
			"credentials, the repositories with their webhooks and the rules of their branches, the\n" +
			"pipelines with their gates, and what may be done in Argo CD. Run it before serve, and when\n" +
			"something doesn't happen. It reads, and changes nothing; with --probe it also pushes a branch to\n" +
			"each repository, gives its commit a status, and deletes it.\n\n" +
			"Each line is ok, warn (works, but less well), FAIL (doesn't work) or unknown (couldn't be\n" +
			"read), with what to change and a code that stays the same from version to version.\n" +
			"Exits with 0 when all is ok or warn, 1 when something FAILs, 3 when something is unknown.",
		Example: "  liftlock doctor --config liftlock.yaml\n  liftlock doctor -o json | jq -r '.findings[] | select(.level != \"ok\") | " +
			".code'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			data, err := format.forPrograms()
			if err != nil {
				return err
			}
			report := examine(cmd, file, probe)
			if data != nil {
				err = data(cmd.OutOrStdout(), report.Document())
			} else {
				err = printPainted(cmd.OutOrStdout(), hasColours(cmd.OutOrStdout()), paintFindings, report.WriteText)
			}
			if err != nil {
				return err
			}
			if code := report.ExitCode(); code != doctor.ExitWell {
				return exitError{code}
			}
			return nil
		},
	}
	c.Flags().StringVar(&file, "config", "liftlock.yaml", "the server's file")
	format.addFlag(c)
	c.Flags().BoolVar(&probe, "probe", false, "push a branch, set a commit status and delete the branch, to see that it may be done")
	return c
}

// examine checks what the server's file names; a file that can't be used is a finding.
func examine(cmd *cobra.Command, file string, probe bool) *doctor.Report {
	cfg, err := loadServerFile(file)
	if err != nil {
		return doctor.InvalidFile(err)
	}
	report, err := server.Doctor(cmd.Context(), server.Options{Config: cfg, Version: Version()}, probe)
	if err != nil {
		return doctor.InvalidFile(err)
	}
	return report
}
