package facts

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
)

// pushHistory gives the tracked branch the commits of a long history of promotions of one
// component, and of others, and returns their pull requests. Of the closed ones most were merged,
// some were replaced, some a person refused and some are reverts.
func (b *benchRepo) pushHistory(component int, pulls int, marks branch.MarkSigner) []forge.PullRequest {
	b.b.Helper()
	var s bytes.Buffer
	out := make([]forge.PullRequest, 0, pulls)
	merged := map[int]int{} // by mark: the pull request
	began := time.Now().Add(-time.Duration(pulls+1) * time.Hour)
	for n := 1; n <= pulls; n++ {
		i, env, at := component, benchEnvs[1+n%3], began.Add(time.Duration(n)*time.Hour)
		if n%2 == 1 {
			i = n % *benchComponents
		}
		name, release := fmt.Sprintf("c%04d", i), fmt.Sprintf("%012x%052x", n, n)
		branchName, head := promotion.Branch("shop", env, name), fmt.Sprintf("%040x", n)
		pr := forge.PullRequest{Number: n, Title: "Promote " + name + " to " + env, Branch: branchName, Base: "main", Head: head,
			Author: "liftlock", State: forge.Closed, CreatedAt: at.Add(-time.Hour), UpdatedAt: at, ClosedAt: at, Labels: []string{promotion.LabelOurs},
			Body: fmt.Sprintf("%s\n%2000s", marks.Sign("hub:acme/fleet", branchName, head, branch.Marker{Kind: promotion.KindPromotion, Release: release}), "what a person reads")}
		switch {
		case n%20 < 4:
			pr.Labels = append(pr.Labels, promotion.LabelSuperseded)
		case n%20 == 6: // refused
		default:
			if n%50 == 8 {
				pr.Branch, pr.Body = promotion.RevertBranch("shop", env, name, release), branch.Marker{Kind: promotion.KindRevert, Release: release, Of: n - 1}.String()
			}
			pr.State, pr.MergedAt, pr.MergedBy = forge.Merged, at, "ada"
			merged[len(merged)+1] = n
			text := benchOverlay(name, env, fmt.Sprintf("0.%d.0", n))
			fmt.Fprintf(&s, "commit refs/heads/main\nmark :%d\nauthor a <a@example.com> %[2]d +0000\ncommitter a <a@example.com> %[2]d +0000\ndata 7\nPromote\n", len(merged), at.Unix())
			if len(merged) == 1 {
				fmt.Fprintf(&s, "from %s\n", b.head)
			}
			fmt.Fprintf(&s, "M 100644 inline %s/kustomization.yaml\ndata %d\n%s\n", benchRoot(i, env), len(text), text)
		}
		out = append(out, pr)
	}
	table := filepath.Join(b.b.TempDir(), "marks")
	b.git(b.bare, s.Bytes(), "fast-import", "--quiet", "--export-marks="+table)
	b.head = b.git(b.bare, nil, "rev-parse", "refs/heads/main")
	text, err := os.ReadFile(table)
	if err != nil {
		b.b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var mark int
		var sha string
		if _, err := fmt.Sscanf(line, ":%d %s", &mark, &sha); err != nil {
			b.b.Fatal(err)
		}
		out[merged[mark]-1].MergeCommit = sha
	}
	return out
}

// markWithRelease is a pull request whose mark names the release that the unit has had by its merge, as
// that of one which we composed does.
func (b *benchRepo) markWithRelease(o *Gatherer, s *branch.Snapshot, u promotion.Unit, pr forge.PullRequest) forge.PullRequest {
	ref, ok := promotion.ParseBranch(pr.Branch)
	if !ok || ref.Component != u.Component || ref.Revert || pr.MergeCommit == "" {
		return pr
	}
	p, unit := s.Unit(u)
	release := o.Releases.ReleaseIDAt(s.Repo, pr.MergeCommit, p, unit.Envs[ref.Environment])
	if release == "" {
		b.b.Fatalf("#%d brought no release", pr.Number)
	}
	_, read, _ := strings.Cut(pr.Body, "\n")
	pr.Body = s.Repo.Marks.Sign(s.Repo.ID, pr.Branch, pr.Head, branch.Marker{Kind: promotion.KindPromotion, Release: release}) + "\n" + read
	return pr
}

// BenchmarkLook is one look at one component, whose pipeline has no closed pull
// requests, or many.
func BenchmarkLook(b *testing.B) {
	w := newBenchRepo(b)
	marks, err := branch.NewMarkSigner([]byte("a secret of the server's, long enough"))
	if err != nil {
		b.Fatal(err)
	}
	history := w.pushHistory(*benchComponents/2, 20_000, marks)
	r := w.newRepository(w.bare)
	r.Forge, r.BotLogin, r.Marks = emptyForge{}, "liftlock", marks
	component, _, _ := w.changedComponent()
	for _, closed := range []int{0, 20_000} {
		b.Run(fmt.Sprintf("closed=%d", closed), func(b *testing.B) {
			w.b = b
			st, err := store.Open(b.Context(), "sqlite://"+filepath.Join(b.TempDir(), "liftlock.db"), store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = st.Close() }()
			hub := &healthyArgoCD{fakeArgoCD: fakeArgoCD{clustersErr: argocd.ErrClustersOff}, apps: map[string]verification.App{}}
			o := New(Options{Store: st, Resolver: appset.New(appset.Options{}), MainArgoCD: "hub", Repos: []*branch.Repository{r}, Now: time.Now, MaxAge: time.Hour,
				ArgoCDs: map[string]branch.ArgoCD{"hub": {Apps: hub, Live: &hub.fakeArgoCD, Namespace: "argocd"}}})
			s := w.takeSnapshot(o, r)
			for _, t := range s.Pipeline("shop").TargetSet.Targets {
				hub.apps[t.Name] = verification.App{ArgoCD: "hub", Name: t.Name, Namespace: "argocd", Health: "Healthy", Revisions: []string{w.head},
					Destination: verification.Destination{Server: t.Server, Namespace: t.DestNS}}
			}
			u := promotion.Unit{Repo: r.ID, Pipeline: "shop", Component: component}
			rows := make([]store.Pull, closed)
			for i := range rows {
				rows[i] = o.PullCache.pullRow(r, w.markWithRelease(o, s, u, history[i]), nil, true)
			}
			if err := st.PutPulls(b.Context(), rows...); err != nil {
				b.Fatal(err)
			}
			look := func() *Evaluation {
				ev, d, err := o.Evaluate(b.Context(), s, u, false)
				if err != nil || len(d.Components[0].Envs) != len(benchEnvs) {
					b.Fatal(d, err)
				}
				return ev
			}
			for range 1 + closed/maxSettledAtOnce { // what landed and what was moved is found and written down
				ev := look()
				if err := st.Tx(b.Context(), "judged", func(tx *store.Tx) error { return o.SettlePulls(b.Context(), tx, ev.Components[0]) }); err != nil {
					b.Fatal(err)
				}
			}
			watch := newStopwatch(b)
			b.ReportAllocs()
			for b.Loop() {
				look()
			}
			watch.report()
		})
	}
}
