package emulator

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// hook is a webhook on a repository. The courier reads copies of it.
type hook struct {
	id          int64
	repo        *repository // of an App's, what a delivery is about; nil: nothing in a repository
	url         string
	secret      string
	contentType string // json or form
	insecure    string // "0" or "1"; kept, not acted on: the emulator speaks plain HTTP
	events      []string
	active      bool
	created     time.Time
	updated     time.Time

	app          *app  // whose it is; nil: a repository's
	installation int64 // of an App's, what a delivery is about

	// GitLab's.
	uuid, name, description string
	branchFilter            string // of pushes; empty: all
	signing                 []byte // the key of webhook-signature; nil: none
}

func (h *hook) wants(event string) bool {
	return h.active && (slices.Contains(h.events, event) || slices.Contains(h.events, "*"))
}

// hookConfig is a hook's configuration in requests. It replaces the old one as
// a whole: a secret that isn't sent again is gone, which is GitHub's documented
// behaviour and a driver's favourite mistake.
type hookConfig struct {
	URL         string `json:"url"`
	ContentType string `json:"content_type"`
	Secret      string `json:"secret"`
	InsecureSSL any    `json:"insecure_ssl"` // string or number
}

func (h *hook) configure(c hookConfig) error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return invalidField("Hook", "url", "custom", "url is missing a scheme or host")
	}
	if c.ContentType == "" {
		c.ContentType = "form"
	}
	if c.ContentType != "json" && c.ContentType != "form" {
		return invalidField("Hook", "content_type", "custom", "content_type must be json or form")
	}
	for _, o := range h.repo.hooks {
		if o != h && o.url == c.URL {
			return invalidField("Hook", "", "custom", "Hook already exists on this repository")
		}
	}
	h.url, h.contentType, h.secret, h.insecure = c.URL, c.ContentType, c.Secret, "0"
	if fmt.Sprint(c.InsecureSSL) == "1" {
		h.insecure = "1"
	}
	return nil
}

// pingHook sends the event that GitHub sends when a hook is created.
func (f *Forge) pingHook(h *hook, by *account) {
	f.sender.sendEvent(h, "ping", map[string]any{
		"zen": "Approachable is better than simple.", "hook_id": h.id, "hook": f.wireHook(h),
		"repository": f.wireRepo(h.repo, nil), "sender": f.wireUser(by),
	})
}

type wireHook struct {
	Type      string         `json:"type"`
	ID        int64          `json:"id"`
	Name      string         `json:"name"`
	Active    bool           `json:"active"`
	Events    []string       `json:"events"`
	Config    map[string]any `json:"config"`
	CreatedAt time.Time      `json:"created_at"`
	UpdatedAt time.Time      `json:"updated_at"`
	URL       string         `json:"url"`
	PingURL   string         `json:"ping_url"`
	Last      map[string]any `json:"last_response"`
}

func (f *Forge) wireHook(h *hook) wireHook {
	config := map[string]any{"url": h.url, "content_type": h.contentType, "insecure_ssl": h.insecure}
	if h.secret != "" {
		config["secret"] = "********"
	}
	self := fmt.Sprintf("%s/hooks/%d", f.repoURL(h.repo), h.id)
	code, message := f.sender.lastResponse(h.id)
	return wireHook{
		Type: "Repository", ID: h.id, Name: "web", Active: h.active, Events: h.events, Config: config,
		CreatedAt: h.created, UpdatedAt: h.updated, URL: self, PingURL: self + "/pings",
		Last: map[string]any{"code": code, "status": cmp.Or(message, "unused"), "message": nil},
	}
}

// signBody is the value of X-Hub-Signature-256.
func signBody(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// newUUID is a random (version 4) identity of a delivery.
func newUUID() string { return string(uuid.NewUUID()) }
