package server_test

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestOneHeadline holds that the commit status, the comment, the API and, with it, the console and the command line
// say the same of a pull request: whom it waits for, and that it is on hold and by whom.
func TestOneHeadline(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	p := s.releaseToProd("1.1.0")
	agrees := func(headline string) {
		t.Helper()
		s.awaitPull(p.Number, "says "+headline, func(p *emulator.PullRequest) bool {
			said := false
			for _, c := range p.Comments {
				text := strings.ReplaceAll(c.Body, "*", "")
				said = said || strings.Contains(text, strings.ToUpper(headline[:1])+headline[1:]+".")
			}
			return said && liftlockStatus(p.Statuses).Description == headline
		})
		e := s.awaitEnvironment("web", "prod", "says "+headline, func(e *api.EnvironmentWhy) bool {
			return e.Incoming != nil && e.Incoming.Headline == headline
		})
		if !strings.Contains(e.Text, "1.1.0 is in #") || !strings.Contains(e.Text, ": "+headline+"\n") {
			t.Errorf("the command line says\n%s", e.Text)
		}
	}
	agrees("waiting for ada, grace (0 of 2)")
	s.approve(p.Number, "ada")
	agrees("waiting for grace (1 of 2)")
	s.addComment(p.Number, "linus", "/liftlock hold the load test runs")
	agrees("on hold by linus: the load test runs; also waiting for grace (1 of 2)")
}
