package appset

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/argoproj/argo-cd/v2/common"
)

// Cluster is a cluster as Argo CD knows it, without its credentials.
type Cluster struct {
	Secret      string // the Secret's own name
	Namespace   string
	Name        string // what destinations and generators call it
	Server      string
	Project     string
	Labels      map[string]string
	Annotations map[string]string
}

const (
	// maxClustersFile bounds a file of cluster Secrets: 10,000 of them, generously.
	maxClustersFile = 64 << 20
	// maxClusters bounds how many clusters a file may have: a set is generated for each.
	maxClusters = 50_000
)

// ReadClusters reads the cluster Secrets of a tree's file, as [ParseClusters] does. Errors name the
// file and, in it, the document.
func ReadClusters(tree fs.FS, file string) ([]Cluster, error) {
	data, err := readFile(tree, file)
	if err != nil {
		return nil, err
	}
	clusters, err := ParseClusters(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return clusters, nil
}

// isOnlyComments says that a document has nothing but comments, as a file may begin.
func isOnlyComments(doc []byte) bool {
	for line := range bytes.Lines(doc) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}

// describeDocument says which document of a stream one is, and in which line it begins. It is a part
// of data, or a copy of one.
func describeDocument(data, doc []byte, n int) string {
	start := bytes.Index(data, bytes.TrimSpace(doc))
	if start < 0 {
		return fmt.Sprintf("document %d", n)
	}
	return fmt.Sprintf("document %d (line %d)", n, 1+bytes.Count(data[:start], []byte("\n")))
}

// ParseClusters reads cluster Secrets as `kubectl get secret -o yaml` (or
// json) prints them: a List, one Secret, or several documents. Secrets that
// are not labelled as Argo CD clusters are left out. Credentials are not
// kept. The result is never nil: no cluster Secrets is an answer.
func ParseClusters(data []byte) ([]Cluster, error) {
	if len(data) > maxClustersFile {
		return nil, fmt.Errorf("reading cluster Secrets: %d bytes are more than the %d that are read", len(data), maxClustersFile)
	}
	out := []Cluster{}
	err := eachDocument(data, func(n int, doc []byte) error {
		if isOnlyComments(doc) {
			return nil
		}
		at := func() string { return describeDocument(data, doc, n) }
		var list struct {
			Kind  string          `json:"kind"`
			Items []clusterSecret `json:"items"`
		}
		var one clusterSecret
		err := yaml.Unmarshal(doc, &list)
		secrets := list.Items
		switch {
		case err == nil && list.Kind == "Secret":
			err = yaml.Unmarshal(doc, &one)
			secrets = []clusterSecret{one}
		case err == nil && list.Kind != "List" && list.Kind != "SecretList":
			return fmt.Errorf("reading cluster Secrets, %s: its kind is %q, wanted Secret or List", at(), list.Kind)
		}
		if err != nil { // which may quote the Secret's content
			return fmt.Errorf("reading cluster Secrets, %s: it is not the YAML or JSON of a Secret", at())
		}
		for i := range secrets {
			if secrets[i].Metadata.Labels[common.LabelKeySecretType] != common.LabelValueSecretTypeCluster {
				continue
			}
			c, err := secrets[i].toCluster()
			if err != nil {
				return fmt.Errorf("reading cluster Secrets, %s: %w", at(), err)
			}
			if len(out) >= maxClusters {
				return fmt.Errorf("reading cluster Secrets: more than %d are too many", maxClusters)
			}
			out = append(out, c)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(out, func(a, b Cluster) int { return strings.Compare(a.Secret, b.Secret) })
	return out, nil
}

// clusterSecret is the part of a Secret that the resolver reads. data.config, the credentials, is
// left out on purpose.
type clusterSecret struct {
	Metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Data       clusterData `json:"data"`
	StringData clusterData `json:"stringData"`
}

type clusterData struct {
	Name    string `json:"name"`
	Server  string `json:"server"`
	Project string `json:"project"`
}

func (cs *clusterSecret) toCluster() (Cluster, error) {
	c := Cluster{
		Secret: cs.Metadata.Name, Namespace: cs.Metadata.Namespace,
		Labels: cs.Metadata.Labels, Annotations: maps.Clone(cs.Metadata.Annotations),
	}
	// kubectl's own annotation repeats the Secret, credentials included.
	delete(c.Annotations, corev1.LastAppliedConfigAnnotation)
	for _, f := range []struct {
		key          string
		data, string string
		to           *string
	}{
		{"name", cs.Data.Name, cs.StringData.Name, &c.Name},
		{"server", cs.Data.Server, cs.StringData.Server, &c.Server},
		{"project", cs.Data.Project, cs.StringData.Project, &c.Project},
	} {
		*f.to = f.string
		if f.string != "" || f.data == "" {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(f.data)
		if err != nil {
			return Cluster{}, fmt.Errorf("the Secret %q: data.%s is not base64", cs.Metadata.Name, f.key)
		}
		*f.to = string(raw)
	}
	if c.Server == "" {
		return Cluster{}, fmt.Errorf("the Secret %q: data.server is missing", cs.Metadata.Name)
	}
	return c, nil
}

// clusterSecrets is the snapshot in the shape that the library lists.
func clusterSecrets(clusters []Cluster) []corev1.Secret {
	out := make([]corev1.Secret, 0, len(clusters))
	for _, c := range clusters {
		labels := maps.Clone(c.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels[common.LabelKeySecretType] = common.LabelValueSecretTypeCluster
		s := corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: c.Secret, Namespace: c.Namespace, Labels: labels, Annotations: c.Annotations},
			Data:       map[string][]byte{"name": []byte(c.Name), "server": []byte(c.Server)},
		}
		if c.Project != "" {
			s.Data["project"] = []byte(c.Project)
		}
		out = append(out, s)
	}
	return out
}
