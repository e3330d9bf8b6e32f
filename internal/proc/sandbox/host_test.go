package sandbox

import (
	"fmt"
	"io/fs"
	"testing"
)

// deepTree is one in which each folder has folders.
type deepTree struct{ fs.FS }

func (deepTree) ReadDir(string) ([]fs.DirEntry, error) {
	var entries []fs.DirEntry
	for i := range 100 {
		entries = append(entries, fs.FileInfoToDirEntry(&fileInfo{name: fmt.Sprint(i), mode: fs.ModeDir}))
	}
	return entries, nil
}

// TestListedFoldersAreBounded holds that the parent's memory of the folders it listed doesn't grow
// with the questions. Folders past the bound are listed where they are asked for.
func TestListedFoldersAreBounded(t *testing.T) {
	h := newHost(Trees{Main: deepTree{}}, 1<<40)
	list := func(i int) []byte {
		t.Helper()
		letter, payload, err := h.handleRequest(t.Context(), frameList, fmt.Appendf(nil, "\x00%d/%d/%d", i%100, i/100%100, i/10_000))
		if err != nil || letter != frameOK {
			t.Fatalf("question %d: %q %v", i, letter, err)
		}
		return payload
	}
	for i := range 3000 {
		list(i)
	}
	main := h.open[""]
	if len(main.listed) != maxListedFolders || len(main.pending) > maxPendingFolders {
		t.Fatalf("%d folders are remembered as listed and %d as pending", len(main.listed), len(main.pending))
	}
	folders, err := readFolders(list(990_000))
	if err != nil || len(folders) != 1 || len(folders[0].entries) != 100 {
		t.Errorf("past the bound a question is answered with %d folders, %v", len(folders), err)
	}
}
