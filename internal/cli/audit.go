package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/console/client"
)

func auditCommand() *cobra.Command {
	r := &serverFlags{}
	var by, verb, env, since, until string
	var limit int
	c := &cobra.Command{
		Use:   "audit [PIPELINE [COMPONENT]]",
		Short: "Show who asked for what, what came of it, and what let merges pass",
		Long: "The audit trail of commands, newest first: by comments, the API and this program, carried out\n" +
			"or refused; every merge, with what each gate answered; and who logged in to the console. With\n" +
			"-o jsonl it is printed as JSON, a line each, for other programs to keep.",
		Example: "  liftlock audit shop web --since 24h\n  liftlock audit --by ada --verb skip\n  liftlock audit shop web " +
			"--verb merge --environment prod\n  liftlock audit --limit 100000 -o jsonl > audit.jsonl",
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: r.completeArguments(namesPipeline, namesComponent),
		RunE: func(cmd *cobra.Command, args []string) error {
			q := client.AuditQuery{Repository: r.repository, Actor: by, Verb: verb, Environment: env, Limit: limit}
			var err error
			if q.Since, err = parseMoment("--since", since); err != nil {
				return err
			}
			if q.Until, err = parseMoment("--until", until); err != nil {
				return err
			}
			if limit < 1 {
				return fmt.Errorf("--limit is how many entries to show, 1 or more, not %d", limit)
			}
			if len(args) > 0 {
				q.Pipeline = args[0]
			}
			if len(args) > 1 {
				q.Component = args[1]
			}
			cl, err := r.newClient()
			if err != nil {
				return err
			}
			entries, err := cl.Audit(cmd.Context(), q)
			if err != nil {
				return err
			}
			if r.output == formatLines {
				return client.WriteAuditLines(cmd.OutOrStdout(), entries)
			}
			return r.printAnswer(cmd.OutOrStdout(), entries, func(w io.Writer) error { return client.PrintAudit(w, entries, r.isWide()) })
		},
	}
	c.Flags().StringVar(&by, "by", "", "whose: a login, or a token's name")
	c.Flags().StringVar(&verb, "verb", "", "which command: hold, promote, skip, …; or merge, login, logout")
	c.Flags().StringVar(&env, "environment", "", "about which environment")
	completeFlag(c, "environment", r.completeEnvironments)
	c.Flags().StringVar(&since, "since", "", "from then on: 24h, a date (when it begins in UTC) or a time with its offset")
	c.Flags().StringVar(&until, "until", "", "before then, likewise")
	c.Flags().IntVar(&limit, "limit", 50, "how many at most")
	return r.addOutputFlag(r.addFlags(c), formatLines)
}

// parseMoment reads how long ago, a date or a time.
func parseMoment(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return time.Now().Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is how long ago (24h), a date (2026-03-02) or a time (2026-03-02T09:00:00Z), not %q", flag, s)
}
