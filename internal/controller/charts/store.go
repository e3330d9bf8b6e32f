package charts

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	defaultMaxBytes = 256 << 20
	// maxRecords bounds the checksums that are written down: past them the oldest half goes.
	maxRecords  = 20_000
	recordsFile = "checksums.json"
	packedFile  = ".tgz"
)

// record is what is known of a chart's version.
type record struct {
	SHA256 string    `json:"sha256"`
	Since  time.Time `json:"since"`
}

// store keeps packed charts under their checksums, and the checksums of versions for longer.
type store struct {
	dir  string
	most int64
	now  func() time.Time

	mu      sync.Mutex
	records map[string]record // by keyOf
}

func openStore(dir string, most int64, now func() time.Time) (*store, error) {
	if most == 0 {
		most = defaultMaxBytes
	}
	s := &store{dir: dir, most: most, now: now, records: map[string]record{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of charts: %w", err)
	}
	data, err := os.ReadFile(filepath.Join(dir, recordsFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return nil, fmt.Errorf("read the checksums of charts: %w", err)
	}
	if err := json.Unmarshal(data, &s.records); err != nil {
		return nil, fmt.Errorf("read the checksums of charts in %s: %w; delete the folder, and they are fetched again", dir, err)
	}
	return s, nil
}

func (s *store) path(sum string) string { return filepath.Join(s.dir, sum+packedFile) }

// read gives a version's packed chart, where it is kept as it was.
func (s *store) read(key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, is := s.records[key]
	if !is {
		return nil, false
	}
	data, err := os.ReadFile(s.path(known.SHA256))
	if err != nil {
		return nil, false
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != known.SHA256 {
		return nil, false
	}
	now := s.now() // it says which was used last
	_ = os.Chtimes(s.path(known.SHA256), now, now)
	return data, true
}

// write keeps a version's packed chart, unless it was another one before.
func (s *store) write(key string, data []byte) error {
	sum := sha256.Sum256(data)
	now := record{SHA256: hex.EncodeToString(sum[:]), Since: s.now().UTC()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, is := s.records[key]; is && was.SHA256 != now.SHA256 {
		return fmt.Errorf("%s is another chart than it was: it had the checksum %s since %s, and has %s now", key, was.SHA256,
			was.Since.Format(time.DateOnly), now.SHA256)
	}
	if err := writeFile(s.path(now.SHA256), data); err != nil {
		return fmt.Errorf("keep the chart %s: %w", key, err)
	}
	if _, is := s.records[key]; !is {
		s.records[key] = now
		s.dropRecords()
		text, err := json.Marshal(s.records)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(s.dir, recordsFile), text); err != nil {
			return fmt.Errorf("write down the checksum of %s: %w", key, err)
		}
	}
	at := s.now()
	_ = os.Chtimes(s.path(now.SHA256), at, at)
	return s.dropCharts(now.SHA256)
}

// writeFile replaces a file as a whole.
func writeFile(name string, data []byte) error {
	if old, err := os.ReadFile(name); err == nil && bytes.Equal(old, data) {
		return nil
	}
	temporary := name + ".new"
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}

func (s *store) dropRecords() {
	if len(s.records) <= maxRecords {
		return
	}
	keys := make([]string, 0, len(s.records))
	for key := range s.records {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return s.records[a].Since.Compare(s.records[b].Since) })
	for _, key := range keys[:len(keys)/2] {
		delete(s.records, key)
	}
}

// dropCharts removes those that were used longest ago, but the newest one, until the rest fits.
func (s *store) dropCharts(newest string) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var all []fs.FileInfo
	var size int64
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && strings.HasSuffix(entry.Name(), packedFile) {
			all = append(all, info)
			size += info.Size()
		}
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range all {
		if size <= s.most || info.Name() == newest+packedFile {
			continue
		}
		if err := os.Remove(filepath.Join(s.dir, info.Name())); err != nil {
			return err
		}
		size -= info.Size()
	}
	return nil
}
