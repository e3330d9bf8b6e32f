package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/world/emulator/playground"
)

func playgroundCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "playground",
		Short: "Run a forge and an Argo CD on this machine, empty, to learn with",
		Long: "Starts a forge emulator (real Git over HTTP, GitHub's REST API) with an empty repository, a registry\n" +
			"of images, and a simulated Argo CD that applies the ApplicationSets which you push to its folder\n" +
			playground.SetsFolder + ". A file for your shell has all addresses and tokens. It runs until Ctrl-C; nothing of it is\n" +
			"kept but the folder. The tutorial goes through the whole job with it.",
		Example: "  liftlock playground --dir playground\n  . playground/env",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runPlayground(cmd.Context(), cmd.OutOrStdout(), dir)
		},
	}
	c.Flags().StringVar(&dir, "dir", "playground", "where it lives: a folder that is empty, or isn't there yet")
	return c
}

func runPlayground(ctx context.Context, out io.Writer, dir string) (err error) {
	p, err := playground.New(ctx, playground.Options{Dir: dir, Report: func(line string) { fmt.Fprintln(out, line) }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	shown := p.EnvFile
	if here, err := os.Getwd(); err == nil {
		if r, err := filepath.Rel(here, shown); err == nil {
			shown = r
		}
	}
	fmt.Fprintf(out, "The forge is at %s, with the empty repository %s.\n", p.Forge.URL(), playground.Repository)
	fmt.Fprintf(out, "Argo CD applies what is pushed to its folder %s/.\n", playground.SetsFolder)
	fmt.Fprintf(out, "Addresses and tokens, for your shell: . %s\n", shown)
	fmt.Fprintf(out, "Once you run a server there, this link logs you in to its console: %s\n", loginLink(p.ServerURL, playground.APIToken))
	fmt.Fprintln(out, "It runs until Ctrl-C.")
	return p.Run(ctx)
}
