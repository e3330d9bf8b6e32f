package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	// manifestsTimeout bounds one rendering. Argo CD gives its repo server a minute for each
	// source unless told otherwise, and a plugin of its own 90 seconds.
	manifestsTimeout = 90 * time.Second
	// maxManifestBytes bounds an answer with manifests. The largest charts that are installed
	// widely have some 6 MB with their custom resource definitions, and each is escaped as a
	// string.
	maxManifestBytes = 16 << 20
)

// SourceRevision is the revision of one of several sources.
type SourceRevision struct {
	Position int // from 1
	Revision string
}

// ManifestQuery says which Application is rendered, and at what. It is rendered as it runs,
// but for the revisions.
type ManifestQuery struct {
	Namespace, Name, Project string
	Revision                 string           // of its only source, where spec.source has it
	Revisions                []SourceRevision // of some of spec.sources
}

// Manifests renders an Application at other revisions than its own, as its controller would: an
// object's JSON each, the data of Secrets replaced by plus signs. Nothing is compared or deployed.
// It needs to be allowed applications, get. An Application that can't be rendered is a *StatusError
// with 500; [IsRendering] tells.
//
// Argo CD up to 3.6 at least writes the revisions of one of several sources into its server's own
// memory of the Application (GetManifests, appSpec.Sources). Until that changes, lists show them,
// and calls for one Application at the same time mix theirs up.
func (c *Client) Manifests(ctx context.Context, q ManifestQuery) ([]string, error) {
	limited, cancel := context.WithTimeout(ctx, manifestsTimeout)
	defer cancel()
	query := applicationQuery(q.Namespace, q.Project)
	if q.Revision != "" {
		query.Set("revision", q.Revision)
	}
	for _, s := range q.Revisions {
		query.Add("revisions", s.Revision)
		query.Add("sourcePositions", strconv.Itoa(s.Position))
	}
	var out []string
	err := c.retry(limited, func() error {
		body, err := c.open(limited, request{address: applicationPath(q.Name, "manifests"), query: query, patient: true})
		if IsRendering(err) { // it says the same again, and takes as long for it
			return backoff.Permanent(err)
		}
		if err != nil {
			return err
		}
		raw, err := readAnswer(body, maxManifestBytes)
		if err != nil {
			return err
		}
		out, err = decodeManifests(raw)
		return err
	})
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("no answer within %s: %w", manifestsTimeout, err)
	}
	return out, err
}

// IsRendering says that an Application can't be rendered, or not now: Argo CD answers so
// whatever the repo server or a plugin of it says.
func IsRendering(err error) bool { return hasCode(err, http.StatusInternalServerError) }

// decodeManifests reads an answer with manifests. The reader interprets them.
func decodeManifests(raw []byte) ([]string, error) {
	var answer struct {
		Manifests *[]string `json:"manifests"`
		// The answer to another question, or a proxy's, has these.
		Error any `json:"error"`
	}
	if err := unmarshalAnswer(raw, &answer); err != nil {
		return nil, err
	}
	if answer.Error != nil {
		return nil, backoff.Permanent(errors.New("the answer is not what an Argo CD says: there is an error in it"))
	}
	if answer.Manifests == nil {
		return nil, nil // the gateway leaves out what is empty
	}
	return *answer.Manifests, nil
}
