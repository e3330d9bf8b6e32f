package act

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// TestBodyHasTheEffect holds that a pull request says whom it reaches and what it does to
// their manifests, and who reads the files and stays as it is.
func TestBodyHasTheEffect(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	w.commit("Deploy it", map[string]string{
		"apps/web/qa/deployment.yaml":         "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers: [{name: web, image: registry.example/web}]\n",
		"apps/web/qa/kustomization.yaml":      kustomization("web", "1.0.0") + "resources: [deployment.yaml]\n",
		"apps/probe/dev/kustomization.yaml":   kustomization("web", "fixed") + "resources: [../../web/qa]\n",
		"apps/distant/dev/kustomization.yaml": kustomization("distant", "1"),
	})
	n := w.open("2.0.0")
	body := w.forge.pulls[n].Body
	dev, err := w.repo.Mirror.Log(w.ctx(), git.LogQuery{From: w.forge.pulls[n].Head, Limit: 3})
	w.must(err)
	for _, says := range []string{
		"### Who made it\n\n1 commit in dev since `1.0.0`, by linus as the commits say ([compare](https://git.example/acme/fleet/compare/",
		"..." + dev[1].SHA + ")):\n\n- [`" + dev[1].SHA[:12] + "`](https://git.example/acme/fleet/commit/" + dev[1].SHA + ") Release 2.0.0 (linus, 2026-05-01)\n",
		"### What it reaches\n\n- `web-qa` in qa on", "stay exactly as they are, which their Applications and manifests before and after show: `probe-dev`",
		"`1.0.0` | `2.0.0` | `apps/web/qa/kustomization.yaml:3`", "- spec.template.spec.containers[name=web].image: registry.example/web:1.0.0", "None of the pipeline's 2 other targets (2 in dev) reads these files.",
		"(" + console + "/diff?component=web&environment=qa&kind=promotion&pipeline=shop&release=" + promotionRelease(w, n),
	} {
		if !strings.Contains(body, says) {
			t.Errorf("it doesn't say %q:\n%s", says, body)
		}
	}
	ev, d := w.evaluate()
	over, cancel := context.WithCancel(w.ctx())
	cancel()
	w.gatherer = nil
	w.start() // nothing is known of the effect
	if text, ok := w.actor.Diff(over, ev, d, n); !ok || !strings.Contains(text, "could not be compared") || !strings.Contains(text, "`1.0.0` to `2.0.0`") {
		t.Errorf("what can't be compared: %v %q", ok, text)
	}
	p := ev.OpenPulls[n]
	s := subjectOf(ev, d, p)
	in := prtext.Input{Environment: "qa"}
	w.actor.describeEdits(over, &s, &in, effects.Commits{Base: p.Base, Head: p.Head}, p.Edits)
	w.actor.renderEffects(over, &s, &in, effects.Commits{Base: p.Base, Head: p.Head}, p.Edits, 0)
	if in.RenderedErr == "" || len(in.UnchangedTargets) != 0 || len(in.Reached) != 2 {
		t.Errorf("what isn't proven to stay is reached: %+v", in)
	}
	in = prtext.Input{Environment: "dev"}
	w.actor.describeEdits(w.ctx(), &s, &in, effects.Commits{Base: p.Base, Head: p.Head}, nil)
	if len(in.Reached)+len(in.UnchangedTargets) != 0 || in.UnaffectedCounts["qa"] != 1 || in.UnaffectedCounts["dev"] != 3 {
		t.Errorf("no edits reach %+v", in)
	}
}

func promotionRelease(w *fixture, n int) string { return w.promotionOf("web", n).Release }

// TestTextsAreInTheForgesWords has a GitLab's people read of merge requests in all that is
// written: body, comments, status, answer and the merge's message.
func TestTextsAreInTheForgesWords(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	w.repo.ForgeType = "gitlab"
	n := w.open("2.0.0")
	ev, d := w.evaluate()
	if _, err := w.actor.Present(w.ctx(), ev, d); err != nil {
		t.Fatal(err)
	}
	w.must(w.actor.Reply(w.ctx(), w.repo, CommentSource(w.repo.ID, n, 7), time.Time{}, "ada", "/liftlock why", "it waits for pull request #3"))
	texts := []string{w.forge.pulls[n].Title, w.forge.pulls[n].Body}
	comments, err := w.forge.Comments(w.ctx(), w.repo.Name, n, time.Time{})
	w.must(err)
	for _, k := range comments {
		texts = append(texts, k.Body)
	}
	all := strings.Join(texts, "\n")
	if len(comments) < 2 || !strings.Contains(all, "waits for merge request") {
		t.Errorf("%d comments:\n%s", len(comments), all)
	}
	if strings.Contains(strings.ToLower(all), "pull request") {
		t.Errorf("it reads as another forge's:\n%s", all)
	}
}

// TestTextsOfABatch holds that what moves together is told by whose it is.
func TestTextsOfABatch(t *testing.T) {
	t.Parallel()
	w := newFixture(t, kindsOfBatch["several"].spec, "api", "web")
	_, _, open := w.ready("2.0.0")
	n := w.open("3.0.0")
	body := w.forge.pulls[n].Body
	for _, c := range w.names {
		for _, says := range []string{"\n| " + c + " | `", c + ":" + w.promotionOf(c, n).Release} {
			if !strings.Contains(body, says) {
				t.Errorf("it doesn't say %q:\n%s", says, body)
			}
		}
	}
	if !strings.Contains(body, "component=api&") || !strings.Contains(body, "release="+w.promotionOf("api", n).Release+"&") || open.Release == "" {
		t.Errorf("it leads to another difference:\n%s", body)
	}
	info, err := w.repo.Mirror.Commit(w.ctx(), w.forge.pulls[n].Head)
	w.must(err)
	for _, c := range w.names {
		if !strings.Contains(info.Message, c+" "+w.promotionOf(c, n).Release[:12]) {
			t.Errorf("the commit doesn't name %s: %s", c, info.Message)
		}
	}
	ev, d := w.evaluate()
	s := subjectOf(ev, d, ev.OpenPulls[n])
	w.compare("the console", w.actor.consoleURL(&s), console+"/pipelines/shop")
	w.compare("its name", s.name(), "api 3.0.0, web 3.0.0")
	w.compare("its identity", s.identity(), promotion.BatchID(s.members))
	w.compare("its unit", s.unit().Component, promotion.BatchName)
	w.compare("its actions", len(s.pullActions()), len(d.Actions))
	s.members = nil
	w.compare("the difference of nobody", strings.Contains(w.actor.differenceURL(&s, "promotion", "r1"), "component=batch&"), true)
}

// TestAddresses holds where texts lead to, and that they lead nowhere without a console.
func TestAddresses(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	ev, d := w.evaluate()
	s := subjectOf(ev, d, ev.OpenPulls[n])
	w.compare("the console", w.actor.consoleURL(&s), console+"/pipelines/shop/web")
	at, err := url.Parse(w.actor.differenceURL(&s, "revert", "r1"))
	w.must(err)
	w.compare("the difference", at.Query(), url.Values{"repository": {w.repo.ID}, "pipeline": {"shop"}, "component": {"web"}, "environment": {"qa"}, "kind": {"revert"}, "release": {"r1"}})
	w.actor.opts.Console = ""
	w.compare("without a console", []string{w.actor.consoleURL(&s), w.actor.differenceURL(&s, "revert", "r1")}, []string{"", ""})
	w.compare("its name", []string{s.name(), s.identity(), s.unit().Component}, []string{"2.0.0", s.members[0].Release, "web"})
}

// TestSubjectHasItsOwnActions holds that a pull request shows what is done to it and not
// what is done to another's.
func TestSubjectHasItsOwnActions(t *testing.T) {
	t.Parallel()
	web, api := []promotion.Member{{Component: "web"}}, []promotion.Member{{Component: "api"}}
	d := &promotion.Decision{Actions: []promotion.Action{promotion.Merge{Pull: 1, Members: web}, promotion.Merge{Pull: 2, Members: api}, promotion.FactRequest{}}}
	w := &fixture{t: t}
	s := subject{ev: &facts.Evaluation{}, d: d, members: web}
	w.compare("of one", s.pullActions(), d.Actions[:1])
	s.batch = true
	w.compare("of all", s.pullActions(), d.Actions)
	w.compare("the decision stays", len(d.Actions), 3)
	s.members = append(api, web...)
	w.compare("sorted", s.components(), []string{"api", "web"})
	w.compare("who moves", []bool{s.moves("web"), s.moves("db")}, []bool{true, false})
}

// TestSubjectIsOfOneKind holds that a pull request moves all only where its unit is all.
func TestSubjectIsOfOneKind(t *testing.T) {
	eachKind(t, func(w *fixture) {
		n := w.open("2.0.0")
		ev, d := w.evaluate()
		p := ev.OpenPulls[n]
		for _, batch := range []bool{false, true} {
			p.Batch = batch
			s, err := actionSubject(ev, d, promotion.Close{Pull: n, Environment: "qa", Members: p.Members})
			w.must(err)
			w.compare("of an action", []any{s.batch, s.number, s.env, s.pull == p}, []any{batch && w.batch, n, "qa", true})
			s = subjectOf(ev, d, p)
			w.compare("of a pull request", []any{s.batch, s.number, s.env, s.pull == p}, []any{batch && w.batch, n, "qa", true})
			for _, x := range []promotion.PullAction{promotion.Open{Environment: "qa", Members: p.Members, Batch: batch}, promotion.OpenRevert{Environment: "qa", Pull: n, Members: p.Members, Batch: batch}} {
				s, err = actionSubject(ev, d, x)
				w.must(err)
				w.compare("to be opened", []any{s.batch, s.number, s.pull == nil, len(s.members)}, []any{batch, 0, true, len(p.Members)})
			}
		}
	})
}

// TestBodyHasTheApplicationsCommits holds that a source shows what is new in the
// application's own repository, or why that can't be told.
func TestBodyHasTheApplicationsCommits(t *testing.T) {
	t.Parallel()
	for source, says := range map[string]string{
		"acme/{{component}}-app@v{{value}}": "2 commits in the application's own repository `acme/web-app` from `v1.0.0` to `v2.0.0`, by Grace and Ada as the commits say ([compare](https://git.example/acme/web-app/compare/v1.0.0...v2.0.0)):\n\n" +
			"- [`bbbbbbbbbbbb`](https://git.example/acme/web-app/commit/" + strings.Repeat("b", 40) + ") End (Grace, 2026-05-01)\n- [`aaaaaaaaaaaa`](https://git.example/acme/web-app/commit/" + strings.Repeat("a", 40) + ") Begin (#&#8203;3) (Ada, 2026-05-01)\n",
		"acme/other@{{value}}":     "The commits of `acme/other` from `1.0.0` to `2.0.0` can't be read: there are no such revisions, or Liftlock's account may not read that repository.\n",
		"acme/slow@{{value}}":      "The commits of `acme/slow` from `1.0.0` to `2.0.0` can't be read: the forge can't answer now; it is asked again.\n",
		"elsewhere/web@v{{value}}": "The commits of `elsewhere/web` can't be read: spec.source: only repositories of acme are read, the owner of this one.\n",
	} {
		w := newFixture(t, "  source: '"+source+"'\n", "web")
		if body := w.forge.pulls[w.open("2.0.0")].Body; !strings.Contains(body, says) {
			t.Errorf("%s: it doesn't say %q:\n%s", source, says, body)
		}
	}
}

// fakeImages are what images say that they were built from: of each tag.
type fakeImages map[string]string

func (fakeImages) CanRead(string) bool { return true }

func (f fakeImages) Source(_ context.Context, image string) (source, revision string, err error) {
	_, tag, _ := strings.Cut(image, ":")
	if revision = f[tag]; revision == "" {
		return "", "", errors.New("the registry can't answer now; it is asked again")
	}
	return "https://git.example/acme/web-app", revision, nil
}

// TestBodyHasTheImagesCommits holds that what images say of themselves shows what is new in the
// application's own repository, or why that can't be told.
func TestBodyHasTheImagesCommits(t *testing.T) {
	t.Parallel()
	one, two := strings.Repeat("1", 40), strings.Repeat("2", 40)
	for says, images := range map[string]fakeImages{
		"2 commits in the application's own repository `acme/web-app` from `111111111111` to `222222222222`, by Grace and Ada as the commits say ([compare](https://git.example/acme/web-app/compare/" + one + "..." + two + ")):\n\n- ": {"1.0.0": one, "2.0.0": two},
		"What the image `registry.example/web:2.0.0` was built from can't be read: the registry can't answer now; it is asked again.\n":                                                                                                  {"1.0.0": one},
	} {
		w := newFixture(t, "", "web")
		w.images = images
		w.start()
		if body := w.forge.pulls[w.open("2.0.0")].Body; !strings.Contains(body, says) {
			t.Errorf("it doesn't say %q:\n%s", says, body)
		}
	}
}
