package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Clusters is where the clusters are known from that Argo CD deploys to: without live
// and file, ApplicationSets that ask for clusters can't be resolved, and
// destinations are not checked. With both, the two together are all there are.
type Clusters struct {
	Live bool   `yaml:"live"` // list Argo CD's cluster Secrets; needs list on secrets
	File string `yaml:"file"` // cluster Secrets as kubectl get secret -o yaml prints them
	// Alias says which clusters of this Argo CD others have too: what one is called among
	// all of them, and the names and addresses that this one has for it.
	Alias map[string][]string `yaml:"alias"`
}

// Aliases gives what each cluster is called among all Argo CDs, by the names and addresses
// that this one has for it, as ClusterKey gives them.
func (c *Clusters) Aliases() map[string]string {
	out := map[string]string{}
	for alias, names := range c.Alias {
		for _, name := range names {
			out[ClusterKey(name)] = alias
		}
	}
	return out
}

// inCluster is the name that each Argo CD has for the cluster that it runs in.
const inCluster = "in-cluster"

// ClusterKey is a cluster's name or address in the one form that all its spellings have.
func ClusterKey(name string) string {
	if name = strings.TrimSuffix(name, "/"); name == "https://kubernetes.default.svc" {
		return inCluster
	}
	return name
}

// maxClusterName bounds the name or address of a cluster.
const maxClusterName = 253

// checkClusterAlias checks that a name or an address stands for one cluster, and that none is
// called what each Argo CD calls the cluster that it runs in.
func (c *checker) checkClusterAlias(at string, clusters *Clusters) {
	first := map[string]string{}
	for _, alias := range slices.Sorted(maps.Keys(clusters.Alias)) {
		path, names := at+"."+alias, clusters.Alias[alias]
		switch {
		case !isClusterName(alias):
			c.Errorf(path, "%q can't be what a cluster is called", alias)
		case ClusterKey(alias) == inCluster:
			c.Errorf(path, "each Argo CD calls the cluster so that it runs in; call it something that is one cluster's among all of them")
		}
		c.NotEmpty(path, len(names), "name or address of a cluster")
		for i, name := range names {
			path, key := fmt.Sprintf("%s[%d]", path, i), ClusterKey(name)
			switch other, twice := first[key]; {
			case !isClusterName(name):
				c.Errorf(path, "%q is neither the name nor the address of a cluster", name)
			case twice:
				c.Errorf(path, "%q is already called %s", name, other)
			default:
				first[key] = alias
			}
		}
	}
}

func isClusterName(s string) bool {
	return s != "" && len(s) <= maxClusterName && !strings.ContainsFunc(s, isUnprintable)
}
