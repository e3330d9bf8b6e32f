package sim

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	mutantsFlag = flag.String("sim.mutants", "", "plant the bugs whose names match, one after the other, and tell in how many seeds each is found")
	briefFlag   = flag.Bool("sim.brief", false, "say of a world that breaks a rule only which it is, and which rule")
)

// mutant is a small bug that is planted into the service, while it is built, to see whether
// the simulation finds it.
type mutant struct {
	name  string
	edits []edit // each in a file of its own
}

// edit replaces a text of a file.
type edit struct {
	file string // below internal
	old  string // is there exactly once
	new  string
}

// mutants are the planted bugs. Attacks that once succeeded against the shell are among them, and
// the heart of the service besides.
var mutants = []mutant{
	{"what somebody else composed on our branch is taken for ours", []edit{{"controller/facts/pulls.go", "v.DeclaredRelease.Value != v.Release && !promotion", "v.DeclaredRelease.Value != v.Release && false && !promotion"}}},
	{"a release's authors may approve it", []edit{{"../policies/countapprovals.go", "case slices.ContainsFunc(f.Authors, by.Matches):", "case false:"}}},
	{"what was heard from Argo CD is dropped when it can't be written", []edit{{"controller/controller.go", "co.pending.restore(inputsChanged, keys)", "_ = keys"}}},
	{"every state counts as judged", []edit{{"controller/judgedstates.go", "return !slices.ContainsFunc(digests,", "return true || !slices.ContainsFunc(digests,"}}},
	{"a stale mirror isn't fetched before it is judged", []edit{{"controller/unit.go", "if err := co.ensureFresh(ctx, r); err != nil {", "if err := ctx.Err(); err != nil {"}}},
	{"processes go by their own clocks", []edit{{"store/clock.go", "if s.at.IsZero() {", "if s.at.IsZero() || own.After(time.Time{}) {"}}},
	{"the branch isn't asked for again before a merge", []edit{{"controller/act/merge.go", "if len(moved) > 0 {", "if len(moved) > 0 && false {"}}},
	{"a veto is forgotten", []edit{{"promotion/candidate.go", "case SameRelease(release, p.Release), p.Release == \"\" && !merged:\n\t\t\treturn p", "case SameRelease(release, p.Release), p.Release == \"\" && !merged:\n\t\t\treturn nil"}}},
	{"what is remembered of closed pull requests isn't read again", []edit{{"controller/facts/rememberedhistory.go", "known.version == c.pastVersion && known.about", "known.about"}}},
	{"what is remembered of arrivals isn't read again", []edit{{"controller/facts/rememberedhistory.go", "if !ok || known.version != version {", "if !ok {"}}},
	{"a hold is acknowledged before it is set", []edit{{"controller/commentcommands.go", "reaction := reactionDone\n", "reaction := reactionDone\n\tif err := r.Forge.React(ctx, r.Name, pr.Number, k.ID, reaction); err != nil {\n\t\treturn err\n\t}\n"}}},
	{"strangers' commands are carried out", []edit{{"controller/executecommand.go", "if err := command.Authorise(o.Command, who, len(envs) > 0); err != nil {", "if err := command.Authorise(o.Command, who, len(envs) > 0); err != nil && false {"}}},
	{"the label of a hold isn't read", []edit{{"controller/facts/openpull.go", "Held: pr.HasLabel(promotion.LabelHold),", "Held: false,"}}},
	{"the quarantine isn't looked at", []edit{{"promotion/candidate.go", "if e.Revert != nil && SameRelease(", "if true {\n\t\treturn \"\", time.Time{}\n\t}\n\tif e.Revert != nil && SameRelease("}}},
	{"a person's own value is overwritten", []edit{{"promotion/incoming.go", "if st.State == Diverged && forced == nil {", "if false {"}, {"promotion/gates.go", "if e.Landed.Value.By == ByPerson && ev.find", "if false && ev.find"}}},
	{"health from before the sync counts", []edit{{"promotion/verification/health.go", "if !refreshed && m.Reconciles < 2 {", "if false && !refreshed {"}}},
	{"a hold on more than a pull request isn't read", []edit{{"promotion/gates.go", "for _, h := range ev.findHoldsOn(e) {", "for _, h := range ev.findHoldsOn(e)[:0] {"}}},
	{"healthyFor is ignored", []edit{{"promotion/verification/health.go", "m.HealthySince.Add(j.HealthyFor)", "m.HealthySince.Add(0)"}}},
	{"what runs isn't looked at", []edit{{"promotion/verification/health.go", "why != \"\" && !j.OtherImagesPass", "why != \"\" && false && !j.OtherImagesPass"}}},
	{"what runs is compared by its tag alone", []edit{{"promotion/verification/images.go", "got.isOf(want) && got.mayBe(want)", "got.mayBe(want)"}}},
	{"of what runs one workload is forgotten", []edit{{"promotion/verification/images.go", "for i := range j.e.Images {", "for i := range j.e.Images[:min(1, len(j.e.Images))] {"}}},
	{"what runs is compared with the release before", []edit{{"controller/facts/live/landedimages.go", "Image: i.Image, Was: i.Was", "Image: append(i.Was, i.Image)[0], Was: i.Was"}}},
	{"what isn't verified may go on", []edit{{"promotion/candidate.go", "|| !a.IsVerified() ||", "||"}, {"promotion/gates.go", "if r := ev.rollups[u.Name]; !r.clear {", "if r := ev.rollups[u.Name]; !r.clear && false {"}}},
	{"what was verified before a revert speaks for a release that is back", []edit{{"promotion/candidate.go", "if c.RevertedFrom != \"\" {", "if false {"}}},
	{"one of several environments upstream is enough", []edit{{"promotion/candidate.go", "delete(all, id)\n", ""}}},
	{"onDegraded: hold is ignored", []edit{{"promotion/degradation.go", "if e.Spec.OnDegraded.Action == pipeline.OnDegradedHold {", "if e.Spec.OnDegraded.Action == pipeline.OnDegradedHold && false {"}}},
	{"a revert is merged that people are to merge", []edit{{"promotion/degradation.go", "if !mergesItself && !u.Queued {", "if !mergesItself && false {"}}},
	{"a promotion is merged that people are to merge", []edit{{"promotion/openpromotion.go", "if !e.MergesByItself(false) && !p.Queued {", "if false {"}}},
	{"an incident is taken for the promotion's doing", []edit{{"promotion/degradation.go", " || !ev.ruledOutIncident(e, st)", ""}}},
	{"a run that failed isn't tried again", []edit{{"controller/runner.go", "out.Next, out.NotBefore = retryTimes(co.opts.Clock.Now(), c, next, err)", "out.Next = next"}}},
	{"what was done isn't looked at again", []edit{{"controller/unit.go", "return co.opts.Clock.Now(), errors.Join(failed.joined(), unfetched)", "return next, errors.Join(failed.joined(), unfetched)"}}},
	{"a broken pipeline file keeps nothing from merging", []edit{{"promotion/gates.go", "if ev.facts.PipelineErr != \"\" {", "if false {"}}},
	{"an approval of an older diff counts", []edit{{"../policies/countapprovals.go", "case !v.Current:", "case false:"}}},
	{"the signature of a delivery isn't checked", []edit{{"../webhooks/receiver.go", "if !verify(body.data) {", "if !verify(body.data) && false {"}}},
	{"a revert restores what was there ten commits before", []edit{{"controller/facts/effects/composition.go", "files, err := branch.ChangedPaths(ctx, m, info.Parents[0], commit)", "for range 10 {\n\t\tif p, err := m.Commit(ctx, info.Parents[0]); err == nil && len(p.Parents) > 0 {\n\t\t\tinfo = p\n\t\t}\n\t}\n\tfiles, err := branch.ChangedPaths(ctx, m, info.Parents[0], commit)"}}},
	{"what may not be merged any more stays in the merge queue", []edit{{"promotion/queue.go", "d.Actions = slices.Insert(d.Actions, i, Action(leave))", "_ = leave"}}},
	{"what is to leave the merge queue is only said to have left it", []edit{{"controller/act/queue.go", "left := r.Forge.LeaveQueue(forge.WithPriority(ctx, forge.PriorityUrgent), r.Name, x.Pull)", "var left error"}}},
	{"that a pull request is in the merge queue isn't read", []edit{{"controller/facts/openpull.go", "p.Queued = isQueued(&r.Pull, p.JoinedQueueAt)", "p.Queued = false"}}},
	{"what the merge queue dropped joins it again by itself", []edit{{"promotion/queue.go", "return !p.JoinedQueueAt.IsZero() && !p.Queued", "return false"}}},
	{"an open promotion isn't judged against a rollback upstream", []edit{{"promotion/gates.go", "if why := ev.reasonNotToMerge(e, ev.findCommandFor(e, p.Release)); why.Text != \"\" {", "if why := ev.reasonNotToMerge(e, ev.findCommandFor(e, p.Release)); why.Text != \"\" && why.Code != cause.Withdrawn {"}, {"promotion/openpromotion.go", "if withdrawn.Code != cause.Withdrawn {", "if withdrawn.Code != cause.Withdrawn || true {"}}},
	{"a merge elsewhere counts as a promotion", []edit{{"controller/facts/landing.go", "if env == nil || p.PR.Base == env.Branch {", "if env == nil || p.PR.Base != \"\" {"}}},
	{"a veto isn't looked at over a pushed head", []edit{{"promotion/openpromotion.go", "if why, _ := ev.reasonNotToCome(e, &c, command); why.Text != \"\" || known != nil {", "if why, veto := ev.reasonNotToCome(e, &c, command); veto == nil && (why.Text != \"\" || known != nil) {"}}},
	{"a restraint is dropped after fifty arrivals", []edit{{"controller/facts/rememberedhistory.go", "rows, err := ga.opts.Store.OlderArrivals(ctx, unit, releases...)", "rows, err := ga.opts.Store.OlderArrivals(ctx, unit, releases[:0]...)"}}},
	{"a label is believed", []edit{{"controller/facts/landing.go", "return components, r.Marks.IsClosingMarked(r.ID, pr), nil", "return components, true, nil"}}},
	{"the lease's end isn't compared", []edit{{"cache/lock/lease.go", "l != nil && l.Left() <= 0", "l != nil && l.Left() <= 0 && false"}}},
	{"the quarantine compares whole identities", []edit{{"promotion/candidate.go", "!p.OnOtherBranch || !SameRelease(release, wording.Short(p.Release))", "!p.OnOtherBranch || release != p.Release"}}},
	{"a batch merges when its first member may", []edit{{"promotion/batchplan.go", "late := slices.IndexFunc(j.current, func", "late := slices.IndexFunc(j.current[:1], func"}}},
	{"the quarantine is looked for one step upstream only", []edit{{"promotion/candidate.go", "for _, u := range ev.listUpstream(e) {\n\t\tif why, _ := ev.quarantineReason(u, release); why != \"\" {", "for _, u := range ev.listUpstream(e) {\n\t\tif why, _ := ev.quarantineReason(u, release); why != \"\" && slices.Contains(e.Spec.After, u.Name) {"}}},
	{"what woke a running key is lost", []edit{{"store/wakes.go", "due_at = CASE WHEN CAST($1 AS BIGINT) < 0 OR due_at < liftlock_now() + CAST($1 AS BIGINT) THEN due_at\n", "due_at = CASE WHEN CAST($1 AS BIGINT) < 0 THEN 9223372036854775807\n"}}},
	{"a run that lost its claim stores all the same", []edit{{"store/tx.go", "held, err := t.holdsClaim(ctx, t.run.owner, t.run.claim)\n\tif err == nil && !held {", "held, err := t.holdsClaim(ctx, t.run.owner, t.run.claim)\n\tif err == nil && !held && false {"}}},
	{"what a person took back in the source comes in again by itself", []edit{{"discover/decide.go", "out[tag] = isUnknown || oldest != nil &&", "out[tag] = false && oldest != nil &&"}}},
	{"what was reverted further on comes in by itself", []edit{{"promotion/discovery.go", "if why, _ := ev.quarantineReason(e, release); why != \"\" {", "if why, _ := ev.quarantineReason(e, release); why != \"\" && false {"}}},
	{"what comes in by itself comes in over a hold", []edit{{"promotion/discovery.go", "if holds := ev.listHolds(source); len(holds) > 0 {", "if holds := ev.listHolds(source); len(holds) > 0 && false {"}}},
	{"unsigned images come in", []edit{{"discover/decide.go", "if why == \"\" && q.NeedsSignature {\n\t\t\tif why = rejectForSignature(c.tag, q); why == unverified {", "if why == \"\" && q.NeedsSignature {\n\t\t\tif why = rejectForSignature(c.tag, q); why != unverified {\n\t\t\t\twhy = \"\"\n\t\t\t}\n\t\t\tif why == unverified {"}}},
	{"retry doesn't let what the merge queue dropped join it again", []edit{{"promotion/retry.go", "ev.addAction(RejoinQueue{Environment: e.Name, Pull: dropped.Number})", "_ = dropped.Number"}}},
}

// apply gives a file's path and what is in it with the edit.
func (e edit) apply(t *testing.T) (path, code string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../..", e.file))
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(before), e.old); n != 1 {
		t.Fatalf("%q is %d times in %s, and must be there once", e.old, n, e.file)
	}
	return path, strings.Replace(string(before), e.old, e.new, 1)
}

// TestMutantsApply holds that the code that the bugs are planted into is still there, and
// that it stays Go.
func TestMutantsApply(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			for _, e := range m.edits {
				path, code := e.apply(t)
				if _, err := parser.ParseFile(token.NewFileSet(), path, code, parser.SkipObjectResolution); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// plant builds the test binary of this package with a bug in it.
func (m mutant) plant(t *testing.T) (binary string) {
	t.Helper()
	dir := t.TempDir()
	replaced := map[string]string{}
	for i, e := range m.edits {
		path, code := e.apply(t)
		replaced[path] = filepath.Join(dir, fmt.Sprintf("planted%d.go", i))
		if err := os.WriteFile(replaced[path], []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay := filepath.Join(dir, "overlay.json")
	data, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, data, 0o600); err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(dir, "sim.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build it with the bug: %v\n%s", err, out)
	}
	return binary
}

// foundPattern is what TestSimulation says with -sim.brief.
var foundPattern = regexp.MustCompile(`(?m)^sim: world (\d+) broke (.*)$`)

// TestMutants plants bugs, one after the other; each must be found.
func TestMutants(t *testing.T) {
	if *mutantsFlag == "" {
		t.Skip("-sim.mutants plants bugs")
	}
	which, err := regexp.Compile(*mutantsFlag)
	if err != nil {
		t.Fatal(err)
	}
	first, worlds := max(*seedFlag, 1), *worldsFlag
	if worlds == 0 {
		worlds = 1000
	}
	var rows []string
	for _, m := range mutants {
		if !which.MatchString(m.name) {
			continue
		}
		row := "can't be built"
		t.Run(m.name, func(t *testing.T) {
			binary := m.plant(t)
			row = fmt.Sprintf("not found in %d seeds", worlds)
			out, err := exec.CommandContext(t.Context(), binary, "-test.run", "^TestSimulation$", "-test.timeout", "0", "-sim.brief", "-sim.but", *butFlag, "-sim.seed", strconv.FormatInt(first, 10), "-sim.worlds", strconv.Itoa(worlds)).CombinedOutput()
			found := foundPattern.FindSubmatch(out)
			if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) || found == nil {
				t.Fatalf("not found: %v\n%s", err, out)
			}
			row = fmt.Sprintf("found in the world %s: %s", found[1], found[2])
		})
		rows = append(rows, fmt.Sprintf("%-70s %s", m.name, row))
		fmt.Println(rows[len(rows)-1])
	}
	fmt.Printf("\n%s\n", strings.Join(rows, "\n"))
}
