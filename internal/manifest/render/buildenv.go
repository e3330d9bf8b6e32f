package render

import (
	"os"
	"strings"
)

// buildEnv are the variables that the repo server puts into values files'
// names, parameters, images, labels and annotations.
type buildEnv struct {
	values       map[string]string
	usesRevision *bool // set once the commit was asked for
}

func newBuildEnv(in *Input, s *Source, revision *bool) buildEnv {
	short := func(n int) string { return in.Revision[:min(n, len(in.Revision))] }
	return buildEnv{usesRevision: revision, values: map[string]string{
		"ARGOCD_APP_NAME":                   in.Application,
		"ARGOCD_APP_NAMESPACE":              in.Namespace,
		"ARGOCD_APP_REVISION":               in.Revision,
		"ARGOCD_APP_REVISION_SHORT":         short(7),
		"ARGOCD_APP_REVISION_SHORT_8":       short(8),
		"ARGOCD_APP_SOURCE_REPO_URL":        s.RepoURL,
		"ARGOCD_APP_SOURCE_PATH":            s.Path,
		"ARGOCD_APP_SOURCE_TARGET_REVISION": s.TargetRevision,
	}}
}

// expand replaces $NAME and ${NAME}; an unknown one is empty, $$ is a dollar.
func (b buildEnv) expand(s string) string {
	return os.Expand(s, func(name string) string {
		if name == "$" {
			return "$"
		}
		if strings.HasPrefix(name, "ARGOCD_APP_REVISION") {
			*b.usesRevision = true
		}
		return b.values[name]
	})
}
