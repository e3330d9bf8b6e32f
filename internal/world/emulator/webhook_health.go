package emulator

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"
)

// GitLab disables hooks that fail (user/project/integrations/webhooks, "Auto-disabled
// webhooks", as it is since 17.11); a self-managed one only where that was switched on
// (auto_disabling_web_hooks).
const (
	failuresToDisable  = 4
	failuresForGood    = 40
	firstHookDisabling = time.Minute
	longestDisabling   = 24 * time.Hour
)

// hookHealth is how a hook of GitLab's fares. The zero value is a hook that works.
type hookHealth struct {
	failures int // in a row
	backoffs int
	until    time.Time // disabled until then
}

// recordResult counts a delivery that ended. Callers hold mu.
func (ws *webhookSender) recordResult(d *Delivery) {
	h := ws.health[d.hook.id]
	if d.Status >= 200 && d.Status < 300 {
		h = hookHealth{}
	} else {
		h.failures++
		if h.failures >= failuresToDisable && !ws.keepHooks {
			h.until = ws.now().Add(min(longestDisabling, firstHookDisabling<<min(h.backoffs, 11)))
			h.backoffs++
		}
	}
	ws.health[d.hook.id] = h
}

// healthOf is a hook's alert_status, and until when it is disabled; the zero time: it isn't,
// or for good.
func (ws *webhookSender) healthOf(id int64) (status string, until time.Time) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	h := ws.health[id]
	switch {
	case ws.keepHooks:
	case h.failures >= failuresForGood:
		return "disabled", time.Time{}
	case ws.now().Before(h.until):
		return "temporarily_disabled", h.until
	}
	return "executable", time.Time{}
}

// newGitLabDelivery is an event of GitLab's on its way to a hook.
func newGitLabDelivery(h *hook, event, eventUUID string, payload restObject) (Delivery, error) {
	body, err := json.Marshal(payload)
	if err != nil {
		return Delivery{}, fmt.Errorf("writing the event %s: %w", event, err)
	}
	action, _ := payload["object_kind"].(string)
	if o, ok := payload["object_attributes"].(restObject); ok {
		if a, ok := o["action"].(string); ok {
			action = a
		}
	}
	return Delivery{ID: newUUID(), Event: event, Action: action, URL: h.url, hook: *h, body: body, flag: gitlabEventFlags[event],
		eventUUID: eventUUID}, nil
}

// sendGitLabEvent queues an event for a hook that isn't disabled.
func (ws *webhookSender) sendGitLabEvent(h *hook, event, eventUUID string, payload restObject) {
	if status, _ := ws.healthOf(h.id); status != "executable" {
		return
	}
	d, err := newGitLabDelivery(h, event, eventUUID, payload)
	if err != nil {
		// Payloads are built here from strings, numbers and times.
		ws.log.Error("a webhook's payload can't be written", zap.String("event", event), zap.Error(err))
		return
	}
	ws.enqueue(d)
}

// sendAtOnce delivers an event and waits for the receiver's answer.
func (ws *webhookSender) sendAtOnce(d *Delivery) {
	d.Status, d.Err = 0, ""
	ws.deliver(d)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.recordDelivery(*d)
}

// gitlabHeaders are those of a delivery. The token is sent as it is; the signature is made
// with the signing token.
func (ws *webhookSender) gitlabHeaders(d *Delivery) http.Header {
	h := http.Header{}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "GitLab/17.11.0-ee", "X-Gitlab-Event": d.Event, "X-Gitlab-Instance": ws.instance,
		"X-Gitlab-Event-Uuid": d.eventUUID, "X-Gitlab-Webhook-Uuid": d.hook.uuid, "Idempotency-Key": d.ID,
	} {
		h.Set(k, v)
	}
	if d.hook.secret != "" {
		h.Set("X-Gitlab-Token", d.hook.secret)
	}
	if d.hook.signing != nil {
		at := strconv.FormatInt(ws.now().Unix(), 10)
		h.Set("webhook-id", d.ID)
		h.Set("webhook-timestamp", at)
		mac := hmac.New(sha256.New, d.hook.signing)
		fmt.Fprintf(mac, "%s.%s.%s", d.ID, at, d.body)
		h.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return h
}
