package act

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/faulttest"
)

func TestSources(t *testing.T) {
	t.Parallel()
	w := &fixture{t: t}
	for source, want := range map[string][]any{
		CommentSource("hub:acme/fleet", 7, 5):              {7, int64(5), true},
		CommandSource("hub:acme/fleet", 7, 5, 0):           {7, int64(-321), true},
		CommandSource("hub:acme/fleet", 7, 5, 3):           {7, int64(-324), true},
		CommandSource("hub:acme/fleet", 7, 5, 64):          {7, int64(-321), true},
		CommentSource("hub:acme/fleet", 7, 5) + " for web": {7, int64(5), true},
		"":            {0, int64(0), false},
		"the console": {0, int64(0), false},
		"comment 99999999999999999999 on #7 of hub:acme/fleet":              {0, int64(0), false},
		"comment 5 on #99999999999999999999 of hub:acme/fleet":              {0, int64(0), false},
		"command 99999999999999999999 of comment 5 on #7 of hub:acme/fleet": {7, int64(0), false},
	} {
		number, id, ok := parseSource(source)
		if !ok {
			id = 0
			if want[0] == 0 {
				number = 0
			}
		}
		w.compare(source, []any{number, id, ok}, want)
	}
	w.compare("comment", CommentSource("r", 7, 5), "comment 5 on #7 of r")
	w.compare("command", CommandSource("r", 7, 5, 2), "command 2 of comment 5 on #7 of r")
}

func TestReply(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	source := CommentSource(w.repo.ID, 7, 5)
	reply := func(source, text string) {
		t.Helper()
		w.must(w.actor.Reply(w.ctx(), w.repo, source, time.Time{}, "ada", "hold", text))
	}
	w.forge.say(7, "mallory", prtext.Reply("ada", "hold", "done", 5)) // no answer of ours
	reply(source, "done")
	w.compare("comments", w.forge.comments[7][1].Body, prtext.Reply("ada", "hold", "done", 5))
	reply(source, "done")
	reply(source, "done otherwise")
	w.compare("answers", len(w.forge.comments[7]), 2)
	reply(CommandSource(w.repo.ID, 7, 5, 0), "done")
	w.compare("answers", len(w.forge.comments[7]), 3)
	w.faults.Calls = nil
	reply("the console", "done")
	w.compare("calls", w.faults.Calls, []string(nil))

	each := func(text string) {
		t.Helper()
		w.must(w.actor.replyForMember(w.ctx(), w.repo, source, "ada", "hold", text))
	}
	each("web: done")
	each("web: done")
	each("api: done")
	w.compare("answers", len(w.forge.comments[7]), 5)
}

// TestFinishCommand holds that a command's outcome is told where it was given, once, and
// written down after that.
func TestFinishCommand(t *testing.T) {
	eachKind(t, func(w *fixture) {
		source := CommentSource(w.repo.ID, 7, 5)
		id := w.command(w.names[0], "promote", source)
		ev, d := w.evaluate()
		finish := func(a promotion.FinishCommand) error {
			return w.doStep(ev, d, promotion.Step{Component: 0, Action: a})
		}
		outcome := "it can't move"
		if w.batch {
			outcome = w.names[0] + ": " + outcome
		}
		w.must(finish(promotion.FinishCommand{Environment: "qa", ID: id + 1, Outcome: "it can't move"}))
		w.compare("answers to nothing", len(w.forge.comments[7]), 0)
		for range 2 {
			w.must(finish(promotion.FinishCommand{Environment: "qa", ID: id, Outcome: "it can't move"}))
			if k := w.forge.comments[7]; len(k) != 1 || k[0].Body != prtext.Reply("linus", "promote qa", outcome, 5) {
				w.t.Errorf("answered %+v", k)
			}
			w.compare("events", w.events("command"), []string{w.names[0] + ": linus's promote qa: " + outcome})
		}
		left, err := w.store.PendingCommands(w.ctx(), unitName(w, w.names[0]))
		if err != nil || len(left) != 0 {
			w.t.Errorf("%v waits, %v", left, err)
		}

		id = w.command(w.names[0], "revert", CommentSource(w.repo.ID, 7, 6))
		w.must(finish(promotion.FinishCommand{Environment: "qa", ID: id, Done: true, Outcome: "#8 takes it back"})) // the pull request says it
		w.compare("answers", len(w.forge.comments[7]), 1)
		w.compare("events", w.events("command")[1:], []string{w.names[0] + ": linus's revert qa: #8 takes it back"})

		id = w.command(w.names[0], "retry", CommentSource(w.repo.ID, 7, 7))
		w.must(finish(promotion.FinishCommand{Environment: "qa", ID: id, Done: true, Reply: true, Outcome: "sync it"})) // nothing else says it
		w.compare("answers", len(w.forge.comments[7]), 2)
	})
}

// TestFinishCommandFails holds that what isn't told isn't written down as told, and that
// what is told is not told again.
func TestFinishCommandFails(t *testing.T) {
	eachKind(t, func(w *fixture) {
		ev, d := w.evaluate()
		pull := 10
		w.failEach(func() (do func() error, done func()) {
			pull++
			id := w.command(w.names[0], "promote", CommentSource(w.repo.ID, pull, 5))
			before := len(w.events("command"))
			do = func() error {
				return w.do(ev, d, promotion.FinishCommand{Environment: "qa", ID: id, Outcome: "it can't move"})
			}
			return do, func() {
				w.compare("answers and events", []int{len(w.forge.comments[pull]), len(w.events("command")) - before}, []int{1, 1})
			}
		})
	})
}

// TestBindCommand holds that a command is about one release from then on.
func TestBindCommand(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	id := w.command("web", "promote", "somewhere")
	ev, d := w.evaluate()
	for range 2 {
		w.must(w.do(ev, d, promotion.BindCommand{Environment: "qa", ID: id, Release: "r1"}))
	}
	left, err := w.store.PendingCommands(w.ctx(), unitName(w, "web"))
	w.must(err)
	w.compare("bound", []any{len(left), left[0].Release}, []any{1, "r1"})
	w.faults = faulttest.Faults{At: 1}
	if err := w.do(ev, d, promotion.BindCommand{Environment: "qa", ID: id, Release: "r1"}); !errors.Is(err, faulttest.ErrInjected) || !strings.Contains(err.Error(), "bind") {
		t.Errorf("it failed with %v", err)
	}
}
