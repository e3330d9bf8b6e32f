package prtext

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/policies"
)

// filled is an input in which everything that comes from outside is s.
func filled(s string, revert bool) Input {
	t := at(9, 0)
	env := promotion.Env{
		Name: s, Spec: pipeline.Environment{Name: s, OnDegraded: pipeline.OnDegraded{Action: s}},
		Gates:   []policies.Gate{{Approvals: &policies.Approvals{Count: 1, From: policies.From{Users: []string{s}}}}},
		Release: promotion.Sure(promotion.Release{ID: s, Name: s}),
		Landed:  promotion.Sure(promotion.Landed{At: t, By: promotion.ByPerson, Author: s}),
		Open:    &promotion.Pull{Number: 14, Release: s, Name: s},
		Revert:  &promotion.Pull{Number: 15, Release: s, Name: s},
		History: []promotion.Arrival{{Release: s, Name: s, By: s, Commit: s, At: t, VerifiedAt: t}},
	}
	results := []policies.Result{{Gate: policies.GateName("x" + s), Outcome: policies.Wait, Reason: s, Who: []string{s}, Until: t}, {Gate: policies.GateName("x" + s + "2"), Outcome: policies.Fail, Reason: s}}
	st := promotion.EnvState{
		Environment: s, State: promotion.Degraded, Promotion: "x" + s, Reason: s, Release: s, Name: s, Since: t, Candidate: s, CandidateName: s, Commit: s, Pull: 14,
		Gates: results, RevertGates: results, Why: []promotion.Reason{{Code: "hold", Text: s, Who: s, When: t}},
		Targets: map[string]promotion.TargetView{s: {State: s, Reason: s, Since: t}},
	}
	return Input{
		Members: []Member{{
			Member: promotion.Member{Component: s, Release: s, Name: s},
			Facts: &promotion.ComponentFacts{
				Unit:     promotion.Unit{Repo: s, Pipeline: s, Component: s},
				Pipeline: &pipeline.Pipeline{}, Envs: []promotion.Env{env},
			},
			Decision: &promotion.ComponentDecision{Envs: []promotion.EnvState{st}},
			Commits: []ReleaseCommits{
				{Source: s, Since: s, CompareURL: "https://git.example/compare", More: true, Commits: []ReleaseCommit{{SHA: s, Subject: s, URL: "https://git.example/commit", Authors: []string{s, "x" + s}, At: t}}, Skipped: []promotion.Release{{ID: "y" + s, Name: s}}},
				{Source: s, Commits: []ReleaseCommit{{Subject: s}}},
				{Repository: s, From: s, To: s, Commits: []ReleaseCommit{{Subject: s}}},
				{Repository: s, Err: s},
			},
			CommitsErr: s,
		}},
		Environment: s, Revert: revert, Number: 14, Release: s, Name: s,
		Changes:          []Change{{File: s, Path: s, Old: s, New: s, Line: 3}},
		Reached:          []Target{{Name: s, Component: s, Environment: s, Cluster: s}, {Name: s, Component: s, Environment: "other", Cluster: s}},
		UnaffectedCounts: map[string]int{s: 3}, RevertedPull: 12, Reason: s,
		Evidence: []promotion.Evidence{{Targets: []promotion.TargetEvidence{{Target: s, Cluster: s, Reason: s, ResourcesUnknown: s, Resources: []promotion.ResourceEvidence{{Kind: s, Name: s, Health: s, Message: s}}}},
			RuledOut: []promotion.RuledOut{{Check: s, Answer: s}}}},
		ConsoleURL: "https://liftlock.example.com/pipelines/x", BodyMarker: "<!-- liftlock:promotion release=x -->", Now: t,
	}
}

// texts is everything that is written for an input in Markdown.
func texts(in Input) map[string]string {
	p, batch := Render(in), in
	batch.Batch = true
	return map[string]string{
		"batch": Render(batch).Body,
		"body":  p.Body, "comment": p.Comment, "landed": LandedComment(in), "reverted": RevertedComment(in), "closed": ClosedComment(in, in.Reason),
		"why": Reply(in.Name, in.Name, WhyText(in.Members[0].Decision.Envs, in.Environment), 7), "status": Reply(in.Name, in.Name, StatusText(in.Members[0].Decision.Envs), 7),
	}
}

// sameShape checks that outside text changes nothing but text, wherever it stands.
func sameShape(t *testing.T, s string) {
	t.Helper()
	if strings.TrimSpace(cleanLine(s, maxName)) == "" || mentionable.MatchString(s) {
		return // what isn't there is left out; a login may be mentioned
	}
	for _, revert := range []bool{false, true} {
		in, harmless := filled(s, revert), texts(filled("é", revert))
		for name, got := range texts(in) {
			g, w := read(t, got), read(t, harmless[name])
			if diff := cmp.Diff(w.tags, g.tags); diff != "" {
				t.Fatalf("%s, revert %v: %q is markup (-want +got):\n%s\n%s", name, revert, s, diff, got)
			}
			if diff := cmp.Diff(w.comments, g.comments); diff != "" || strings.Count(got, "<!--") != len(w.comments) {
				t.Fatalf("%s: %q makes a hidden mark:\n%s\n%s", name, s, diff, got)
			}
			rest := g.text
			for _, ours := range []string{"#12", "#14", "#15"} {
				rest = strings.ReplaceAll(rest, ours, "")
			}
			if m := closes.FindString(g.text); m != "" {
				t.Fatalf("%s: %q has %q close something:\n%s", name, s, m, got)
			}
			if m := live.FindString(rest); m != "" {
				t.Fatalf("%s: %q makes %q live:\n%s", name, s, m, got)
			}
			if len(got) > maxBody || !utf8.ValidString(got) {
				t.Fatalf("%s: %q makes %d bytes", name, s, len(got))
			}
		}
		checkLines(t, in)
	}
}

// checkLines checks the texts that aren't Markdown.
func checkLines(t *testing.T, in Input) {
	t.Helper()
	p := Render(in)
	subject, body := MergeMessage(in)
	for name, l := range map[string]string{"title": p.Title, "status": p.Status.Description, "subject": subject, "label": p.Labels[1]} {
		if strings.ContainsAny(l, "\r\n") || len([]rune(l)) > 200 || !utf8.ValidString(l) {
			t.Fatalf("%s is %q", name, l)
		}
	}
	if n := len([]rune(p.Status.Description)); n > maxStatus {
		t.Fatalf("the status has %d characters", n)
	}
	for _, message := range []string{CommitMessage(in), subject + "\n\n" + body} {
		paragraphs := strings.Split(strings.TrimSpace(message), "\n\n")
		last := strings.Split(paragraphs[len(paragraphs)-1], "\n")
		for _, l := range last {
			if !strings.HasPrefix(l, "Liftlock-") {
				t.Fatalf("the trailers hold %q:\n%s", l, message)
			}
		}
		if n := strings.Count("\n"+message, "\n"+promotion.TrailerKind+": "); n != 1 {
			t.Fatalf("%d kinds in\n%s", n, message)
		}
	}
}

func TestOutsideTextIsOnlyText(t *testing.T) {
	for _, s := range hostile {
		sameShape(t, s)
	}
}

func FuzzPages(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(sameShape)
}

func TestOnlyNowChangesNothing(t *testing.T) {
	all := pages()
	for name, in := range merged() {
		all[name] = in
	}
	for name, in := range all {
		write := func() string {
			title, body := MergeMessage(in)
			return fmt.Sprint(Render(in), LandedComment(in), RevertedComment(in), ClosedComment(in, "x"), CommitMessage(in), title, body)
		}
		was := write()
		in.Now = in.Now.Add(77 * time.Hour)
		in.Members[0].Facts.Now, in.Members[0].Decision.Next = in.Now, in.Now.Add(time.Minute)
		if diff := cmp.Diff(was, write()); diff != "" {
			t.Errorf("%s changes with the time:\n%s", name, diff)
		}
	}
}

func TestRenderIsTotal(t *testing.T) {
	for _, revert := range []bool{false, true} {
		in := Input{Revert: revert}
		p := Render(in)
		for name, s := range map[string]string{"body": p.Body, "comment": p.Comment, "landed": LandedComment(in), "reverted": RevertedComment(in), "closed": ClosedComment(in, ""), "message": CommitMessage(in)} {
			if strings.TrimSpace(s) == "" {
				t.Errorf("%s is empty", name)
			}
		}
		if p.Status.State != statusPending {
			t.Errorf("nothing is known, and the status is %s", p.Status.State)
		}
	}
}

func TestStatus(t *testing.T) {
	act := func(a promotion.Action) func(*Input) {
		return func(in *Input) { in.Actions = []promotion.Action{a}; stateOf(*in).Gates = nil }
	}
	for _, c := range []struct {
		name   string
		change func(*Input)
		want   string
	}{
		{"waits", func(*Input) {}, statusPending},
		{"passes", func(in *Input) { stateOf(*in).Gates[0].Outcome = policies.Pass }, statusSuccess},
		{"no gates", func(in *Input) { stateOf(*in).Gates = nil }, statusSuccess},
		{"merging", act(promotion.Merge{Environment: "prod", Pull: 14}), statusSuccess},
		{"replaced", act(promotion.Replace{Environment: "prod", Pull: 14}), statusPending},
		{"closed", act(promotion.Close{Environment: "prod", Pull: 14}), statusPending},
		{"another's revert is closed", act(promotion.Close{Environment: "prod", Pull: 15, Revert: true}), statusSuccess},
		{"another environment is replaced", act(promotion.Replace{Environment: "qa", Pull: 13}), statusSuccess},
		{"not composed yet", act(promotion.FactRequest{Environment: "prod", What: promotion.RequestComposition}), statusPending},
		{"unreadable", func(in *Input) { stateOf(*in).Gates = nil; environmentOf(*in).Release.OK = false }, statusPending},
		{"mixed", func(in *Input) { stateOf(*in).Gates = nil; environmentOf(*in).Fields = promotion.FieldsMixed }, statusPending},
		{"observe", func(in *Input) { stateOf(*in).Gates = nil; in.Members[0].Facts.Pipeline.Spec.Mode = "observe" }, statusPending},
		{"unsound", func(in *Input) { environmentOf(*in).Open.MarkModified("somebody pushed") }, statusFailure},
		{"another release was pushed", func(in *Input) {
			st := stateOf(*in)
			st.Gates, st.Why = nil, []promotion.Reason{{Code: cause.Unmanaged, Text: "#14 carries 1.0.0, which wouldn't be opened now"}}
		}, statusFailure},
		{"fails", func(in *Input) { stateOf(*in).Gates[0].Outcome = policies.Fail }, statusFailure},
		{"only the forge blocks", func(in *Input) { stateOf(*in).Gates[0].Gate = promotion.GateMergeable }, statusSuccess},
		{"an unknown outcome", func(in *Input) { stateOf(*in).Gates[0].Outcome = "" }, statusPending},
		{"no decision", func(in *Input) { in.Members[0].Decision = nil }, statusPending},
	} {
		in := promotionInput()
		c.change(&in)
		if got := Render(in).Status; got.State != c.want {
			t.Errorf("%s: %s (%s), want %s", c.name, got.State, got.Description, c.want)
		}
	}
}

func TestOtherStatus(t *testing.T) {
	for _, c := range []struct {
		err     string
		touches bool
		want    Status
	}{
		{"", false, Status{"success", "no pipeline file touched"}},
		{"", true, Status{"success", "pipeline files are valid"}},
		{" \n", true, Status{"success", "pipeline files are valid"}},
		{".liftlock.yaml:3: unknown key \"gate\"", true, Status{"failure", ".liftlock.yaml:3: unknown key \"gate\""}},
		{".liftlock.yaml:3: a\n.liftlock.yaml:4: b\n\n.liftlock.yaml:5: c", true, Status{"failure", ".liftlock.yaml:3: a (and 2 more)"}},
		{strings.Repeat("ü", 200) + "\nb", true, Status{"failure", strings.Repeat("ü", 126) + "… (and 1 more)"}},
	} {
		got := OtherStatus(c.err, c.touches)
		if got != c.want {
			t.Errorf("%q: %+v, want %+v", c.err, got, c.want)
		}
		if n := len([]rune(got.Description)); n > maxStatus {
			t.Errorf("%q: %d characters", c.err, n)
		}
	}
}

func TestLinkReason(t *testing.T) {
	in := promotionInput()
	environmentOf(in).PastPulls = []promotion.PastPull{{Number: 8}}
	for s, want := range map[string]string{
		"see #14 and #8": "see #14 and #8", "#1": "#" + zeroWidthSpace + "1", "#140": "#" + zeroWidthSpace + "140", "#14x": "#" + zeroWidthSpace + "14x", "#0": "#" + zeroWidthSpace + "0",
		"fixes #14": "fixes #" + zeroWidthSpace + "14", "Closes: #14, #8": "Closes: #" + zeroWidthSpace + "14, #8", "acme/other#14": "acme/other#" + zeroWidthSpace + "14", "(#14)": "(#14)",
		"it took the prefix of #14": "it took the prefix of #14", "resolving #8 (#14)": "resolving #" + zeroWidthSpace + "8 (#14)",
	} {
		if got := strings.TrimPrefix(linkReason(in, s), `\`); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}

func TestEnvironmentLabel(t *testing.T) {
	if got := EnvironmentLabel("prod-us"); got != "env/prod-us" {
		t.Error(got)
	}
	if got := EnvironmentLabel(strings.Repeat("x", 63)); len(got) > maxLabel {
		t.Error(got)
	}
}
