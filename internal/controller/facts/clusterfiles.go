package facts

import (
	"fmt"
	"os"

	"github.com/liftlock/liftlock/internal/appset"
)

// clusterFile is a parsed file of cluster Secrets.
type clusterFile struct {
	stamp    fileStamp
	clusters []appset.Cluster
}

// maxClusterFile bounds a file of cluster Secrets; the parser's own bound is the same.
const maxClusterFile = 64 << 20

// readClusterFile gives a file's clusters, from memory while it isn't written. The
// stamp is also that of a file that can't be used.
func (o *targetGatherer) readClusterFile(path string) ([]appset.Cluster, fileStamp, error) {
	stamp := readStamp(path)
	if known, ok := o.clusterFiles.Get(path); ok && known.stamp == stamp {
		return known.clusters, stamp, nil
	}
	if stamp.size > maxClusterFile {
		return nil, stamp, fmt.Errorf("%s is larger than %d MiB", path, maxClusterFile>>20)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, stamp, err
	}
	clusters, err := appset.ParseClusters(raw)
	if err != nil {
		return nil, stamp, fmt.Errorf("%s: %w", path, err)
	}
	o.clusterFiles.Put(path, clusterFile{stamp, clusters})
	return clusters, stamp, nil
}

// ClusterFileProblems says, by a clusters file's path, why it can't be used.
func (o *targetGatherer) ClusterFileProblems() map[string]string {
	out := map[string]string{}
	for _, a := range o.argocds.byName {
		if a.ClustersFile == "" {
			continue
		}
		if _, _, err := o.readClusterFile(a.ClustersFile); err != nil {
			out[a.ClustersFile] = err.Error()
		}
	}
	return out
}

// readStamp is zero for a file that can't be looked at.
func readStamp(path string) fileStamp {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{info.Size(), info.ModTime()}
}
