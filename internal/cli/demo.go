package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/liftlock/liftlock/internal/server"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/emulator/story"
)

func demoCommand() *cobra.Command {
	var once, keep bool
	var pace, dir, forge string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Tell the main job as a story, on embedded parts",
		Long: "Starts a forge emulator (real Git over HTTP, GitHub's or GitLab's REST API), a registry of images, a\n" +
			"simulated Argo CD and the server itself. It tells an image's way from its push through dev to prod,\n" +
			"and another release's way back, as it happens. The console is served meanwhile, and afterwards\n" +
			"until Ctrl-C, unless --once is given: then another release is left for you, which waits for\n" +
			"approvals and breaks prod.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			p, ok := map[string]story.Timings{"demo": story.DemoTimings(), "fast": story.FastTimings()}[pace]
			if !ok {
				return fmt.Errorf("--pace: %q is neither demo nor fast", pace)
			}
			if f := emulator.Face(forge); f != emulator.GitHub && f != emulator.GitLab {
				return fmt.Errorf("--forge: %q is neither github nor gitlab", forge)
			}
			if dir == "" {
				tmp, err := os.MkdirTemp("", "liftlock-demo-")
				if err != nil {
					return err
				}
				dir = tmp
				defer func() {
					if err == nil && !keep {
						os.RemoveAll(tmp) // a leftover in the temporary folder harms nobody
					} else {
						fmt.Fprintln(cmd.ErrOrStderr(), "the world and the server's log are kept in "+tmp)
					}
				}()
			}
			in := cmd.InOrStdin()
			if once {
				in = nil
			}
			return runDemo(cmd.Context(), in, cmd.OutOrStdout(), dir, emulator.Face(forge), p)
		},
	}
	c.Flags().BoolVar(&once, "once", false, "end when the story is told: 0, or 1 naming the step that was not reached")
	c.Flags().StringVar(&pace, "pace", "demo", "demo for people, fast for machines")
	c.Flags().StringVar(&forge, "forge", "github", "whose API the forge has: github or gitlab")
	c.Flags().StringVar(&dir, "dir", "", "where the world lives (default: a temporary folder)")
	c.Flags().BoolVar(&keep, "keep", false, "keep the temporary folder")
	return c
}

// runDemo tells the story. in is where somebody presses Enter for what is left to do afterwards; nil: nothing is left,
// and the demo ends.
func runDemo(ctx context.Context, in io.Reader, out io.Writer, dir string, face emulator.Face, p story.Timings) (err error) {
	// The world's programs run in folders of their own.
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	log, closeLog, err := fileLogger(filepath.Join(dir, "liftlock.log"))
	if err != nil {
		return err
	}
	defer closeLog()
	w, err := story.NewFixture(dir, face, p, zap.NewNop())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	cfg, err := config.Load(w.Config, os.LookupEnv)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := server.New(ctx, server.Options{Config: cfg, Log: log, Version: Version()})
	if err != nil {
		return err
	}
	serverDone := make(chan error, 1)
	go func() { serverDone <- s.Run(ctx) }()
	began := time.Now()
	var mu sync.Mutex
	report := func(who, what string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, "%6.1fs  %-9s %s\n", time.Since(began).Seconds(), who, what)
	}
	fmt.Fprintf(out, "the console is at %s, the forge at %s, the log in %s\n\n", w.URL, w.Forge.URL(), filepath.Join(dir, "liftlock.log"))
	tale := story.Story{Fixture: w, Narrate: report, State: story.StateReader(w.URL)}
	storyDone := make(chan error, 1)
	go func() { storyDone <- tale.Run(ctx) }()
	select {
	case err = <-storyDone:
	case err = <-serverDone:
		return fmt.Errorf("the server ended before the story: %w", err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe story is told: one release went from its push to a registry to prod, one came back from qa.\n")
	if in != nil {
		if err = leaveWork(ctx, in, out, &tale); err == nil {
			<-ctx.Done()
		}
	}
	cancel()
	return errors.Join(err, <-serverDone)
}

// leaveWork leaves a promotion that waits for approvals, says how to log in, and has people of the story approve it, and
// merge its revert, when somebody presses Enter. It ends with the last of these; that the context ended is no error.
func leaveWork(ctx context.Context, in io.Reader, out io.Writer, tale *story.Story) error {
	fmt.Fprintf(out, "\nOne more is released, and left for you:\n\n")
	left, err := tale.LeaveWork(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	name := tale.Fixture.Forge.PullName(left.Number)
	fmt.Fprintf(out, "\nThe console stays open until Ctrl-C. This link logs you in, with the token %s:\n  %s\n", story.APIToken,
		loginLink(tale.Fixture.URL, story.APIToken))
	fmt.Fprintf(out, "%s waits for two approvals. You can hold it there, and lift the hold. It breaks prod.\n", name)
	keys := bufio.NewScanner(in)
	press := func(what string) bool {
		fmt.Fprintf(out, "\nPress Enter to %s.\n", what)
		return scanLine(ctx, keys)
	}
	if !press("have ada and grace approve " + name) {
		return nil
	}
	stop := func(err error) error { // as where somebody holds it: what they look at stays open
		if ctx.Err() == nil {
			fmt.Fprintf(out, "\n%v\nThe console stays open until Ctrl-C.\n", err)
		}
		return nil
	}
	revert, err := tale.ApproveWork(ctx, left)
	if err != nil {
		return stop(err)
	}
	if !press("have ada merge the revert " + tale.Fixture.Forge.PullName(revert.Number)) {
		return nil
	}
	if err := tale.MergeWork(ctx, revert); err != nil {
		return stop(err)
	}
	fmt.Fprintf(out, "\nprod is well again. The console stays open until Ctrl-C.\n")
	return nil
}

// scanLine waits for a line; false at the end of the input or the context. Only one may be waited for at a time.
func scanLine(ctx context.Context, keys *bufio.Scanner) bool {
	read := make(chan bool, 1)
	go func() { read <- keys.Scan() }()
	select {
	case is := <-read:
		return is
	case <-ctx.Done():
		return false
	}
}

// loginLink leads to the console's form for a token, filled in. What is behind # stays in the browser.
func loginLink(server, token string) string {
	return server + "/login/token#token=" + url.QueryEscape(token)
}

// fileLogger keeps the server's log out of the story.
func fileLogger(file string) (*zap.Logger, func(), error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(enc), f, zapcore.DebugLevel))
	return log, func() { _ = f.Close() }, nil // the log ends with the process anyway
}
