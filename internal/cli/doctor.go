package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/config"
	"github.com/liftlock/liftlock/internal/server"
	"github.com/liftlock/liftlock/internal/server/doctor"
)

func doctorCommand() *cobra.Command {
	var file, output string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check the machine, the forges and the repositories, and say what to change",
		Long: "Checks what the server's file names, as the server would use it: this machine, the forges'\n" +
			"credentials, the repositories and their webhooks. Run it before serve, and when something\n" +
			"doesn't happen. It reads, and changes nothing.\n\n" +
			"Each line is ok, warn (works, but less well), FAIL (doesn't work) or unknown (couldn't be\n" +
			"read), with what to change and a code that stays the same from version to version.\n" +
			"Exits with 0 when all is ok or warn, 1 when something FAILs, 3 when something is unknown.",
		Example: "  liftlock doctor --config liftlock.yaml\n  liftlock doctor -o json | jq -r '.findings[] | select(.level != \"ok\") | .code'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("-o: %q is neither text nor json", output)
			}
			report := examine(cmd, file)
			write := report.WriteText
			if output == "json" {
				write = report.WriteJSON
			}
			if err := write(cmd.OutOrStdout()); err != nil {
				return err
			}
			if code := report.ExitCode(); code != doctor.ExitWell {
				return exitError{code}
			}
			return nil
		},
	}
	c.Flags().StringVar(&file, "config", "liftlock.yaml", "the server's file")
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return c
}

// examine checks what the server's file names; a file that can't be used is what was found then.
func examine(cmd *cobra.Command, file string) *doctor.Report {
	cfg, err := config.Load(file, os.LookupEnv)
	if err != nil {
		return doctor.InvalidFile(err)
	}
	report, err := server.Doctor(cmd.Context(), server.Options{Config: cfg, Version: Version()})
	if err != nil {
		return doctor.InvalidFile(err)
	}
	return report
}
