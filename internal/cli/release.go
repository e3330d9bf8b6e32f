package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cli/checkout"
	"github.com/liftlock/liftlock/internal/controller/plan"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/wording"
)

func releaseCommand() *cobra.Command {
	var at checkoutFlags
	var q checkout.ReleaseQuery
	var images, charts []string
	var exitCode bool
	var pull pullRequestFlags
	c := &cobra.Command{
		Use:   "release COMPONENT --into ENVIRONMENT --image NAME:TAG",
		Short: "Release a version into a source environment: find its fields, commit and push",
		Long: "Finds by the pipeline file which fields of a component's source environment name an image or a\n" +
			"chart, sets them byte for byte, commits that alone on the branch as the remote has it now, and\n" +
			"pushes. It is what a build job runs to release into dev, and needs a clone with its history and\n" +
			"the right to push, and no server. The working tree stays as it is.\n\n" +
			"Where somebody else's push comes first, it composes the commit anew on that and tries again. A\n" +
			"change that would reach another environment is refused. Git's own credentials and identity count.\n\n" +
			"With --pull-request the commit goes to the branch release/ENVIRONMENT/COMPONENT, and a pull request from\n" +
			"that is opened, or brought up to date. It needs a token that may open pull requests.\n\n" +
			"Exits with 0 when it is done or there was nothing to do (--exit-code: 3 for nothing), and with 1\n" +
			"when it was refused; then nothing was pushed.",
		Example: "  liftlock release web --into dev --image registry.example/web:1.4.2\n" +
			"  liftlock release web --into dev --image registry.example/web:1.4.2@sha256:…\n" +
			"  liftlock release web --into dev --chart oci://registry.example/charts/web=3.2.0",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := pull.checkFlags(cmd); err != nil {
				return err
			}
			write, err := chooseFormat(at.output, writeReleased, appset.WriteYAML[*checkout.Released], appset.WriteJSON[*checkout.Released])
			if err != nil {
				return err
			}
			if q.Versions, err = parseVersions(images, charts); err != nil {
				return err
			}
			for _, who := range q.CoAuthors {
				if !coAuthor.MatchString(who) {
					return fmt.Errorf("--co-author %s: write it like 'Ada <ada@example.com>'", wording.ClipLine(who, 200))
				}
			}
			if q.Component = args[0]; q.Environment == "" {
				return errors.New("say with --into which source environment the release comes into")
			}
			if q.Known, err = at.loadKnown(cmd.Context(), false); err != nil {
				return err
			}
			r, err := at.address.open(cmd.Context(), at.repo)
			if err != nil {
				return err
			}
			defer r.Close() // what counts was pushed, or wasn't
			q.Now, q.PullRequest = time.Now, pull.open
			released, err := pull.release(cmd.Context(), r, q)
			if err != nil {
				return err
			}
			if err := write(cmd.OutOrStdout(), released); err != nil {
				return err
			}
			if exitCode && released.Commit == "" {
				return exitError{exitNothing}
			}
			return nil
		},
	}
	at.addFlags(c)
	c.Flags().StringVar(&q.Environment, "into", "", "the source environment (required)")
	c.Flags().StringArrayVar(&images, "image", nil, "an image: NAME:TAG, NAME:TAG@DIGEST, or NAME@DIGEST; may be repeated")
	c.Flags().StringArrayVar(&charts, "chart", nil, "a chart: oci://REGISTRY/CHART=VERSION, or https://REPOSITORY#CHART=VERSION; may be "+
		"repeated")
	c.Flags().StringVarP(&q.Message, "message", "m", "", "the commit's message instead of one that says what is released")
	c.Flags().StringArrayVar(&q.CoAuthors, "co-author", nil, "who released, as 'NAME <EMAIL>': an author of the release too; may be "+
		"repeated")
	c.Flags().StringVar(&q.Pipeline, "pipeline", "", "the component of this pipeline")
	completeFlag(c, "pipeline", completePipelines)
	c.Flags().BoolVar(&q.DryRun, "dry-run", false, "show what would be committed, and push nothing")
	c.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 3 when there was nothing to do")
	pull.addFlags(c, "open a pull request with the release on origin's forge, or bring the open one up to date")
	return c
}

// release releases, and opens the pull request where there is to be one. Whether it can be opened is looked at before anything
// is pushed.
func (p *pullRequestFlags) release(ctx context.Context, r *checkout.Repository, q checkout.ReleaseQuery) (*checkout.Released, error) {
	var file *config.Config
	if p.open && !q.DryRun {
		var err error
		if file, err = p.forgeOf(ctx, r); err != nil {
			return nil, err
		}
	}
	released, err := r.Release(ctx, q)
	if err == nil && file != nil && released.Pushed {
		released.PullRequest, err = p.openReleasePull(ctx, file, released)
	}
	return released, err
}

// maxVersions bounds the versions of one release.
const maxVersions = 50

// parseVersions reads the flags that say what is released.
func parseVersions(images, charts []string) ([]plan.ReleasedVersion, error) {
	var out []plan.ReleasedVersion
	for _, text := range images {
		v, err := parseImage(text)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	for _, text := range charts {
		v, err := parseChart(text)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	switch {
	case len(out) == 0:
		return nil, errors.New("nothing to release: give --image NAME:TAG or --chart ADDRESS=VERSION")
	case len(out) > maxVersions:
		return nil, fmt.Errorf("%d versions are more than the %d of one release", len(out), maxVersions)
	}
	return out, nil
}

var (
	imageTag = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	// coAuthor is a person as the trailer Co-authored-by has one.
	coAuthor    = regexp.MustCompile(`^[^<>[:cntrl:]]{1,200} <[^<>[:cntrl:]\s]{1,200}>$`)
	imageDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	// chartVersion is a version as charts have it, not a range.
	chartVersion = regexp.MustCompile(`^v?[0-9][A-Za-z0-9.+-]{0,127}$`)
)

// parseImage reads NAME:TAG, NAME:TAG@DIGEST or NAME@DIGEST.
func parseImage(text string) (plan.ReleasedVersion, error) {
	name, tag, digest := fieldedit.SplitReference(text)
	bad := func(why string) (plan.ReleasedVersion, error) {
		return plan.ReleasedVersion{}, fmt.Errorf("--image %s: %s", wording.ClipLine(text, 200), why)
	}
	switch {
	case name == "" || strings.ContainsAny(name, " \t\n=") || strings.Contains(name, "://"):
		return bad("write it like registry.example/web:1.4.2")
	case tag == "" && digest == "":
		return bad("it has no tag and no digest; write it like registry.example/web:1.4.2")
	case tag != "" && !imageTag.MatchString(tag):
		return bad(fmt.Sprintf("%q is no tag: it has 1 to 128 letters, digits, dots, dashes and underscores", tag))
	case digest != "" && !imageDigest.MatchString(digest):
		return bad(fmt.Sprintf("%q is no digest: it is sha256: and 64 of 0-9 and a-f", digest))
	}
	return plan.ReleasedVersion{Image: name, Tag: tag, Digest: digest}, nil
}

// parseChart reads ADDRESS=VERSION.
func parseChart(text string) (plan.ReleasedVersion, error) {
	address, version, ok := strings.Cut(text, "=")
	_, _, _, is := pipeline.SplitChart(address)
	switch {
	case !ok || !is:
		return plan.ReleasedVersion{}, fmt.Errorf("--chart %s: write it like oci://registry.example/charts/web=3.2.0 or "+
			"https://charts.example#web=3.2.0", wording.ClipLine(text, 200))
	case !chartVersion.MatchString(version):
		return plan.ReleasedVersion{}, fmt.Errorf("--chart %s: %q is no version; write one like 3.2.0", wording.ClipLine(text, 200),
			version)
	}
	return plan.ReleasedVersion{Chart: address, Tag: version}, nil
}

// writeReleased writes for people what was released.
func writeReleased(w io.Writer, r *checkout.Released) error {
	var b strings.Builder
	for i := range r.Changes {
		b.WriteString(appset.Printable(r.Changes[i].String()) + "\n")
	}
	switch {
	case r.Commit == "":
		fmt.Fprintf(&b, "%s in %s has that already: nothing to do\n", r.Component, r.Environment)
	case r.PullRequest != "":
		fmt.Fprintf(&b, "%s %s comes into %s when this is merged: %s\n", r.Component, r.Name, r.Environment, r.PullRequest)
	case r.Pushed:
		fmt.Fprintf(&b, "%s %s is released into %s: commit %s on %s\n", r.Component, r.Name, r.Environment, wording.Short(r.Commit),
			r.Branch)
	default:
		fmt.Fprintf(&b, "%s %s would be released into %s, by a commit on %s; nothing was pushed\n", r.Component, r.Name, r.Environment,
			r.Branch)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
