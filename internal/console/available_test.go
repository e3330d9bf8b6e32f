package console

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store/record"
)

// TestAvailable holds what is said of versions that registries have and that don't come in: in answers, in words and on
// pages. They are on pages as soon as they are on record, and go with that.
func TestAvailable(t *testing.T) {
	w := newTestConsole(t, nil)
	w.unit(testRepo, "shop", "web", "", env("dev", promotion.Verified, "1.5.0", time.Hour, 1), env("qa", promotion.Verified, "1.5.0", time.Hour, 1))
	readWhy := func() (why api.Why) {
		t.Helper()
		_, _, body := w.get("/api/v1/why?pipeline=shop&component=web")
		w.must(json.Unmarshal([]byte(body), &why))
		return why
	}
	if dev := readWhy().Environments[0]; dev.Available != nil || strings.Contains(dev.Text, "+ ") {
		t.Errorf("%+v", dev)
	}
	_, first, _ := w.get("/pipelines/shop/web")
	seen := stored.AvailableVersion{Name: "registry.example/web", Version: "2.0.0", Since: now.Add(-4 * time.Minute), Reason: "held by rule: it is not in <2"}
	unknown := stored.AvailableVersion{Name: "registry.example/proxy", Since: now.Add(-time.Hour), Reason: "the registry can't answer now; it is asked again"}
	w.available("web", "dev", unknown, seen)
	why := readWhy()
	dev := &why.Environments[0]
	if diff := cmp.Diff([]api.AvailableVersion{api.AvailableVersion(unknown), api.AvailableVersion(seen)}, dev.Available); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const text = "\n+ registry.example/proxy: unknown since 2026-03-02T08:00:00Z: the registry can't answer now; it is asked again" +
		"\n+ registry.example/web 2.0.0, seen 2026-03-02T08:56:00Z: held by rule: it is not in <2"
	if !strings.HasSuffix(dev.Text, text) || strings.Contains(why.Environments[1].Text, "2.0.0") {
		t.Errorf("%s", dev.Text)
	}
	for path, want := range map[string]string{
		"/":                   `2.0.0 seen <time datetime="2026-03-02T08:56:00Z"`,
		"/?q=2.0.0":           `2.0.0 seen <time`,
		"/pipelines/shop/web": "held by rule: it is not in &lt;2</li>",
	} {
		if status, _, page := w.get(path); status != http.StatusOK || !strings.Contains(page, want) {
			t.Errorf("%s is %d without %s", path, status, want)
		}
	}
	_, second, _ := w.get("/pipelines/shop/web")
	if first.Get("ETag") == "" || first.Get("ETag") == second.Get("ETag") {
		t.Errorf("the page is known as %s and %s", first.Get("ETag"), second.Get("ETag"))
	}
	about := record.InUnit{Unit: record.Unit{Repo: testRepo, Pipeline: "shop", Component: "web"}, Name: "dev"}
	w.must(stored.AvailableVersions.Drop(t.Context(), w.store, about))
	if _, _, page := w.get("/"); strings.Contains(page, "2.0.0") {
		t.Error("it is still there")
	}
}
