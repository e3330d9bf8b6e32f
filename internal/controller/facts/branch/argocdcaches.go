package branch

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cache"
)

// listedApplications are the Applications that an Argo CD gave when targets were
// taken from them, without their status.
type listedApplications struct {
	version uint64
	objects []json.RawMessage
}

const (
	// maxQueries bounds how many lists of Applications are remembered.
	maxQueries = 256
	// maxListedBytes bounds them in bytes: some 30,000 Applications.
	maxListedBytes = 128 << 20
)

// applicationCache remembers lists of Applications by what was asked for.
type applicationCache struct {
	lists *cache.Cache[string, listedApplications]
}

func newApplicationCache(group *cache.Group) applicationCache {
	return applicationCache{cache.New(group, cache.Options[string, listedApplications]{Name: "applications", Entries: maxQueries,
		Bytes: maxListedBytes,
		Size: func(_ string, v listedApplications) int64 {
			size := int64(0)
			for _, raw := range v.objects {
				size += int64(len(raw))
			}
			return size
		}})}
}

// listOnce gives what was listed for a question while the Argo CD's version of its
// Applications is the same.
func (a applicationCache) listOnce(question string, version uint64, list func() ([]json.RawMessage, error)) ([]json.RawMessage, error) {
	if known, ok := a.lists.Get(question); ok && known.version == version {
		return known.objects, nil
	}
	objects, err := list()
	if err != nil {
		return nil, err
	}
	for i, raw := range objects {
		var top map[string]json.RawMessage
		if json.Unmarshal(raw, &top) != nil {
			continue // its reader says why
		}
		delete(top, "status")
		if objects[i], err = json.Marshal(top); err != nil {
			return nil, fmt.Errorf("keep an Application: %w", err)
		}
	}
	a.lists.Put(question, listedApplications{version, objects})
	return objects, nil
}

// clusterFile is a parsed file of cluster Secrets.
type clusterFile struct {
	stamp    fileStamp
	clusters []appset.Cluster
}

// maxClusterFile bounds a file of cluster Secrets; the parser's own bound is the same.
const maxClusterFile = 64 << 20

// readClusterFile gives a file's clusters, from memory while it isn't written. The
// stamp is also that of a file that can't be used.
func (tg *TargetGatherer) readClusterFile(path string) ([]appset.Cluster, fileStamp, error) {
	stamp := readStamp(path)
	if known, ok := tg.clusterFiles.Get(path); ok && known.stamp == stamp {
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
	tg.clusterFiles.Put(path, clusterFile{stamp, clusters})
	return clusters, stamp, nil
}

// ClusterFileProblems says, by a clusters file's path, why it can't be used.
func (tg *TargetGatherer) ClusterFileProblems() map[string]string {
	out := map[string]string{}
	for _, a := range tg.Argocds.ByName {
		if a.ClustersFile == "" {
			continue
		}
		if _, _, err := tg.readClusterFile(a.ClustersFile); err != nil {
			out[a.ClustersFile] = err.Error()
		}
	}
	return out
}

// readStamp is zero for a file that can't be read.
func readStamp(path string) fileStamp {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{info.Size(), info.ModTime()}
}
