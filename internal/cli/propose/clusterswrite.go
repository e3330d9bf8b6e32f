package propose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
)

const (
	// secretTypeLabel is by what Argo CD knows a cluster's Secret, with the value cluster.
	secretTypeLabel = "argocd.argoproj.io/secret-type"
	// listClusters is the command that prints Argo CD's clusters.
	listClusters = "kubectl get secret -n argocd -l " + secretTypeLabel + "=cluster -o yaml"
)

// WriteClusters writes clusters as Secrets, a YAML document each, as --clusters and the pipeline file's
// clusters take them.
func WriteClusters(clusters []ExampleCluster) []byte {
	w := &writer{}
	w.writeComment("", "Argo CD's clusters as the ApplicationSets here ask for them: an example of liftlock init --clusters-example. "+
		"What your clusters have is printed by: "+listClusters)
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
		w.writeLine("    %s: cluster", secretTypeLabel)
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

// quoteScalar writes a text so that YAML reads a text. One that begins with a letter and has no
// blanks needs no quotes, but for the words that are none.
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
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '.':
			return r
		}
		return '-'
	}, strings.ToLower(s))
	out = strings.Trim(out, "-.")
	return cmp.Or(out[:min(len(out), 200)], "unnamed")
}

// ExampleClustersFile is what a proposal that was made with an example of clusters calls their file.
const ExampleClustersFile = "clusters.yaml"

// maxNamedClusters bounds how many clusters of an example a proposal names.
const maxNamedClusters = 8

// DescribeUnknownClusters asks which clusters Argo CD has, where a pipeline was inferred from an example of them.
func DescribeUnknownClusters(example []appset.Cluster) *ChoiceError {
	c := &ChoiceError{
		Question: "which clusters Argo CD has isn't known here, and ApplicationSets generate from them: this was made with " +
			"an example of them. liftlock init --clusters-example > " + ExampleClustersFile + " writes it down",
		Other: "put in what " + listClusters + " prints, and run liftlock init --clusters " + ExampleClustersFile,
	}
	for i := range example[:min(len(example), maxNamedClusters)] {
		c.Seen = append(c.Seen, describeCluster(&example[i]))
	}
	if more := len(example) - maxNamedClusters; more > 0 {
		c.Seen = append(c.Seen, fmt.Sprintf("and %d more", more))
	}
	return c
}

// describeCluster says a cluster's name and labels.
func describeCluster(c *appset.Cluster) string {
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(c.Labels)) {
		if key != secretTypeLabel {
			labels = append(labels, key+"="+c.Labels[key])
		}
	}
	if len(labels) == 0 {
		return c.Name
	}
	return fmt.Sprintf("%s (%s)", c.Name, strings.Join(labels, ", "))
}
