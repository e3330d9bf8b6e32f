package doctor_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/emulator"
	"github.com/liftlock/liftlock/internal/forge/github"
	"github.com/liftlock/liftlock/internal/server/doctor"
)

// fault is one that is planted in a sound installation.
type fault struct {
	name  string
	faces []emulator.Face // where it can be; none: everywhere
	plant func(in *installation)
	want  []doctor.Code // all that is found
	calls int           // how many the forge allows; 0: as many as it does anyway
}

// edit replaces something in the server's file, which must be there.
func edit(old, with string) func(*installation) {
	return func(in *installation) {
		in.t.Helper()
		if !strings.Contains(in.file, old) {
			in.t.Fatalf("the server's file has no %q:\n%s", old, in.file)
		}
		in.file = strings.Replace(in.file, old, with, 1)
	}
}

// refuse has calls of the forge fail, until the end.
func refuse(method, path string, f emulator.Fault) func(*installation) {
	return func(in *installation) {
		f.Method, f.Path, f.Times = method, path, -1
		in.do(in.em.InjectFault(f))
	}
}

// replaceHook has a hook of somebody's own instead of the one that was there.
func replaceHook(h emulator.Hook) func(*installation) {
	return func(in *installation) {
		in.do(in.em.RemoveHooks(repoName))
		h.URL = in.hookURL()
		in.do(in.em.AddHook(repoName, adminLogin, h))
	}
}

const onGitHub, onGitLab = emulator.GitHub, emulator.GitLab

var hostFaults = []fault{
	{name: "no git", plant: func(in *installation) { in.host.gitErr = errPlanted }, want: []doctor.Code{"git-unusable"}},
	{name: "little room", plant: func(in *installation) { in.host.free = 1 << 30 }, want: []doctor.Code{"disk-low"}},
	{name: "no room", plant: func(in *installation) { in.host.free = 1 << 20 }, want: []doctor.Code{"disk-full"}},
	{name: "room that can't be read", plant: func(in *installation) { in.host.diskErr = errPlanted }, want: []doctor.Code{"disk-unread"}},
	{name: "a folder of somebody else's", plant: func(in *installation) { in.host.dirErr = errPlanted }, want: []doctor.Code{"data-dir-closed"}},
	{name: "a clock that is behind", plant: func(in *installation) { in.off = -3 * time.Minute }, want: []doctor.Code{"clock-off"}},
	{name: "a clock that is ahead", plant: func(in *installation) { in.off = 3 * time.Minute }, want: []doctor.Code{"clock-off"}},
}

var fileFaults = []fault{
	{name: "a key that doesn't exist", plant: edit("repositories:", "repositoires:"), want: []doctor.Code{"file-invalid"}},
	{name: "a variable that isn't set", plant: func(in *installation) { delete(in.env, "FORGE_TOKEN") }, want: []doctor.Code{"file-invalid"}},
	{name: "nobody can read", plant: edit("dataDir:", "listen: 0.0.0.0:8080\ndataDir:"), want: []doctor.Code{"readers-missing"}},
	{name: "no TLS", plant: func(in *installation) {
		in.file = strings.ReplaceAll(in.file, "http://127.0.0.1", "http://liftlock.invalid")
		edit("url: http://liftlock.invalid", "url: http://127.0.0.1")(in)
	}, want: []doctor.Code{"address-plain", "hook-missing"}},
}

var forgeFaults = []fault{
	{name: "a forge that is down", plant: func(in *installation) { in.do(in.em.Close()) }, want: []doctor.Code{"forge-unreachable"}},
	{name: "a forge that fails", plant: refuse("GET", "/user$", emulator.Fault{Status: http.StatusBadGateway}), want: []doctor.Code{"forge-unreachable"}},
	{name: "a forge that doesn't answer", plant: func(in *installation) { in.timeout = 200 * time.Millisecond; in.em.SetLatency(time.Minute) }, want: []doctor.Code{"forge-unreachable"}},
	{name: "a token that was revoked", plant: func(in *installation) { in.do(in.em.SetToken(botLogin, "")) }, want: []doctor.Code{"credentials-refused"}},
	{name: "a token without repo", faces: []emulator.Face{onGitHub}, plant: func(in *installation) { in.do(in.em.SetToken(botLogin, botToken, "read:org")) }, want: []doctor.Code{"grant-missing"}},
	{name: "a token that only reads", faces: []emulator.Face{onGitLab}, plant: func(in *installation) { in.do(in.em.SetToken(botLogin, botToken, "read_api")) }, want: []doctor.Code{"grant-missing"}},
	{name: "a token that ends soon", plant: func(in *installation) { in.do(in.em.EndToken(botLogin, time.Now().Add(5*24*time.Hour))) }, want: []doctor.Code{"token-ends"}},
	{name: "sweeps that take all calls", faces: []emulator.Face{onGitHub}, plant: edit("dataDir:", "sweepInterval: 1s\ndataDir:"), want: []doctor.Code{"calls-forecast"}, calls: 4000},
	{name: "calls that others have made", plant: func(in *installation) {
		for range 200 {
			_, err := in.driver(in.config()).Me(context.Background())
			in.do(err)
		}
	}, want: []doctor.Code{"calls-low"}, calls: 250},
}

var repositoryFaults = []fault{
	{name: "another name", plant: edit("acme/vessels", "acme/ships"), want: []doctor.Code{"repository-missing"}},
	{name: "no access", plant: func(in *installation) { in.do(in.em.Grant(repoName, botLogin, emulator.NoPermission)) }, want: []doctor.Code{"repository-missing"}},
	{name: "it only reads", plant: func(in *installation) { in.do(in.em.Grant(repoName, botLogin, emulator.Read)) }, want: []doctor.Code{"hook-forbidden", "write-missing"}},
	{name: "archived", plant: func(in *installation) { in.do(in.em.ArchiveRepository(repoName, true)) }, want: []doctor.Code{"repository-archived"}},
	{name: "renamed", faces: []emulator.Face{onGitLab}, plant: func(in *installation) { in.do(in.em.MoveRepository(repoName, "acme/ships")) }, want: []doctor.Code{"repository-renamed"}},
	{name: "another branch", plant: edit("manageWebhooks", "branch: trunk, manageWebhooks"), want: []doctor.Code{"branch-other"}},
	{name: "a repository that can't be read now", plant: refuse("GET", "^/(repos|projects)/", emulator.Fault{Status: http.StatusBadGateway}), want: []doctor.Code{"repository-unread"}},
}

var hookFaults = []fault{
	{name: "no webhook", plant: func(in *installation) { in.do(in.em.RemoveHooks(repoName)) }, want: []doctor.Code{"hook-missing"}},
	{name: "a webhook that is off", faces: []emulator.Face{onGitHub}, plant: replaceHook(emulator.Hook{Secret: hookSecret}), want: []doctor.Code{"hook-off"}},
	{name: "events that are missing", plant: func(in *installation) { in.do(in.em.SetHookEvents(repoName, in.hookURL(), "push", "push_events")) }, want: []doctor.Code{"hook-events"}},
	{name: "another secret", faces: []emulator.Face{onGitLab}, plant: edit("webhookSecrets: [", `webhookSecrets: ["the secret that is new", `), want: []doctor.Code{"hook-secret"}},
	{name: "deliveries that are refused", plant: func(in *installation) { in.answer = http.StatusUnauthorized; in.push() }, want: []doctor.Code{"hook-secret"}},
	{name: "deliveries that fail", plant: func(in *installation) { in.answer = http.StatusBadGateway; in.push() }, want: []doctor.Code{"hook-failing"}},
	{name: "a webhook that GitLab has paused", faces: []emulator.Face{onGitLab}, plant: func(in *installation) {
		in.answer = http.StatusBadGateway
		for range 4 {
			in.push()
		}
	}, want: []doctor.Code{"hook-failing", "hook-paused"}},
	{name: "webhooks that can't be seen", plant: func(in *installation) {
		in.do(in.em.Grant(repoName, botLogin, emulator.Write))
		edit(", manageWebhooks: true", "")(in)
	}, want: []doctor.Code{"hook-unread"}},
	{name: "webhooks that can't be made", plant: func(in *installation) { in.do(in.em.Grant(repoName, botLogin, emulator.Write)) }, want: []doctor.Code{"hook-forbidden"}},
	{name: "webhooks that can't be read now", plant: refuse("GET", "/hooks", emulator.Fault{Status: http.StatusBadGateway}), want: []doctor.Code{"hook-unread"}},
}

// asApp has Liftlock work as a GitHub App, and then a fault.
func asApp(plant func(in *installation)) func(*installation) {
	return func(in *installation) {
		in.t.Helper()
		permissions := map[string]string{}
		for _, p := range github.Permissions() {
			permissions[p.Name] = p.Level
		}
		app, err := in.em.RegisterApp(emulator.App{Slug: "liftlock", Permissions: permissions, Events: github.DefaultEvents, HookURL: in.hookURL(), HookSecret: hookSecret})
		in.do(err)
		in.do(in.em.InstallApp("liftlock", "acme"))
		in.do(in.em.RemoveHooks(repoName))
		in.key = filepath.Join(in.t.TempDir(), "key.pem")
		in.do(os.WriteFile(in.key, app.PrivateKey, 0o600))
		edit(`{token: "${FORGE_TOKEN}"}`, fmt.Sprintf("{app: {id: %d, privateKeyFile: %s, manageWebhook: true}}", app.ID, in.key))(in)
		edit(", manageWebhooks: true", "")(in)
		plant(in)
	}
}

var appFaults = []fault{
	{name: "an App as it is wanted", plant: asApp(func(in *installation) { in.push() })},
	{name: "an App that isn't installed", plant: asApp(func(in *installation) { in.do(in.em.UninstallApp("liftlock", "acme")) }), want: []doctor.Code{"app-unusable"}},
	{name: "an App that is suspended", plant: asApp(func(in *installation) { in.do(in.em.SuspendApp("liftlock", "acme", true)) }), want: []doctor.Code{"app-unusable"}},
	{name: "a permission that wasn't accepted", plant: asApp(func(in *installation) {
		in.do(in.em.SetAppPermissions("liftlock", "acme", map[string]string{"contents": "write", "metadata": "read", "pull_requests": "write", "issues": "read", "checks": "read"}))
	}), want: []doctor.Code{"grant-missing"}},
	{name: "a key of another App", plant: asApp(func(in *installation) {
		other, err := in.em.RegisterApp(emulator.App{Slug: "other"})
		in.do(err)
		in.do(os.WriteFile(in.key, other.PrivateKey, 0o600))
	}), want: []doctor.Code{"credentials-refused"}},
	{name: "an App whose webhook leads to another server", plant: asApp(func(in *installation) { edit("externalURL: http://127.0.0.1", "externalURL: http://localhost")(in) }), want: []doctor.Code{"hook-address"}},
	{name: "an App whose deliveries fail", plant: asApp(func(in *installation) { in.answer = http.StatusBadGateway; in.push() }), want: []doctor.Code{"hook-failing"}},
}

// TestFaults plants one fault after the other in a sound installation: each is found by its code,
// and nothing else is.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, f := range slices.Concat(hostFaults, fileFaults, forgeFaults, repositoryFaults, hookFaults, onGitHubOnly(appFaults)) {
		for _, face := range faces(f.faces...) {
			t.Run(f.name+" on "+string(face), func(t *testing.T) {
				t.Parallel()
				in := newInstallation(t, face, f.calls)
				f.plant(in)
				report := in.examine()
				if got := report.Codes(); !slices.Equal(got, f.want) {
					t.Errorf("found %q, want %q:\n%s", got, f.want, text(t, report))
				}
				for _, x := range report.Findings {
					if x.Level != doctor.OK && x.Cure == "" {
						t.Errorf("%s doesn't say what to change", x.Code)
					}
				}
				if said := text(t, report); strings.Contains(said, botToken) || strings.Contains(said, hookSecret) {
					t.Errorf("it shows a secret:\n%s", said)
				}
			})
		}
	}
}

// TestSound finds nothing where nothing is wrong.
func TestSound(t *testing.T) {
	t.Parallel()
	for _, face := range faces() {
		t.Run(string(face), func(t *testing.T) {
			t.Parallel()
			in := newInstallation(t, face, 0)
			in.push()
			report := in.examine()
			if len(report.Codes()) > 0 || report.ExitCode() != doctor.ExitWell {
				t.Errorf("it isn't well:\n%s", text(t, report))
			}
		})
	}
}

func onGitHubOnly(faults []fault) []fault {
	for i := range faults {
		faults[i].faces = []emulator.Face{onGitHub}
	}
	return faults
}

func text(t *testing.T, r *doctor.Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
