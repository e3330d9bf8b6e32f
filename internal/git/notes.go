package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

const (
	notesPrefix = "refs/notes/"
	// hydratorNotes is where Argo CD's source hydrator notes, from 3.3 on, which commit a
	// hydrated one was made from. A commit that changes no manifest is noted on the hydrated
	// commit that is there, which is the only trace of it.
	hydratorNotes = notesPrefix + "hydrator.metadata"
	// maxNoteFolders is how deep git sorts many notes into folders, by two digits of the
	// commit's name each (git help notes); it begins with none.
	maxNoteFolders = 3
)

// HydratorNote is what Argo CD's source hydrator noted on a commit, as of the last Fetch; ok is
// false where it noted nothing. Errors: ErrInvalid for what is no commit's name, ErrTooLarge.
func (m *Mirror) HydratorNote(ctx context.Context, commit string) (note []byte, ok bool, err error) {
	if err := checkSHA(commit); err != nil {
		return nil, false, err
	}
	head, err := m.notesHead(ctx)
	if err != nil || head == "" {
		return nil, false, err
	}
	tree, name := m.Tree(head), commit
	for i := range maxNoteFolders + 1 {
		note, err := tree.ReadFile(name)
		if err == nil {
			return note, true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, false, fmt.Errorf("read the note on %s: %w", commit, err)
		}
		at := 3 * i
		name = name[:at] + name[at:at+2] + "/" + name[at+2:]
	}
	return nil, false, nil
}

// notesHead is the commit that has the hydrator's notes, from memory where possible; empty
// where there are none.
func (m *Mirror) notesHead(ctx context.Context) (string, error) {
	m.headsMu.Lock()
	defer m.headsMu.Unlock()
	if m.notes == nil {
		refs, err := m.engine.listRefs(ctx, notesPrefix)
		if err != nil {
			return "", fmt.Errorf("list the mirror's notes: %w", err)
		}
		m.notes = refs
	}
	return m.notes[hydratorNotes], nil
}
