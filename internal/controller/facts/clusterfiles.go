package facts

import (
	"fmt"
	"os"
	"sync"

	"github.com/liftlock/liftlock/internal/appset"
)

// clusterFiles remembers parsed files of cluster Secrets.
type clusterFiles struct {
	mu    sync.Mutex
	files map[string]clusterFile
}

type clusterFile struct {
	stamp    fileStamp
	clusters []appset.Cluster
	err      error
}

// maxClusterFile bounds a file of cluster Secrets; the parser's own bound is the same.
const maxClusterFile = 64 << 20

// read gives a file's clusters, from memory while it isn't written.
func (f *clusterFiles) read(path string) ([]appset.Cluster, fileStamp, error) {
	stamp := readStamp(path)
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, ok := f.files[path]; ok && known.stamp == stamp && known.err == nil {
		return known.clusters, stamp, nil
	}
	var now clusterFile
	now.stamp = stamp
	if stamp.size > maxClusterFile {
		now.err = fmt.Errorf("%s is larger than %d MiB", path, maxClusterFile>>20)
	} else if raw, err := os.ReadFile(path); err != nil {
		now.err = err
	} else if now.clusters, err = appset.ParseClusters(raw); err != nil {
		now.err = fmt.Errorf("%s: %w", path, err)
	}
	if f.files == nil {
		f.files = map[string]clusterFile{}
	}
	f.files[path] = now
	return now.clusters, stamp, now.err
}

// problemsByPath says which files can't be used.
func (f *clusterFiles) problemsByPath() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]string{}
	for path, c := range f.files {
		if c.err != nil {
			out[path] = c.err.Error()
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
