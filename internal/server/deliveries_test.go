package server_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/server"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/emulator/story"
)

// testDelivery is one request to the webhook's address.
type testDelivery struct {
	event, id, key string // key signs, or is sent as it is; empty: neither
	body           []byte
}

func (ha *harness) postDelivery(d testDelivery) (int, http.Header) {
	ha.t.Helper()
	req, err := http.NewRequest(http.MethodPost, ha.url+"/webhooks/hub", bytes.NewReader(d.body))
	ha.must("make a request", err)
	req.Header.Set("Content-Type", "application/json")
	switch {
	case ha.Forge.Face() == emulator.GitLab:
		req.Header.Set("X-Gitlab-Event", d.event)
		req.Header.Set("Idempotency-Key", d.id)
		req.Header.Set("X-Gitlab-Token", d.key)
	default:
		req.Header.Set("X-GitHub-Event", d.event)
		req.Header.Set("X-GitHub-Delivery", d.id)
		if d.key != "" {
			mac := hmac.New(sha256.New, []byte(d.key))
			mac.Write(d.body)
			req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		}
	}
	res, err := http.DefaultClient.Do(req)
	ha.must("deliver", err)
	defer res.Body.Close() // only its head matters
	return res.StatusCode, res.Header
}

// countDeliveries counts the deliveries in the database; the server must be stopped.
func (ha *harness) countDeliveries() int {
	ha.t.Helper()
	db, err := store.Open(context.Background(), "sqlite://"+filepath.Join(ha.dir, "data", "liftlock.db"), store.Options{})
	ha.must("open the database", err)
	n, err := db.PruneDeliveries(context.Background(), time.Now().Add(time.Hour))
	ha.must("count the deliveries", errors.Join(err, db.Close()))
	return n
}

// pushPayload is what the forge sends of a push to main.
func (ha *harness) pushPayload(repo string) []byte {
	if ha.Forge.Face() == emulator.GitLab {
		return []byte(fmt.Sprintf(`{"object_kind":"push","ref":"refs/heads/main","before":"%040d","after":"%040d","project":{"path_with_namespace":%q},"user_username":"linus"}`, 1, 2, repo))
	}
	return []byte(fmt.Sprintf(`{"ref":"refs/heads/main","before":"%040d","after":"%040d","repository":{"full_name":%q},"sender":{"login":"linus"}}`, 1, 2, repo))
}

// TestDeliveries sends what may come to the webhook's address, good and bad.
func TestDeliveries(t *testing.T) {
	s := startHarness(t, harnessOptions{noHook: true})
	s.awaitJudged()
	s.awaitIdle()
	s.Forge.ResetCalls()
	push := s.pushPayload(repoName)
	malformed := 400
	if s.Forge.Face() == emulator.GitLab {
		malformed = 202 // it switches a hook off whose deliveries are refused
	}
	for _, c := range []struct {
		name   string
		d      testDelivery
		status int
	}{
		{"no signature", testDelivery{event: "push", id: "none", body: push}, 401},
		{"a wrong signature", testDelivery{event: "push", id: "wrong", key: "not-the-secret", body: push}, 401},
		{"a wrong signature on nonsense", testDelivery{event: "push", id: "worse", key: "not-the-secret", body: []byte("{")}, 401},
		{"26 MB", testDelivery{event: "push", id: "large", key: secret, body: bytes.Repeat([]byte(" "), 26<<20)}, 413},
		{"malformed JSON, well signed", testDelivery{event: "push", id: "malformed", key: secret, body: []byte(`{"ref":`)}, malformed},
	} {
		if got, _ := s.postDelivery(c.d); got != c.status {
			t.Errorf("%s: HTTP %d, want %d", c.name, got, c.status)
		}
	}
	s.awaitIdle()
	if n := s.countCalls("", ""); n != 0 {
		t.Errorf("refused deliveries made %d calls to the forge", n)
	}
	for _, c := range []struct {
		name   string
		d      testDelivery
		status int
	}{
		{"authentic but unknown", testDelivery{event: "sponsorship", id: "unknown", key: secret, body: []byte(`{"action":"created"}`)}, 202},
		{"a push", testDelivery{event: "push", id: "good", key: secret, body: push}, 200},
		{"the same again", testDelivery{event: "push", id: "good", key: secret, body: push}, 200},
		{"signed with the older secret", testDelivery{event: "push", id: "older", key: "an-older-secret", body: push}, 200},
		{"of a repository that isn't looked after", testDelivery{event: "push", id: "elsewhere", key: secret, body: s.pushPayload("acme/other")}, 200},
	} {
		if got, _ := s.postDelivery(c.d); got != c.status {
			t.Errorf("%s: HTTP %d, want %d", c.name, got, c.status)
		}
	}
	s.awaitIdle()
	_, page := s.getText("/metrics")
	for outcome, want := range map[string]string{"unauthenticated": "3", "too_large": "1", "malformed": "1", "ignored": "1", "accepted": "4"} {
		if got := findMetric(page, `liftlock_webhook_deliveries_total{forge="hub",outcome="`+outcome+`"}`); got != want {
			t.Errorf("%s deliveries in /metrics: %q, want %s", outcome, got, want)
		}
	}
	s.stop()
	// A refused delivery is not stored, and a repeated one is stored once.
	if got := s.countDeliveries(); got != 4 {
		t.Errorf("%d deliveries are stored, want 4", got)
	}
}

// TestDeliveredThriceAndShuffled holds that repeated and reordered deliveries
// change nothing.
func TestDeliveredThriceAndShuffled(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	s.Forge.SetDeliveryOptions(emulator.DeliveryOptions{Times: 3, Shuffle: true, Seed: 7})
	s.runStory()
}

// TestTwoHooks is a project of GitLab's whose group has a hook beside its own: all is delivered
// twice, as two deliveries, and nothing is done twice.
func TestTwoHooks(t *testing.T) {
	s := startHarness(t, harnessOptions{face: emulator.GitLab})
	s.must("make the group's hook", s.Forge.AddHook(repoName, s.bot, emulator.Hook{URL: s.url + "/webhooks/hub?hook=group", Secret: secret, Active: true}))
	p := s.runStory()
	id := s.addComment(p.Number, "ada", "/liftlock status")
	s.awaitReaction(p.Number, id, "+1")
	s.awaitIdle()
	answers := 0
	for _, c := range s.readPull(p.Number).Comments {
		if c.User == s.bot && strings.HasPrefix(c.Body, fmt.Sprintf("<!-- liftlock:answer id=%d -->", id)) {
			answers++
		}
	}
	if answers != 1 {
		t.Errorf("the command was answered %d times", answers)
	}
}

// TestWebhooksOff holds that polling and sweeping find everything, only later.
func TestWebhooksOff(t *testing.T) {
	s := startHarness(t, harnessOptions{noHook: true, poll: 200 * time.Millisecond, sweep: 200 * time.Millisecond})
	p := s.runStory()
	id := s.addComment(p.Number, "ada", "/liftlock status")
	if a := s.awaitReaction(p.Number, id, "+1"); !strings.Contains(a, "qa") {
		t.Errorf("the answer to status is %q", a)
	}
}

// TestHookIsManaged makes the hook, and repairs it after somebody spoilt it.
func TestHookIsManaged(t *testing.T) {
	clock := newSteppedClock()
	s := startHarness(t, harnessOptions{manageHook: true, clock: clock})
	s.waitFor("the hook is made", s.hookIsGood)
	s.awaitJudged()
	s.spoilHook()
	s.waitFor("the hook is spoilt", func() (bool, string) { ok, seen := s.hookIsGood(); return !ok, seen })
	clock.Step(10 * time.Minute)
	s.waitFor("the hook is repaired", s.hookIsGood)
	s.commitRelease("web", "1.1.0")
	s.awaitPromotion("web", "qa", "1.1.0")
}

// hookIsGood says whether the server is sent what happens in the repository, by one webhook.
func (ha *harness) hookIsGood() (bool, string) {
	hooks, err := ha.Forge.Hooks(repoName)
	ha.must("list the hooks", err)
	address := ha.url + "/webhooks/hub"
	if ha.isApp() {
		url, err := ha.Forge.AppHookURL(story.AppSlug)
		ha.must("read the App's hook", err)
		return url == address && len(hooks) == 0, fmt.Sprintf("%s, and %+v", url, hooks)
	}
	return len(hooks) == 1 && hooks[0].Active && len(hooks[0].Events) > 3 && hooks[0].URL == address, fmt.Sprintf("%+v", hooks)
}

// spoilHook changes the webhook as an administrator can by mistake.
func (ha *harness) spoilHook() {
	ha.t.Helper()
	if ha.isApp() {
		ha.must("spoil the App's hook", ha.Forge.SetAppHook(story.AppSlug, "http://127.0.0.1:9/webhooks/hub", secret))
		return
	}
	ha.must("spoil the hook", ha.Forge.SetHookEvents(repoName, ha.url+"/webhooks/hub", map[emulator.Face]string{emulator.GitHub: "push", emulator.GitLab: "push_events"}[ha.Forge.Face()]))
}

func itoa(n int) string { return strconv.Itoa(n) }

// TestStoreIsFull refuses deliveries while nothing more can be written, stays
// up, and loses nothing that it took.
func TestStoreIsFull(t *testing.T) {
	s := newHarness(t, harnessOptions{seams: server.Seams{StoreMaxPages: 100}, noHook: true})
	s.start()
	s.awaitJudged()
	s.awaitIdle()
	accepted, id := 0, ""
	s.waitFor("the store is full", func() (bool, string) {
		for range 50 {
			id = fmt.Sprintf("%0120d", accepted)
			status, header := s.postDelivery(testDelivery{event: "push", id: id, key: secret, body: s.pushPayload("acme/" + strings.Repeat("o", 400))})
			switch {
			case status == http.StatusServiceUnavailable && header.Get("Retry-After") != "":
				return true, ""
			case status != http.StatusOK:
				t.Fatalf("a delivery to a store that is nearly full: HTTP %d", status)
			}
			accepted++
		}
		return false, fmt.Sprintf("%d taken", accepted)
	})
	s.waitFor("a person is told", func() (bool, string) { return s.countLogged("full") > 0, "the log doesn't say it" })
	if status, _ := s.getText("/healthz"); status != http.StatusOK {
		t.Errorf("/healthz answers %d while the store is full", status)
	}
	s.commitRelease("web", "1.1.0")
	s.stop()
	// There is room again; the forge delivers what was refused.
	s.opts.seams.StoreMaxPages = 0
	s.start()
	if status, _ := s.postDelivery(testDelivery{event: "push", id: id, key: secret, body: s.pushPayload(repoName)}); status != http.StatusOK {
		t.Errorf("a delivery after the store has room again: HTTP %d", status)
	}
	s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0").Number)
	s.stop()
	if got := s.countDeliveries(); got != accepted+1 {
		t.Errorf("%d deliveries are stored, %d were taken", got, accepted+1)
	}
}

// TestManyAtOnce sends many deliveries at once; every one is stored once.
func TestManyAtOnce(t *testing.T) {
	s := startHarness(t, harnessOptions{noHook: true})
	s.awaitJudged()
	const each, ids = 3, 100
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i := range each * ids {
		wg.Go(func() {
			if ctx.Err() != nil {
				return
			}
			if got, _ := s.postDelivery(testDelivery{event: "push", id: fmt.Sprintf("n%d", i%ids), key: secret, body: s.pushPayload(repoName)}); got != http.StatusOK {
				t.Errorf("HTTP %d", got)
			}
		})
	}
	wg.Wait()
	s.stop()
	if got := s.countDeliveries(); got != ids {
		t.Errorf("%d deliveries are stored, want %d", got, ids)
	}
}
