package notify

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/wording"
)

// wordOf is an event's word; empty: nobody is told of such.
func wordOf(e *store.Event) string { return e.Kind.Word() }

// message is what is told at once: of one word and one pipeline.
type message struct {
	word  string
	items []item
}

// item is one event with where a person looks next.
type item struct {
	ID          string    `json:"-"` // the same whenever it is sent again
	At          time.Time `json:"-"`
	Word        string    `json:"event"`
	Repository  string    `json:"repository"`
	Pipeline    string    `json:"pipeline"`
	Component   string    `json:"component,omitempty"`
	Environment string    `json:"environment,omitempty"`
	Pull        int       `json:"pull,omitempty"`
	PullURL     string    `json:"pullURL,omitempty"`
	ConsoleURL  string    `json:"consoleURL,omitempty"`
	Text        string    `json:"message"`
}

func (n *Notifier) message(ctx context.Context, batch []store.Event) message {
	m := message{word: wordOf(&batch[0])}
	for i := range batch {
		e := &batch[i]
		it := item{ID: fmt.Sprintf("liftlock-%d-%d", e.Seq, e.At.UnixMicro()), At: e.At, Word: m.word, Repository: e.Repo,
			Pipeline: e.Pipeline, Component: e.Component, Environment: e.Environment,
			Pull: e.Pull, Text: e.Message, ConsoleURL: n.consoleURL(e)}
		if e.Pull > 0 {
			it.PullURL = n.o.PullURL(ctx, e.Repo, e.Pull)
			it.Text = wording.ForPage(it.PullURL, it.Text)
		}
		m.items = append(m.items, it)
	}
	return m
}

func (n *Notifier) consoleURL(e *store.Event) string {
	if n.o.Console == "" {
		return ""
	}
	u := n.o.Console + "/pipelines/" + url.PathEscape(e.Pipeline)
	if e.Component != "" {
		u += "/" + url.PathEscape(e.Component)
	}
	return u
}

// title is a message's first line.
func (m *message) title() string {
	first := &m.items[0]
	where := first.Pipeline
	if len(m.items) == 1 {
		for _, s := range []string{first.Component, first.Environment} {
			if s != "" {
				where += "/" + s
			}
		}
		return fmt.Sprintf("%s: %s", where, m.word)
	}
	return fmt.Sprintf("%s: %s, %d times", where, m.word, len(m.items))
}

// maxListed is how many events of a message are listed; the rest is counted.
const maxListed = 10

// maxText is how much of an event's text is shown, in characters.
const maxText = 600

// describe lists a message's events, a line each, with escape for what comes from outside
// and link for addresses, in the markup of where it goes.
func (m *message) describe(escape func(string) string, link func(text, url string) string) []string {
	var lines []string
	for i := range m.items {
		if i == maxListed {
			lines = append(lines, fmt.Sprintf("… and %d more", len(m.items)-maxListed))
			break
		}
		it := &m.items[i]
		line := escape(clip(it.Text))
		if len(m.items) > 1 && it.Component != "" && !strings.Contains(it.Text, it.Component) {
			line = escape(it.Component) + ": " + line
		}
		if it.PullURL != "" {
			line += " " + link(wording.PullName(it.Pull, it.PullURL), it.PullURL)
		}
		if it.ConsoleURL != "" {
			line += " " + link("console", it.ConsoleURL)
		}
		lines = append(lines, line)
	}
	return lines
}

// clip keeps the beginning of a text, on one line.
func clip(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxText {
		s = string(r[:maxText]) + "…"
	}
	return s
}
