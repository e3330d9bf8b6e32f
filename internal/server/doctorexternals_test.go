package server_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/server"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/server/doctor"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestDoctorReachesSourcesAndCharts: doctor reaches what the server's file lists for renderings, with the account that is
// there for it, and leaves nothing behind.
func TestDoctorReachesSourcesAndCharts(t *testing.T) {
	em, err := emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = em.Close() })
	access := map[string]emulator.Permission{"liftlock-bot": emulator.Read}
	for _, err := range []error{
		em.AddUser("liftlock-bot", "bot-token-0123456789", emulator.UserOptions{}),
		em.CreateRepo("acme/charts", emulator.RepoOptions{Author: "liftlock-bot", Files: map[string]string{"a": "b"}, Access: access}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	repository := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/stable/index.yaml" {
			http.NotFound(w, req)
			return
		}
		fmt.Fprintln(w, "apiVersion: v1\nentries: {}")
	}))
	t.Cleanup(repository.Close)
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "tmp"))
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: repository.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), authority, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	source := em.CloneURL("acme/charts")
	text := strings.NewReplacer("ADDRESS", em.APIURL(), "DATA", filepath.Join(dir, "data"), "KUBECONFIG", filepath.Join(dir, "none"), "SOURCE", source,
		"GONE", strings.Replace(source, "acme/charts", "acme/gone", 1), "CHARTS", repository.URL).Replace(examinedFile + `
sources:
  - {url: SOURCE, username: liftlock-bot, password: bot-token-0123456789}
  - {url: GONE, username: liftlock-bot, password: bot-token-0123456789}
  - {url: "http://127.0.0.1:1/acme/away"}
charts:
  - {url: CHARTS/stable, tls: {caFile: ca.pem}}
  - {url: CHARTS/none, tls: {caFile: ca.pem}}
  - {url: CHARTS/distrusted}
`)
	file := filepath.Join(dir, "liftlock.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	report, err := server.Doctor(context.Background(), server.Options{Config: cfg, Version: "test"}, false)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]doctor.Code{}
	for _, f := range report.Findings {
		if kind, address, _ := strings.Cut(f.Where, " "); kind == "source" || kind == "charts" {
			got[strings.TrimPrefix(address, "of ")] = f.Code
		}
		if strings.Contains(f.Message, "bot-token") {
			t.Errorf("%s says a password: %s", f.Code, f.Message)
		}
	}
	for address, want := range map[string]doctor.Code{
		source: doctor.CodeSource, strings.Replace(source, "acme/charts", "acme/gone", 1): "source-refused", "http://127.0.0.1:1/acme/away": "source-unread",
		repository.URL + "/stable": doctor.CodeCharts, repository.URL + "/none": "charts-refused", repository.URL + "/distrusted": "charts-unread",
	} {
		if got[address] != want {
			t.Errorf("%s: found %q, want %q", address, got[address], want)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("%d folders are left, %v", len(left), err)
	}
}
