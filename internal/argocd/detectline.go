package argocd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// schemaPath is where an API server describes Argo CD's kinds. Every account that may log in
	// may read it.
	schemaPath = "/openapi/v3/apis/argoproj.io/v1alpha1"
	// maxSchema bounds that description, which takes some megabytes.
	maxSchema = 64 << 20
	// schemaTimeout is how long it may take.
	schemaTimeout = 30 * time.Second
	// redetectAfter is when the line, and the controller's policy, are looked up again: an Argo CD
	// may be upgraded, or set up anew.
	redetectAfter = 10 * time.Minute
)

// lineFields are fields of ApplicationSets that came with a line of Argo CD, the newest
// line first. They are the marks by which a line is known: what Argo CD's own version
// is, only its API tells.
var lineFields = []struct{ line, field string }{
	{"3.6", "spec.generators.oci"},
	{"3.5", "spec.template.spec.source.tagPrefix"},
	{"3.4", "status.health"},
	{"3.3", "spec.template.spec.sourceHydrator.drySource.helm"},
	{"3.2", "spec.strategy.deletionOrder"},
	{"3.1", "spec.generators.git.files.exclude"},
	{"3.0", "spec.generators.pullRequest.values"},
	{"2.14", "spec.template.spec.sourceHydrator"},
}

// fieldSchema is the part of an OpenAPI description that says which fields there are. Parts that
// aren't needed stay as they came.
type fieldSchema struct {
	Properties map[string]json.RawMessage `json:"properties"`
	Items      json.RawMessage            `json:"items"`
}

// hasField follows a path of names, through lists too.
func hasField(raw json.RawMessage, path []string) bool {
	var s fieldSchema
	for {
		if s = (fieldSchema{}); json.Unmarshal(raw, &s) != nil {
			return false
		}
		if s.Items == nil {
			break
		}
		raw = s.Items
	}
	if len(path) == 0 {
		return true
	}
	next, ok := s.Properties[path[0]]
	return ok && hasField(next, path[1:])
}

// lineOf says which line of Argo CD a description of its kinds is of; empty for one
// that is older than all that are known.
func lineOf(description []byte) (string, error) {
	var doc struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(description, &doc); err != nil {
		return "", fmt.Errorf("it is not a description of kinds: %w", err)
	}
	for name, set := range doc.Components.Schemas {
		if !strings.HasSuffix(name, ".ApplicationSet") {
			continue
		}
		for _, f := range lineFields {
			if hasField(set, strings.Split(f.field, ".")) {
				return f.line, nil
			}
		}
		return "", nil
	}
	return "", errors.New("it does not describe ApplicationSets")
}

// detectLine asks Argo CD which line it is of, or else the API server of which its kinds
// are.
func (w *Watcher) detectLine(ctx context.Context) (string, error) {
	if w.api != nil {
		return w.detectLineByAPI(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	body, err := w.client.Get().AbsPath(schemaPath).Stream(ctx)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", schemaPath, err)
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxSchema+1))
	if err == nil && len(data) > maxSchema {
		err = fmt.Errorf("it is larger than the %d bytes that are read", maxSchema)
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", schemaPath, err)
	}
	found, err := lineOf(data)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", schemaPath, err)
	}
	return found, nil
}

// followLine keeps the line up to date until ctx ends. One that can't be found out stays
// as it was: nothing but what ApplicationSets generate depends on it.
func (w *Watcher) followLine(ctx context.Context) {
	w.detectAgain(ctx, "cannot find out which line of Argo CD this is; argocd[].version in the server's file says it", func() error {
		found, err := w.detectLine(ctx)
		if err == nil {
			w.store.versions.setLine(found)
		}
		return err
	})
}

// followSetPolicy keeps the ApplicationSet controller's policy up to date until ctx ends.
func (w *Watcher) followSetPolicy(ctx context.Context) {
	w.detectAgain(ctx, "cannot find out which policy the ApplicationSet controller has; argocd[].applicationSetPolicy in the server's "+
		"file says it", func() error {
		found, err := w.detectSetPolicy(ctx)
		if err == nil {
			w.store.versions.setSetPolicy(found)
		}
		return err
	})
}

// followIgnored keeps what Argo CD's settings ignore of differences up to date until ctx ends.
func (w *Watcher) followIgnored(ctx context.Context) {
	w.detectAgain(ctx, "cannot find out which differences Argo CD's settings ignore", func() error {
		found, err := w.detectIgnored(ctx)
		if err == nil {
			w.store.versions.setIgnored(found)
		}
		return err
	})
}

// detectAgain detects something until ctx ends, now and then, and sooner where that failed. It
// logs once that it can't.
func (w *Watcher) detectAgain(ctx context.Context, cannot string, detect func() error) {
	wait, said := firstRetry, false
	for {
		err := detect()
		pause := redetectAfter
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if !said {
				w.log.Info(cannot, zap.Error(err))
			}
			said = true
			if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) { // which stay so
				pause, wait = wait, min(2*wait, redetectAfter)
			}
		default:
			wait, said = firstRetry, false
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
