package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/world/imageregistry"
)

// BenchmarkPushToCommit takes the time from when an image is pushed to the commit that has it in dev, in the whole server over the
// emulated forge. Either new tags are looked for each second, or nobody looks for an hour and the registry tells.
func BenchmarkPushToCommit(b *testing.B) {
	b.Run("poll", func(b *testing.B) {
		measurePushes(b, func(o *harnessOptions, _ string) { o.discover = time.Second }, func(*harness, string, string) {})
	})
	b.Run("webhook", func(b *testing.B) {
		measurePushes(b, func(o *harnessOptions, host string) {
			o.discover = time.Hour
			o.serverLines = "registries: [{host: \"" + host + "\", plainHTTP: true, webhookSecret: hook-secret-1}]\n"
		}, func(s *harness, host, tag string) {
			push := map[string]any{"events": []any{map[string]any{"action": "push", "target": map[string]string{"repository": "web", "tag": tag}}}}
			if code, text := s.postCommand("", "/webhooks/registries/"+host+"?token=hook-secret-1", push); code != 200 {
				b.Fatalf("%d: %s", code, text)
			}
		})
	})
}

// measurePushes pushes one release after the other, has the registry tell of each, and waits for its commit.
func measurePushes(b *testing.B, change func(o *harnessOptions, host string), notify func(s *harness, host, tag string)) {
	images, err := imageregistry.Start()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = images.Close() })
	o := (&testRegistry{host: images.Host}).discovering()
	change(&o, images.Host)
	s := startHarness(b, o)
	s.awaitJudged()
	file := overlayPath("web", "dev") + "/kustomization.yaml"
	s.waitFor("the first list of tags is made", func() (bool, string) {
		_, text := s.getText("/metrics")
		return strings.Contains(text, "liftlock_registry_lists_total{registry=\""+images.Host), ""
	})
	var all, most time.Duration
	release := 0
	for b.Loop() {
		release++
		tag := fmt.Sprintf("1.%d.0", release)
		s.must("push an image", images.Push(b.Context(), "web", tag, imageregistry.Source{}))
		pushed := time.Now()
		notify(s, images.Host, tag)
		s.awaitFile("main", file, tag)
		took := time.Since(pushed)
		if all += took; took > most {
			most = took
		}
	}
	b.ReportMetric(all.Seconds()*1000/float64(b.N), "ms/push-to-commit")
	b.ReportMetric(most.Seconds()*1000, "ms/slowest")
}

// TestVersionsAreShown holds that the server's API, its metrics and its words tell of a version that a rule keeps out.
func TestVersionsAreShown(t *testing.T) {
	images, err := imageregistry.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = images.Close() })
	o := (&testRegistry{host: images.Host}).discovering()
	o.pipeline = strings.Replace(o.pipeline, `semver: "*"`, `semver: "<2"`, 1)
	s := startHarness(t, o)
	for _, tag := range []string{"1.0.0", "1.1.0", "2.0.0"} {
		s.must("push an image", images.Push(t.Context(), "web", tag, imageregistry.Source{}))
	}
	s.awaitVerified("web", "dev", "1.1.0")
	s.waitFor("2.0.0 is available", func() (bool, string) {
		code, text := s.getText("/api/v1/why?pipeline=shop&component=web&environment=dev")
		want := fmt.Sprintf(`"available":[{"name":"%s/web","version":"2.0.0","since":`, images.Host)
		return code == 200 && strings.Contains(text, want) && strings.Contains(text, "held by rule: it is not in"), text
	})
	_, text := s.getText("/metrics")
	for _, want := range []string{
		fmt.Sprintf(`liftlock_registry_lists_total{registry="%s",result="ok"}`, images.Host), fmt.Sprintf(`liftlock_registry_listed_timestamp_seconds{registry="%s"}`, images.Host),
		`liftlock_discovery_commit_seconds_count{environment="dev",pipeline="shop"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}
