package doctor_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/server/doctor"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

func asItIs(p doctor.Prober) doctor.Prober { return p }

var probeFaults = []fault{
	{name: "all may be written", plant: nothing},
	{name: "a probe before was killed", plant: func(in *installation) {
		_, err := in.em.CommitAs(repoName, adminLogin, "liftlock/_doctor/environment/probe", "Probe", map[string]string{"probe.txt": "left\n"})
		in.do(err)
	}},
	{name: "no push", plant: refuse("POST", "/git-receive-pack$", emulator.Fault{Status: http.StatusForbidden}), want: []doctor.Code{"probe-push"}},
	{name: "a push that isn't answered", plant: refuse("POST", "/git-receive-pack$", emulator.Fault{Status: http.StatusBadGateway}), want: []doctor.Code{"probe-unread"}},
	{name: "no status", plant: refuse("POST", "/statuses/", emulator.Fault{Status: http.StatusForbidden}), want: []doctor.Code{"probe-status"}},
	{name: "no deletion", plant: refuse("DELETE", "", emulator.Fault{Status: http.StatusForbidden}), want: []doctor.Code{"probe-delete"}},
	{name: "a deletion that isn't answered", plant: refuse("DELETE", "", emulator.Fault{Status: http.StatusBadGateway}), want: []doctor.Code{"probe-unread"}},
}

// TestProbe: a probe finds what can't be written, and leaves nothing where it could be deleted.
func TestProbe(t *testing.T) {
	t.Parallel()
	for _, f := range probeFaults {
		for _, face := range faces(f.faces...) {
			t.Run(f.name+" on "+string(face), func(t *testing.T) {
				t.Parallel()
				in := newInstallation(t, face, 0)
				in.prober = asItIs
				f.plant(in)
				report := in.examine(context.Background())
				if got := report.Codes(); !slices.Equal(got, f.want) {
					t.Errorf("found %q, want %q:\n%s", got, f.want, text(t, report))
				}
				// Once nothing stands in the way, nothing is left.
				in.em.ClearFaults()
				if got := in.examine(context.Background()).Codes(); len(got) > 0 {
					t.Errorf("a second probe finds %q", got)
				}
				in.checkNoProbe()
			})
		}
	}
}

// TestNoProbe: without a probe, nothing is written.
func TestNoProbe(t *testing.T) {
	t.Parallel()
	for _, face := range faces() {
		in := newInstallation(t, face, 0)
		in.em.ResetCalls()
		in.examine(context.Background())
		for call := range in.em.Calls() {
			if !strings.HasPrefix(call, "GET ") && !strings.HasSuffix(call, "/git-upload-pack") {
				t.Errorf("it calls %s", call)
			}
		}
	}
}

// interrupting ends a context when a status is set: somebody interrupts the probe there.
type interrupting struct {
	doctor.Prober
	interrupt context.CancelFunc
}

func (i interrupting) SetStatus(ctx context.Context, r forge.Repo, commit string, s forge.Status) error {
	i.interrupt()
	return i.Prober.SetStatus(ctx, r, commit, s)
}

// TestProbeInterrupted: what a probe has pushed is deleted also where it is interrupted.
func TestProbeInterrupted(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, emulator.GitHub, 0)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	in.prober = func(p doctor.Prober) doctor.Prober { return interrupting{p, cancel} }
	in.examine(ctx)
	if ctx.Err() == nil {
		t.Error("it wasn't interrupted")
	}
	in.checkNoProbe()
}

// stalling never answers when a status is set.
type stalling struct{ doctor.Prober }

func (stalling) SetStatus(ctx context.Context, _ forge.Repo, _ string, _ forge.Status) error {
	<-ctx.Done()
	return &forge.Error{Op: "set a status", Kind: forge.ErrRetryable, Err: ctx.Err()}
}

// TestProbeStalled: a status that takes all of its time takes none of the deletion's, and none of
// what is checked after the probe.
func TestProbeStalled(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, emulator.GitHub, 0)
	in.timeout = 3 * time.Second
	in.prober = func(p doctor.Prober) doctor.Prober { return stalling{p} }
	report := in.examine(context.Background())
	if got := report.Codes(); !slices.Equal(got, []doctor.Code{"probe-unread"}) {
		t.Errorf("found %q:\n%s", got, text(t, report))
	}
	in.checkNoProbe()
}

// TestProbeAnswerLost: a push that arrived, and of which that isn't known, leaves nothing.
func TestProbeAnswerLost(t *testing.T) {
	t.Parallel()
	for _, face := range faces() {
		t.Run(string(face), func(t *testing.T) {
			t.Parallel()
			in := newInstallation(t, face, 0)
			in.prober = asItIs
			refuse("POST", "/git-receive-pack$", emulator.Fault{After: true, Cut: true})(in)
			report := in.examine(context.Background())
			if got := report.Codes(); !slices.Equal(got, []doctor.Code{"probe-unread"}) {
				t.Errorf("found %q:\n%s", got, text(t, report))
			}
			in.checkNoProbe()
		})
	}
}

func (in *installation) checkNoProbe() {
	in.t.Helper()
	if head, err := in.em.Head(repoName, "liftlock/_doctor/environment/probe"); err != nil || head != "" {
		in.t.Errorf("the branch is at %q, %v", head, err)
	}
}
