package render

import (
	"fmt"
	"regexp"
	"strings"
)

// trackingAnnotations are what Argo CD marks the objects with that it deploys. They have the
// object's name in them, and no source has them.
var trackingAnnotations = []string{"argocd.argoproj.io/tracking-id", "argocd.argoproj.io/installation-id"}

// FromArgoCD are the manifests that an Argo CD rendered: an object each, in JSON. The limits
// of a rendering are theirs, too. Nothing is known of the files that they were made of.
func FromArgoCD(manifests []string) (*Manifests, error) {
	var c objectCollector
	for _, text := range manifests {
		if text = strings.TrimSpace(text); text == "" || text == "null" {
			continue
		}
		fields, err := decodeFields([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("a manifest is no object: %w", err)
		}
		if kind, _ := fields["kind"].(string); kind == "" {
			return nil, fmt.Errorf("a manifest has no kind")
		}
		dropTracking(fields)
		if err := c.addObject(fields); err != nil {
			return nil, err
		}
	}
	return c.buildManifests(ReadSet{}), nil
}

// dropTracking takes Argo CD's own marks off an object.
func dropTracking(fields map[string]any) {
	metadata, _ := fields["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		return
	}
	for _, key := range trackingAnnotations {
		delete(annotations, key)
	}
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

// secretTextPattern matches what stands after a name that sounds secret in a text for people,
// such as password=x, "apiKey": "x" and --token x.
var secretTextPattern = func() *regexp.Regexp {
	name := `[\w.-]*(?:` + strings.TrimPrefix(secretNamePattern.String(), "(?i)") + `)[\w.-]*`
	return regexp.MustCompile(`(?i)(--` + name + `\s+|` + name + `["']?\s*[:=]\s*)("[^"]*"|'[^']*'|[^\s"',;]+)`)
}()

var credentialsPattern = regexp.MustCompile(`://[^\s/@]+@`)

// HideSecrets is a text from outside, such as what a program printed as it failed, without
// what stands where secrets do. It can't know all of them.
func HideSecrets(text string) string {
	return secretTextPattern.ReplaceAllString(credentialsPattern.ReplaceAllString(text, "://"), "${1}"+Placeholder)
}
