package git

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// newHistory makes   root ← one ← merge ← four   with two, three on a side line.
func newHistory(t *testing.T) (*Mirror, map[string]string) {
	t.Helper()
	ctx := t.Context()
	o := newOrigin(t)
	o.commit("main", "Unrelated", map[string]string{"x": "1"})
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	shas := map[string]string{}
	for i, c := range []struct {
		name, message, file string
		parents             []string
	}{
		{"root", "Root", "a", nil},
		{"one", "One\n\nLiftlock-Kind: promotion", "a", []string{"root"}},
		{"two", "Two [x]", "b/c", []string{"root"}},
		{"three", "Three\n\nsee Liftlock-Kind: promotion", "b/d", []string{"two"}},
		{"merge", "Merge", "", []string{"one", "three"}},
		{"four", "Four\n\nLiftlock-Kind: revert", "a", []string{"merge"}},
	} {
		s := CommitSpec{When: when.Add(time.Duration(i) * time.Minute), Message: c.message}
		for _, p := range c.parents {
			s.Parents = append(s.Parents, shas[p])
			s.Base = shas[p]
		}
		if c.name == "merge" {
			s.Files = []FileWrite{{Path: "a", Content: []byte("One")}}
		}
		if c.file != "" {
			s.Files = []FileWrite{{Path: c.file, Content: []byte(c.name)}}
		}
		if c.name == "one" {
			s.Files[0].Content = []byte("One")
		}
		sha, err := m.Write(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		shas[c.name] = sha
	}
	return m, shas
}

func TestLog(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	m, shas := newHistory(t)
	names := map[string]string{}
	for name, sha := range shas {
		names[sha] = name
	}
	for name, tc := range map[string]struct {
		q    LogQuery
		want string
	}{
		"all":                 {LogQuery{From: "four"}, "four merge three two one root"},
		"the line of parents": {LogQuery{From: "four", FirstParent: true}, "four merge one root"},
		"until":               {LogQuery{From: "four", Until: "one"}, "four merge three two"},
		"until, first parent": {LogQuery{From: "four", Until: "three", FirstParent: true}, "four merge one"},
		"until itself":        {LogQuery{From: "four", Until: "four"}, ""},
		"limit":               {LogQuery{From: "four", Limit: 2}, "four merge"},
		"a file":              {LogQuery{From: "four", Paths: []string{"a"}}, "four one root"},
		"a folder":            {LogQuery{From: "four", Paths: []string{"b"}}, "three two"},
		"a path like a glob":  {LogQuery{From: "four", Paths: []string{"*"}}, ""},
		"a path like options": {LogQuery{From: "four", Paths: []string{"--all"}}, ""},
		"text":                {LogQuery{From: "four", Grep: "Liftlock-Kind: promotion"}, "three one"},
		"text, literally":     {LogQuery{From: "four", Grep: "[x]"}, "two"},
		"text like options":   {LogQuery{From: "four", Grep: "--all"}, ""},
		"text and path":       {LogQuery{From: "four", Grep: "Liftlock-Kind", Paths: []string{"a"}, Limit: 1}, "four"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.q.From = shas[tc.q.From]
			if tc.q.Until != "" {
				tc.q.Until = shas[tc.q.Until]
			}
			commits, err := m.Log(ctx, tc.q)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range commits {
				got = append(got, names[c.SHA])
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	for _, q := range []LogQuery{{From: strings.Repeat("1", 40)}, {From: shas["four"], Until: strings.Repeat("1", 40)}} {
		if _, err := m.Log(ctx, q); !errors.Is(err, ErrUnknownCommit) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	for _, q := range []LogQuery{{From: "--all"}, {}, {From: shas["four"], Until: "main"}, {From: shas["four"], Grep: "a\nb"}} {
		if _, err := m.Log(ctx, q); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

func TestIsAncestor(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	m, shas := newHistory(t)
	unrelated, _, err := m.Head(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	shas["unrelated"] = unrelated
	for _, tc := range []struct {
		a, d string
		want bool
	}{
		{"root", "four", true}, {"two", "four", true}, {"four", "four", true}, {"four", "root", false}, {"one", "three", false}, {"unrelated", "four", false},
	} {
		got, err := m.IsAncestor(ctx, shas[tc.a], shas[tc.d])
		if err != nil || got != tc.want {
			t.Errorf("%s in %s: %v, %v", tc.a, tc.d, got, err)
		}
	}
	unknown := strings.Repeat("1", 40)
	for _, pair := range [][2]string{{unknown, shas["one"]}, {shas["one"], unknown}, {unknown, unknown}} {
		if _, err := m.IsAncestor(ctx, pair[0], pair[1]); !errors.Is(err, ErrUnknownCommit) {
			t.Errorf("%v: %v", pair, err)
		}
	}
	if _, err := m.IsAncestor(ctx, "--octopus", shas["one"]); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
}

// TestNearAncestorsStartNoProgram holds that the commits themselves tell how two commits are
// related where one is near the other, whichever comes first. That is the case after every push.
func TestNearAncestorsStartNoProgram(t *testing.T) {
	t.Parallel()
	m, shas := newHistory(t)
	p := m.engine.(*mirrorPrograms)
	for _, tc := range []struct {
		a, d string
		want bool
	}{{"root", "four", true}, {"four", "root", false}, {"merge", "one", false}} {
		if got, err := p.isAncestor(canceledContext(), shas[tc.a], shas[tc.d]); err != nil || got != tc.want {
			t.Errorf("%s in %s: %v, %v", tc.a, tc.d, got, err)
		}
	}
	if _, err := p.isAncestor(canceledContext(), shas["one"], shas["three"]); err == nil {
		t.Error("of commits on two branches it is told without a program")
	}
}

// canceledContext starts no program.
func canceledContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestParseCommit(t *testing.T) {
	t.Parallel()
	const head = "tree " + emptyTree + "\nparent 1111111111111111111111111111111111111111\nauthor Ada L <ada@example.com> 1767319445 +0130\ncommitter g <g@x> 1767319446 -0800\ngpgsig -----BEGIN\n parent of nothing\n -----END\n"
	for name, tc := range map[string]struct {
		raw      string
		subject  string
		message  string
		trailers map[string]string
		bad      bool
	}{
		"plain":                     {raw: head + "\nSubject\n", subject: "Subject", message: "Subject\n"},
		"empty message":             {raw: head + "\n"},
		"no message at all":         {raw: strings.TrimSuffix(head, "\n")},
		"a subject of two lines":    {raw: head + "\nOne\ntwo\n\nbody", subject: "One two", message: "One\ntwo\n\nbody"},
		"trailers":                  {raw: head + "\nS\n\nbody\n\nLiftlock-Kind: revert\nliftlock-release:  abc \n", subject: "S", trailers: map[string]string{"Liftlock-Kind": "revert", "Liftlock-Release": "abc"}},
		"the last of two counts":    {raw: head + "\nS\n\nA: 1\nA: 2\n", subject: "S", trailers: map[string]string{"A": "2"}},
		"a continued trailer":       {raw: head + "\nS\n\nA: 1\n  more\n", subject: "S", trailers: map[string]string{"A": "1 more"}},
		"CRLF":                      {raw: head + "\nS\n\nA: 1\r\nB: 2\r\n", subject: "S", trailers: map[string]string{"A": "1", "B": "2"}},
		"prose among them":          {raw: head + "\nS\n\nA: 1\nand so on\n", subject: "S"},
		"only a subject":            {raw: head + "\nA: 1\n", subject: "A: 1"},
		"in the middle":             {raw: head + "\nS\n\nA: 1\n\nbody\n", subject: "S"},
		"no tree":                   {raw: "author a <a> 1 +0000\n\nx", bad: true},
		"an author without address": {raw: "tree " + emptyTree + "\nauthor Ada 1 +0000\n\nx", bad: true},
		"odd times":                 {raw: "tree " + emptyTree + "\nauthor a <a@b> soon\ncommitter <x> 5 zone\n\nS", subject: "S"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := parseCommit([]byte(tc.raw))
			if (err != nil) != tc.bad {
				t.Fatal(err)
			}
			if tc.bad {
				return
			}
			if tc.trailers == nil {
				tc.trailers = map[string]string{}
			}
			if c.Subject != tc.subject || !reflect.DeepEqual(c.Trailers, tc.trailers) || tc.message != "" && c.Message != tc.message {
				t.Errorf("%+v", c)
			}
			if strings.HasPrefix(tc.raw, head) {
				want := CommitInfo{Author: Ident{"Ada L", "ada@example.com"}, Committer: Ident{"g", "g@x"}}
				if len(c.Parents) != 1 || c.Author != want.Author || c.Committer != want.Committer || c.AuthorTime.Format(time.RFC3339) != "2026-01-02T03:34:05+01:30" || c.CommitTime.Format(time.RFC3339) != "2026-01-01T18:04:06-08:00" {
					t.Errorf("%+v", c)
				}
			}
		})
	}
}

func FuzzParseCommit(f *testing.F) {
	f.Add([]byte("tree " + emptyTree + "\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 -9999\n\nS\n\nA: 1\n"))
	f.Add([]byte("tree x\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parseCommit(data)
		if err != nil {
			return
		}
		if c.Trailers == nil || strings.Contains(c.Subject, "\n") || !isSHA(c.Tree) {
			t.Errorf("%+v", c)
		}
		_ = fmt.Sprint(c.AuthorTime, c.CommitTime) // an odd zone must not break printing
	})
}

func TestMaintain(t *testing.T) {
	ctx := t.Context()
	o := newOrigin(t)
	base := o.commit("main", "Base", map[string]string{"x": "1"})
	now := when
	m := open(t, Options{URL: o.url(), Now: func() time.Time { return now }})
	mustFetch(t, m)
	old, err := m.Write(ctx, CommitSpec{Parents: []string{base}, Base: base, When: when, Message: "old", Files: []FileWrite{{Path: "y", Content: []byte("old")}}})
	if err != nil {
		t.Fatal(err)
	}
	kept := func() string { return git(t, m.dir, "for-each-ref", "--format=%(objectname)", keepPrefix) }
	for day := range 14 { // both kinds of maintenance
		now = when.Add(time.Duration(day) * 24 * time.Hour)
		if err := m.Maintain(ctx); err != nil {
			t.Fatal(err)
		}
		if kept() != old {
			t.Fatalf("day %d: the unpushed commit is dropped", day)
		}
		if data, err := m.Tree(old).ReadFile("y"); err != nil || string(data) != "old" {
			t.Fatalf("day %d: %q, %v", day, data, err)
		}
		if day%5 == 0 {
			o.commit("main", fmt.Sprint(day), map[string]string{"x": fmt.Sprint(day)})
			mustFetch(t, m)
		}
	}
	now = when.Add(16 * 24 * time.Hour)
	if err := m.Maintain(ctx); err != nil {
		t.Fatal(err)
	}
	if left := kept(); left != "" {
		t.Errorf("still kept after 16 days: %s", left)
	}
	git(t, m.dir, "commit-graph", "verify")
	git(t, m.dir, "fsck", "--strict", "--no-dangling")
	if commits, err := m.Log(ctx, LogQuery{From: o.head("main"), Paths: []string{"x"}}); err != nil || len(commits) != 4 {
		t.Errorf("%d, %v", len(commits), err)
	}
	programsOf(m).git = version{2, 30} // without the cheap way
	if err := m.Maintain(ctx); err != nil {
		t.Fatal(err)
	}
}
