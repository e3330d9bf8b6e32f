package propose

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
)

// WriteClusters writes clusters as Secrets, a YAML document each, as --clusters and the pipeline file's
// clusters take them.
func WriteClusters(clusters []ExampleCluster) []byte {
	w := &writer{}
	w.writeComment("", "Argo CD's clusters as the ApplicationSets here ask for them: an example of liftlock init --clusters-example. "+
		"What your clusters have is printed by: kubectl get secret -n argocd -l argocd.argoproj.io/secret-type=cluster -o yaml")
	w.writeComment("", "Put that in, or change what is here; a cluster's config, its credentials, isn't needed. "+
		"Keep the file in the repository, and name it in the pipeline file, as in clusters: clusters.yaml")
	for i, c := range clusters {
		if i > 0 {
			w.writeLine("---")
		}
		w.writeLine("apiVersion: v1")
		w.writeLine("kind: Secret")
		w.writeLine("metadata:")
		w.writeLine("  name: %s", quotePath("cluster-"+objectName(c.Name)))
		w.writeLine("  namespace: argocd")
		w.writeLine("  labels:")
		w.writeLine("    argocd.argoproj.io/secret-type: cluster")
		w.writeFields(c.Labels)
		if len(c.Annotations) > 0 {
			w.writeLine("  annotations:")
			w.writeFields(c.Annotations)
		}
		w.writeLine("stringData:")
		w.writeLine("  name: %s", quoteScalar(c.Name))
		w.writeLine("  server: %s", quoteScalar(c.Server))
	}
	return w.Bytes()
}

func (w *writer) writeFields(fields []ExampleField) {
	for _, f := range fields {
		line := fmt.Sprintf("    %s: %s", quotePath(f.Key), quoteScalar(f.Value))
		if f.Why != "" {
			line += " # " + appset.Printable(f.Why)
		}
		w.writeLine("%s", line)
	}
}

// quoteScalar writes a text so that YAML reads a text: what begins with a letter and has no blanks
// needs no quotes, but for the words that are none.
func quoteScalar(s string) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	plain := strings.TrimLeft(s, letters+"0123456789/._-:@")
	switch strings.ToLower(s) {
	case "", "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return quoteText(s)
	}
	if plain != "" || !strings.ContainsAny(s[:1], letters) || strings.Contains(s, ": ") || strings.HasSuffix(s, ":") {
		return quoteText(s)
	}
	return s
}

// objectName makes a name that a Kubernetes object may have.
func objectName(s string) string {
	out := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(s))
	out = strings.Trim(out, "-.")
	return cmp.Or(out[:min(len(out), 200)], "unnamed")
}
