package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// progressTexts say what the commands do that may take a while. Those that ask a server have one.
var progressTexts = map[string]string{
	"init": "reading the checkout", "validate": "checking", "plan": "planning", "resolve": "resolving", "impact": "comparing",
	"doctor": "checking",
}

const serverProgress = "asking the server"

const (
	// progressInterval is how often it is said again, progressAfter from which time on.
	progressInterval = time.Second
	progressAfter    = 2
)

// addProgress has commands say on a terminal what they do, where that takes more than two seconds.
// It is on standard error, and gone before anything else is printed.
func addProgress(c *cobra.Command) {
	doing := progressTexts[c.Name()]
	if c.Flags().Lookup("server") != nil {
		doing = serverProgress
	}
	if doing == "" || c.RunE == nil {
		return
	}
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if !onTerminal(cmd.ErrOrStderr()) {
			return run(cmd, args)
		}
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		p := startProgress(cmd.ErrOrStderr(), doing, ticker.C)
		defer p.stop()
		cmd.SetOut(&progressStream{p, cmd.OutOrStdout()})
		cmd.SetErr(&progressStream{p, cmd.ErrOrStderr()})
		return run(cmd, args)
	}
}

// progress says on a terminal what is being done.
type progress struct {
	once        sync.Once
	done, ended chan struct{}
}

// startProgress says it at each tick from the second one on, until stop.
func startProgress(out io.Writer, doing string, tick <-chan time.Time) *progress {
	p := &progress{done: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		for seconds := 0; ; {
			select {
			case <-p.done:
				if seconds >= progressAfter {
					fmt.Fprint(out, "\r\x1b[K")
				}
				return
			case <-tick:
				if seconds++; seconds >= progressAfter {
					fmt.Fprintf(out, "\r%s … %d s\x1b[K", doing, seconds)
				}
			}
		}
	}()
	return p
}

// stop takes the line away; it may be called again.
func (p *progress) stop() {
	p.once.Do(func() { close(p.done) })
	<-p.ended
}

// progressStream is a stream before whose first text the progress ends.
type progressStream struct {
	progress *progress
	to       io.Writer
}

func (p *progressStream) Write(b []byte) (int, error) {
	p.progress.stop()
	return p.to.Write(b)
}

func (p *progressStream) unwrap() any { return p.to }
