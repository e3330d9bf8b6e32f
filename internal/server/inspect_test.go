package server_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/server"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/server/doctor"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/logintest"
)

// TestDoctor builds doctor's readers, and a probe's writers, from a server's file, on both forges.
// It finds what is missing there.
func TestDoctor(t *testing.T) {
	for _, face := range []emulator.Face{emulator.GitHub, emulator.GitLab} {
		t.Run(string(face), func(t *testing.T) {
			em, err := emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir(), Face: face})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = em.Close() })
			argo, err := argoemulator.New(argoemulator.Options{Repos: em})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = argo.Close() })
			dir := t.TempDir()
			kubeconfig, data := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "data")
			for _, err := range []error{
				em.AddUser("liftlock-bot", "bot-token-0123456789", emulator.UserOptions{}),
				em.CreateRepo("acme/fleet", emulator.RepoOptions{Author: "liftlock-bot", Files: map[string]string{"README.md": "a\n"}, Access: map[string]emulator.Permission{"liftlock-bot": emulator.Admin}}),
				argo.WriteKubeconfig(kubeconfig),
				os.WriteFile(filepath.Join(dir, "liftlock.yaml"), []byte(strings.NewReplacer("TYPE", string(face), "ADDRESS", em.APIURL(), "DATA", data, "KUBECONFIG", kubeconfig).Replace(`
dataDir: DATA
forges: [{name: hub, type: TYPE, url: ADDRESS, auth: {token: bot-token-0123456789}, webhookSecrets: [a-webhook-secret]}]
repositories: [{forge: hub, name: acme/fleet}]
argocd: [{name: hub, version: v2.14.21, kubernetes: {kubeconfig: KUBECONFIG}}]
`)), 0o600),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			c, err := config.Load(filepath.Join(dir, "liftlock.yaml"), os.LookupEnv)
			if err != nil {
				t.Fatal(err)
			}
			report, err := server.Doctor(context.Background(), server.Options{Config: c, Version: "test"}, true)
			if err != nil {
				t.Fatal(err)
			}
			var well []doctor.Code
			for _, f := range report.Findings {
				if f.Level == doctor.OK {
					well = append(well, f.Code)
				}
			}
			// How much room this machine has isn't the test's matter.
			got := slices.DeleteFunc(report.Codes(), func(c doctor.Code) bool { return strings.HasPrefix(string(c), "disk-") })
			if want := []doctor.Code{"argocd-empty", "pipeline-missing"}; !slices.Equal(got, want) || !slices.Contains(well, doctor.CodeProbe) || report.ExitCode() != doctor.ExitFails {
				t.Errorf("found %q, want %q; well are %q: %+v", got, want, well, report.Findings)
			}
			if _, err := os.Stat(data); !os.IsNotExist(err) {
				t.Errorf("it made the server's folder: %v", err)
			}
		})
	}
}

// TestDoctorChecksTheLogin: doctor finds an identity provider that is away, and one that isn't
// called as the file says.
func TestDoctorChecksTheLogin(t *testing.T) {
	idp := logintest.New(t, time.Now)
	for name, c := range map[string]struct {
		issuer string
		away   bool
		want   doctor.Code
	}{
		"as it is wanted": {idp.URL, false, doctor.CodeLogin},
		"another issuer":  {idp.URL + "/", false, "login-issuer"},
		"away":            {idp.URL, true, "login-unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			idp.With(func(p *logintest.Provider) { p.Away = c.away })
			cfg := &config.Config{DataDir: t.TempDir(), ExternalURL: "https://liftlock.example.com",
				OIDC: &config.OIDC{Issuer: c.issuer, ClientID: logintest.ClientID, ClientSecret: logintest.ClientSecret, GroupsClaim: "groups"}}
			report, err := server.Doctor(t.Context(), server.Options{Config: cfg, Version: "test"}, false)
			if err != nil {
				t.Fatal(err)
			}
			var got []doctor.Code
			for _, f := range report.Findings {
				if strings.HasPrefix(string(f.Code), "login") {
					got = append(got, f.Code)
				}
			}
			if !slices.Equal(got, []doctor.Code{c.want}) {
				t.Errorf("found %q, want %q: %+v", got, c.want, report.Findings)
			}
		})
	}
}
