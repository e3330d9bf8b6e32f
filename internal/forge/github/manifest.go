package github

import (
	"slices"
	"strings"
)

// Permission is one that Liftlock's App needs, and what for.
type Permission struct {
	Name     string // GitHub's, as in a manifest
	Level    string // read or write
	Why      string
	Optional bool // only some pipelines need it; the rest works without
}

// Permissions are the least that an App needs for all that Liftlock can do.
func Permissions() []Permission {
	return []Permission{
		{Name: "contents", Level: "write", Why: "read the overlays, push a promotion's branch, merge and delete it"},
		{Name: "metadata", Level: "read", Why: "every App has it: who may do what in a repository, which commands are taken by"},
		{Name: "pull_requests", Level: "write", Why: "open, describe, label, comment on and close promotions; read reviews, and request " +
			"them"},
		{Name: "issues", Level: "read", Why: "be sent comments in pull requests, by which commands are given: to GitHub they are events " +
			"of issues"},
		{Name: "statuses", Level: "write", Why: "set the status liftlock on a promotion, and read those that gates wait for"},
		{Name: "checks", Level: "read", Why: "read check runs that gates wait for, and be sent their results"},
		{Name: "deployments", Level: "write", Why: "show deployments, for pipelines with deployments: true", Optional: true},
		{Name: "members", Level: "read", Why: "say who is in a team, for approvals from teams", Optional: true},
	}
}

// Manifest is what GitHub makes an App of ("Registering a GitHub App from a manifest").
type Manifest struct {
	Name           string            `json:"name"`
	URL            string            `json:"url"`
	Description    string            `json:"description"`
	Public         bool              `json:"public"`
	HookAttributes ManifestHook      `json:"hook_attributes"`
	RedirectURL    string            `json:"redirect_url,omitempty"`
	Permissions    map[string]string `json:"default_permissions"`
	Events         []string          `json:"default_events"` // those of its installations every App is sent
}

// ManifestHook is the App's one webhook. Its secret GitHub makes, and shows with the key.
type ManifestHook struct {
	URL    string `json:"url"`
	Active bool   `json:"active"`
}

// NewManifest is the manifest of an App called name, which delivers to the forge of the name
// forge in the server's file at externalURL. redirectURL is where the browser goes with the
// code that is exchanged for the App's key; empty: it stays with GitHub. public lets others
// than its owner install the App, which several organisations need.
func NewManifest(name, externalURL, forge, redirectURL string, public bool) Manifest {
	m := Manifest{
		Name: name, URL: externalURL, Description: "Liftlock moves releases from environment to environment through pull requests.",
		Public:         public,
		HookAttributes: ManifestHook{URL: strings.TrimRight(externalURL, "/") + "/webhooks/" + forge, Active: true},
		RedirectURL:    redirectURL, Permissions: map[string]string{}, Events: append(slices.Clone(DefaultEvents), repositoryEvent),
	}
	for _, p := range Permissions() {
		m.Permissions[p.Name] = p.Level
	}
	return m
}
