package act

import (
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// TestHoldsAreRestored restores holds that others' pushes to the state branch remove or make
// weaker, with an entry in the audit trail, and leaves the ones that they add.
func TestHoldsAreRestored(t *testing.T) {
	const file, other = "holds/shop/component/web.yaml", "holds/shop/environment/qa.yaml"
	theirs := "by: mallory\nreason: mine\nat: \"2026-01-02T03:04:05Z\"\n"
	for name, c := range map[string]struct {
		push     map[string]string // over the branch; an empty text deletes
		back     int               // for how many of our commits the branch is taken back first
		deleted  bool
		web, qa  string // who holds them then, by name
		restored bool
	}{
		"nothing of a hold":          {push: map[string]string{"README.md": "x"}, web: "ada grace"},
		"another hold":               {push: map[string]string{other: theirs}, web: "ada grace", qa: "mallory"},
		"one more in the same file":  {push: map[string]string{file: theirs}, web: "mallory ada grace", restored: true},
		"the file is gone":           {push: map[string]string{file: ""}, web: "ada grace", restored: true},
		"it can't be read any more":  {push: map[string]string{file: "{"}, web: "ada grace", restored: true},
		"it has an end now":          {push: map[string]string{file: "by: ada\nreason: load test\nat: \"2026-01-02T03:04:05Z\"\nuntil: \"2026-01-02T03:04:06Z\"\n"}, web: "ada grace", restored: true},
		"it is taken back":           {back: 1, web: "ada grace", restored: true},
		"it is taken back and added": {back: 1, push: map[string]string{other: theirs}, web: "ada grace", qa: "mallory", restored: true},
		"it is deleted":              {deleted: true, web: "ada grace", restored: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, "", "web")
			var heads []string
			for _, by := range []string{"ada", "grace"} {
				w.now = w.now.Add(time.Minute)
				w.setHold(Hold{Scope: "component", By: by, Reason: "load test", Set: true})
				heads = append(heads, w.remoteHead(history.StateBranch))
			}
			w.now = w.now.Add(time.Minute)
			at := heads[len(heads)-1-c.back]
			if c.push != nil {
				spec := git.CommitSpec{Message: "Tidy up", When: w.now, Parents: []string{at}, Base: at, Author: &git.Ident{Name: "mallory", Email: "m@example.com"}}
				for path, text := range c.push {
					spec.Files = append(spec.Files, git.FileWrite{Path: path, Content: []byte(text), Delete: text == ""})
				}
				var err error
				at, err = w.repo.Mirror.Write(w.ctx(), spec)
				w.must(err)
				w.must(w.repo.Mirror.Push(w.ctx(), git.PushSpec{Branch: "theirs", New: at}))
			}
			if c.deleted {
				at = ""
			}
			w.setRemoteHead(history.StateBranch, at)
			w.fetch()
			for range 2 { // done again it changes nothing
				head, err := w.actor.RestoreHolds(w.ctx(), w.repo)
				w.must(err)
				w.compare("it is at", head, w.remoteHead(history.StateBranch))
			}
			who := func(file string) string {
				all, err := history.ReadHolds(w.repo.Mirror.Tree(w.remoteHead(history.StateBranch)), file)
				w.must(err)
				var out []string
				for _, h := range promotion.ListActive(all, w.now) {
					out = append(out, h.By)
				}
				return strings.Join(out, " ")
			}
			w.compare("web is held by", who(file), c.web)
			w.compare("qa is held by", who(other), c.qa)
			trail, err := w.store.AuditTrail(w.ctx(), store.AuditFilter{Verb: "unhold"}, 10)
			w.must(err)
			w.compare("entries of the audit trail", len(trail), map[bool]int{true: 1}[c.restored])
			if c.restored && (trail[0].Actor != "somebody" || trail[0].Via != promotion.AuditViaForge || !strings.HasPrefix(trail[0].Outcome, "refused")) {
				t.Errorf("the entry is %+v", trail[0])
			}
			w.setHold(Hold{Scope: "component", By: "ada", Lift: promotion.Lift{}})
		})
	}
}
