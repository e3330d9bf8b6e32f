package api

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
)

// Version is the Argo CD's own, such as v3.5.7+1a2b3c4. Anybody may ask for it.
func (c *Client) Version(ctx context.Context) (string, error) {
	var v struct{ Version string }
	err := c.read(ctx, "/api/version", nil, &v)
	return v.Version, err
}

// Application reads one Application as a whole. With refresh, Argo CD compares it with Git
// first and answers when that is done.
func (c *Client) Application(ctx context.Context, namespace, name, project string, refresh bool) (json.RawMessage, error) {
	q := applicationQuery(namespace, project)
	if refresh {
		q.Set("refresh", "normal")
	}
	var raw json.RawMessage
	err := c.read(ctx, applicationPath(name), q, &raw)
	return raw, err
}

// ApplicationFilter chooses Applications. The zero value is all that the token may see.
type ApplicationFilter struct {
	Namespace string
	Projects  []string
	Selector  string // of labels, as kubectl takes it
}

func (a ApplicationFilter) query() url.Values {
	q := url.Values{}
	if a.Namespace != "" {
		q.Set("appNamespace", a.Namespace)
	}
	if a.Selector != "" {
		q.Set("selector", a.Selector)
	}
	for _, p := range a.Projects {
		q.Add("projects", p)
	}
	return q
}

// ListApplications opens the list of Applications, {"metadata": {…}, "items": […]}, as one
// stream: the API has no pages, and 10,000 Applications are 170 MB. The caller bounds what
// it reads, also in time, and closes it.
func (c *Client) ListApplications(ctx context.Context, f ApplicationFilter) (io.ReadCloser, error) {
	return c.openAgain(ctx, "/api/v1/applications", f.query())
}

// These are the listed objects, by their path.
const (
	Applications    = "applications"
	ApplicationSets = "applicationsets"
	Projects        = "projects"
	Clusters        = "clusters"
)

// List opens one of the lists besides that of Applications, under the same conditions as that of Applications.
func (c *Client) List(ctx context.Context, which string) (io.ReadCloser, error) {
	return c.openAgain(ctx, "/api/v1/"+which, nil)
}

// SyncRequest is how a sync is asked for; what is empty isn't sent.
type SyncRequest struct {
	Name      string `json:"name"`
	Namespace string `json:"appNamespace,omitempty"`
	Project   string `json:"project,omitempty"`
	Revision  string `json:"revision,omitempty"` // of a single source
	// Revisions and SourcePositions, which count from 1, are of some of several sources; the
	// others are synced to their targetRevisions. All lines from 2.14 on know them.
	Revisions       []string        `json:"revisions,omitempty"`
	SourcePositions []int           `json:"sourcePositions,omitempty"`
	Prune           bool            `json:"prune"`
	Infos           []SyncInfo      `json:"infos,omitempty"`
	RetryStrategy   json.RawMessage `json:"retryStrategy,omitempty"`
	SyncOptions     *SyncOptions    `json:"syncOptions,omitempty"`
}

// SyncOptions are a sync's options, Name=value each.
type SyncOptions struct {
	Items []string `json:"items"`
}

// SyncInfo is a remark on a sync, for people.
type SyncInfo struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Sync asks for a sync. It is never repeated: the caller looks again. It needs to be allowed
// applications, sync.
func (c *Client) Sync(ctx context.Context, r SyncRequest) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	body, err := c.open(ctx, request{method: http.MethodPost, address: applicationPath(r.Name, "sync"), body: r})
	if err != nil {
		return err
	}
	var ignored json.RawMessage
	return decodeAnswer(body, &ignored)
}

// openAgain opens an answer that is read in pieces, again after failures that pass.
func (c *Client) openAgain(ctx context.Context, address string, query url.Values) (body io.ReadCloser, err error) {
	err = c.retry(ctx, func() error {
		body, err = c.open(ctx, request{address: address, query: query})
		return err
	})
	return body, err
}

// MaySee says whether the token may see all of a kind, of what is in projects all of one
// where that is named. A list is empty where it may not, without an error.
func (c *Client) MaySee(ctx context.Context, which, project string) (bool, error) {
	var answer struct {
		Value string `json:"value"`
	}
	err := c.read(ctx, "/api/v1/account/can-i/"+which+"/get/"+AllOf(which, escapeSegment(project)), nil, &answer)
	return answer.Value == "yes", err
}

// MaySync says whether the token may have an Application synced. Argo CD's policies name one that
// isn't in its own namespace with that, which the client doesn't know: either will do.
func (c *Client) MaySync(ctx context.Context, namespace, name, project string) (bool, error) {
	project, namespace, name = escapeSegment(project), escapeSegment(namespace), escapeSegment(name)
	for _, object := range []string{project + "/" + name, project + "/" + namespace + "/" + name} {
		var answer struct {
			Value string `json:"value"`
		}
		if err := c.read(ctx, "/api/v1/account/can-i/applications/sync/"+object, nil, &answer); err != nil || answer.Value == "yes" {
			return err == nil, err
		}
	}
	return false, nil
}

// AllOf is how Argo CD's policies name all of a kind, of what is in projects all of one
// where that is named.
func AllOf(which, project string) string {
	if which == Applications || which == ApplicationSets {
		return cmp.Or(project, "*") + "/*"
	}
	return "*"
}
